//! Updates models by the times of served queries.
//!
//! A profile describes one hour of one machine. Served queries show later changes: each took `us` where the model predicted
//! `estimate`. The median of the ratios is the factor by which costs have changed:
//!
//! ```text
//! ratio    1.4 |          . .:.:                model           x 1.08 (1.07 to 1.09)
//!          1.0 |:.::.:.::.:  '                  first stretch   x 1.01
//!              `-------------------> arrival    last stretch    x 1.29: it drifts
//! ```
//!
//! Only queries served alone count, since the time of one query in a batch is unknown. The model is scaled by the median.
//! Errors that remain after that require a new profile.

use super::model_file::ModelFile;
use super::{CostModel, Inputs};
use crate::base::machine::Class;
use crate::base::quantile::{interpolated, median};
use crate::base::stats::{Interval, drift, quantile_interval};
use crate::query::Mode;

/// The least number of queries for a recalibration.
const LEAST: usize = 30;
/// Stretches of equal length among which drift is tested.
const STRETCHES: usize = 10;
/// A change within the log is drift only if its p-value is below this.
const SIGNIFICANCE: f64 = 0.01;
/// The least relative change that counts as drift.
const LEAST_DRIFT: f64 = 0.05;
const CONFIDENCE: f64 = 0.95;

/// A query that was served alone.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The class of processor that served it.
    pub kind: Class,
    /// The mode of the query.
    pub mode: Mode,
    /// The inputs of a model.
    pub inputs: Inputs,
    /// Time from start to results, in microseconds, above 0.
    pub us: f64,
}

/// The recalibration of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalibration {
    /// The class.
    pub kind: Class,
    /// The mode.
    pub mode: Mode,
    /// Number of queries that count.
    pub queries: usize,
    /// The factor on its estimates: the median ratio of measured to estimated times.
    pub factor: f64,
    /// Confidence interval of the median of all such queries.
    pub interval: Interval,
    /// Mean relative error of its estimates before.
    pub error_before: f64,
    /// Mean relative error of its estimates times the factor.
    pub error_after: f64,
    /// The factors of the first and the last stretch of the log, if they differ significantly.
    pub drift: Option<(f64, f64)>,
}

/// Scales each model by its `served` queries, which are in order of arrival. Models with fewer than thirty queries stay
/// unchanged and are not in the list.
#[must_use]
pub fn recalibrate(models: &ModelFile, served: &[Served]) -> (ModelFile, Vec<Recalibration>) {
    let mut scaled = models.clone();
    let mut found = Vec::new();
    for model in scaled.models_mut() {
        let of_model = served.iter().filter(|query| (query.kind, query.mode) == (model.kind, model.mode));
        let pairs: Vec<(f64, f64)> = of_model
            .filter_map(|query| Some((models.predict_us(query.kind, query.mode, &query.inputs)?, query.us)))
            .collect();
        if pairs.len() < LEAST {
            continue;
        }
        let ratios: Vec<f64> = pairs.iter().map(|(estimate, us)| us / estimate).collect();
        let mut ascending = ratios.clone();
        ascending.sort_by(f64::total_cmp);
        let factor = interpolated(&ascending, 0.5);
        let error = |factor: f64| {
            pairs.iter().map(|(estimate, us)| (estimate * factor - us).abs() / us).sum::<f64>() / pairs.len() as f64
        };
        found.push(Recalibration {
            kind: model.kind,
            mode: model.mode,
            queries: pairs.len(),
            factor,
            interval: quantile_interval(&ascending, 0.5, CONFIDENCE).unwrap_or(Interval {
                low: factor,
                high: factor,
                confidence: 0.0,
            }),
            error_before: error(1.0),
            error_after: error(factor),
            drift: drift_of(&ratios),
        });
        model.scale *= factor;
    }
    (scaled, found)
}

