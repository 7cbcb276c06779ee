//! Bringing models up to date with what queries took while they were served.
//!
//! A profile is of one hour of one machine. Served queries tell what has changed since: each took `us` where the model said
//! `estimate`, and the median of the ratios says by how much everything is dearer or cheaper now:
//!
//! ```text
//! ratio    1.4 |          . .:.:                model           x 1.08 (1.07 to 1.09)
//!          1.0 |:.::.:.::.:  '                  first stretch   x 1.01
//!              `-------------------> arrival    last stretch    x 1.29: it drifts
//! ```
//!
//! Only queries served alone count: what one of a batch took cannot be told. The model is scaled by the median. What a factor can't mend
//! shows in the error that is left: then it is time for a new profile.

use super::model_file::ModelFile;
use super::{CostModel, Inputs};
use crate::base::machine::Class;
use crate::base::quantile::{interpolated, median};
use crate::base::stats::{Interval, drift, quantile_interval};
use crate::query::Mode;

/// Fewer queries say nothing sure.
const LEAST: usize = 30;
/// Stretches of equal length in which drift is looked for.
const STRETCHES: usize = 10;
/// A change within the log counts as drift where chance explains it in fewer than this share of cases...
const SIGNIFICANCE: f64 = 0.01;
/// ... and it is at least this large.
const LEAST_DRIFT: f64 = 0.05;
const CONFIDENCE: f64 = 0.95;

/// A query that was served alone.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// On which class of processor.
    pub kind: Class,
    /// How its terms combined.
    pub mode: Mode,
    /// What a model is asked with.
    pub inputs: Inputs,
    /// From its start to its results, in microseconds, above 0.
    pub us: f64,
}

/// What served queries say of one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalibration {
    /// The class.
    pub kind: Class,
    /// The mode.
    pub mode: Mode,
    /// Queries that count.
    pub queries: usize,
    /// What its estimates were multiplied by: the median of what queries took over what was estimated.
    pub factor: f64,
    /// Where the median of all such queries lies.
    pub interval: Interval,
    /// The mean relative error of its estimates before.
    pub error_before: f64,
    /// The same of the estimates times the factor.
    pub error_after: f64,
    /// The factors of the first and the last stretch of the log, if they differ by more than chance explains.
    pub drift: Option<(f64, f64)>,
}

/// Scales each model by what `served` queries, in order of arrival, say of it; models of which fewer than thirty queries tell
/// stay as they are, and are not in the list.
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

/// The median ratio of the first and of the last stretch, if ratios rise or fall along the log.
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
        // Once more changes nothing.
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