/// The median ratios of the first and the last stretch, if ratios rise or fall along the log.
fn drift_of(ratios: &[f64]) -> Option<(f64, f64)> {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let falling: Vec<f64> = logs.iter().map(|ratio| -ratio).collect();
    let is_drift = |values: &[f64]| {
        drift(values, STRETCHES).is_some_and(|line| line.p_value < SIGNIFICANCE && line.rise > LEAST_DRIFT)
    };
    if !is_drift(&logs) && !is_drift(&falling) {
        return None;
    }
    let stretch = ratios.len() / STRETCHES;
    Some((median(ratios[..stretch].to_vec()), median(ratios[ratios.len() - stretch..].to_vec())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::QueryId;
    use crate::base::machine::PerClass;
    use crate::base::random::Random;
    use crate::cost::{Measured, TrainOptions, Workload, WorkloadRow, train};
    use crate::files::Provenance;
    use crate::query::Features;

    fn world(rows: u32) -> Workload {
        let row = |i: u32| {
            let features = Features::from_lengths(&[10 + u64::from(i * 7919 % 5003)], 100_000);
            let us = 5.0 + features.postings as f64 / 50.0;
            WorkloadRow {
                query_id: QueryId(i),
                log_id: i,
                mode: Mode::Or,
                features,
                index_features: None,
                predicted_us: None,
                measured: PerClass::two(Some(Measured { median_us: us, spread_us: 0.0, device_us: None }), None),
                results: 10,
            }
        };
        Workload { provenance: Provenance::new(), rows: (0..rows).map(row).collect(), ..Workload::default() }
    }

    fn served(workload: &Workload, slowdown: impl Fn(f64) -> f64) -> Vec<Served> {
        let mut random = Random::new(5, 0);
        let rows = workload.rows.len() as f64;
        let one = |(i, row): (usize, &WorkloadRow)| {
            let us = row.measured[Class::CPU].map_or(0.0, |measured| measured.median_us);
            let us = us * slowdown(i as f64 / rows) * (0.9 + 0.2 * random.unit());
            Served { kind: Class::CPU, mode: Mode::Or, inputs: row.inputs(), us }
        };
        workload.rows.iter().enumerate().map(one).collect()
    }

    #[test]
    fn a_slower_machine_is_found_as_a_factor_and_estimates_are_right_again() {
        let workload = world(600);
        let models = train(&workload, &TrainOptions { folds: 3, ..TrainOptions::default() }).unwrap();
        let (scaled, found) = recalibrate(&models, &served(&workload, |_| 1.5));
        assert_eq!(found.len(), 1);
        let Recalibration { factor, interval, error_before, error_after, drift, queries, .. } = &found[0];
        assert!((1.45..1.55).contains(factor) && interval.low <= *factor && *factor <= interval.high);
        assert!(*error_before > 0.25 && *error_after < 0.1 && *queries == 600 && drift.is_none());
        let inputs = workload.rows[7].inputs();
        let us = |models: &ModelFile| models.predict_us(Class::CPU, Mode::Or, &inputs).unwrap();
        assert!((us(&scaled) / us(&models) - factor).abs() < 1e-9);
        // A second recalibration changes nothing.
        let (_, again) = recalibrate(&scaled, &served(&workload, |_| 1.5));
        assert!((again[0].factor - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_machine_that_slows_down_along_the_log_is_told() {
        let workload = world(600);
        let models = train(&workload, &TrainOptions { folds: 3, ..TrainOptions::default() }).unwrap();
        let drift = |slowdown: fn(f64) -> f64| recalibrate(&models, &served(&workload, slowdown)).1[0].drift;
        let (first, last) = drift(|at| 1.0 + 0.5 * at).unwrap();
        assert!(first < 1.1 && last > 1.4, "{first} {last}");
        assert!(drift(|at| 1.5 - 0.5 * at).is_some_and(|(first, last)| first > last));
        assert_eq!(drift(|_| 1.2), None);
    }

    #[test]
    fn a_few_queries_change_nothing() {
        let workload = world(100);
        let models = train(&workload, &TrainOptions { folds: 3, ..TrainOptions::default() }).unwrap();
        let (same, found) = recalibrate(&models, &served(&workload, |_| 3.0)[..20]);
        assert!(found.is_empty() && same == models);
    }
}
