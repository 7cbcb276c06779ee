//! Error of a capacity due to the sample of measured queries.
//!
//! Another sample has another mean cost and other long queries. If queueing, not single long queries, makes queries
//! late, the mean cost dominates: the capacity moves with the stability limit. The variance of the logarithm of a
//! capacity c over samples is therefore split:
//!
//! ```text
//!   ln c  =  ln (limit of the stable region)  +  a residual
//!            standard error by the price of     8 bootstrap samples, one short run each at the rate that the first
//!            each query: no simulation          part makes of the capacity; the share of late queries gives the rest
//! ```
//!
//! The second part is regressed on the first, because a sample with a higher mean often has longer queries. The
//! variance due to the arrivals of a run is subtracted from its variance. If runs fail by growth, or the late share rises so
//! steeply that other queries move the limit by little, the first part is the whole error. Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapters 6 and 7.

use rayon::prelude::*;

use super::confirm::Sensitivity;
use super::probe::{ProbeRun, probe};
use super::{Candidate, CapacitySearch};
use crate::base::random::Purpose;
use crate::sim::{Experiment, SimError, SimQuery};

/// Number of simulated bootstrap samples.
const SAMPLES: u64 = 8;
/// Late share at which a run stops, under the bound that limits the capacity.
const MOST_LATE: f64 = 0.5;
/// Slope of ln late share over ln rate from which a tenfold late share moves the capacity by less than a quarter of a per cent.
const STEEP: f64 = 1000.0;
/// Half-width of a 95 % interval, in standard errors.
const TWO_SIDED_95: f64 = 1.96;

/// The error of a capacity due to the sample of measured queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryError {
    /// Half-width of the 95 % interval, as a share of the capacity.
    pub share: f64,
    /// The same of the limit of stability, and so of the utilisation at a rate.
    pub of_limit: f64,
    /// Number of measured queries.
    pub queries: usize,
}

/// The error of a capacity of `qps`; `None` for fewer than two queries.
///
/// # Errors
/// If the policy breaks its contract, or an interrupt came.
pub(super) fn query_error(
    search: &CapacitySearch<'_>,
    candidate: &Candidate<'_>,
    qps: f64,
    sensitivity: Option<&Sensitivity>,
) -> Result<Option<QueryError>, SimError> {
    let queries = search.experiment.queries.len();
    let Some(of_region) = search.experiment.region_error(candidate.policy) else { return Ok(None) };
    let rest = match sensitivity {
        Some(sensitivity) if sensitivity.slope < STEEP => rest(search, candidate, qps, sensitivity)?,
        _ => Rest { by_region: 0.0, variance: 0.0 },
    };
    let variance = ((1.0 + rest.by_region) * of_region).powi(2) + rest.variance;
    Ok(Some(QueryError { share: TWO_SIDED_95 * variance.sqrt(), of_limit: TWO_SIDED_95 * of_region, queries }))
}

/// The second part of the deviation: a multiple of the first part, and a variance.
struct Rest {
    by_region: f64,
    variance: f64,
}

fn rest(
    search: &CapacitySearch<'_>,
    candidate: &Candidate<'_>,
    qps: f64,
    sensitivity: &Sensitivity,
) -> Result<Rest, SimError> {
    let CapacitySearch { experiment, length, .. } = *search;
    let &Sensitivity { criterion, place, slope, held_share, variance_by_query, .. } = sensitivity;
    let count = length.searched(&criterion, qps);
    let played = (0..SAMPLES).into_par_iter().map(|number| {
        let sample = resampled(experiment, number);
        let region = |of: &Experiment| of.region_of(candidate.policy, 0.0).map(|region| region.rate_qps);
        let (Some(base), Some(other)) = (region(experiment), region(&sample)) else { return Ok(None) };
        let deviation = (other / base).ln();
        let rate_qps = qps * other / base;
        let arrivals = experiment.arrivals[number as usize % search.seeds()].first(count);
        let allowed = |late_share| (MOST_LATE / late_share * arrivals.len() as f64) as usize;
        let allowed_of = criterion.objective.bounds().nth(place).map_or(0, |bound| allowed(bound.late_share()));
        let judged = ProbeRun { criterion, allowed_of, pass: None, must_settle: false };
        let run = probe(&sample, candidate.policy, judged, &arrivals, rate_qps)?;
        let late_share = (run.late[place] as f64 + 0.5) / (run.queries as f64 + 1.0);
        Ok(Some((deviation, (held_share / late_share).ln() / slope)))
    });
    let played: Vec<Result<Option<(f64, f64)>, SimError>> = played.collect();
    let played: Vec<(f64, f64)> = played.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let n = played.len() as f64;
    if n < 3.0 {
        return Ok(Rest { by_region: 0.0, variance: 0.0 });
    }
    let mean = |of: fn(&(f64, f64)) -> f64| played.iter().map(of).sum::<f64>() / n;
    let (mean_region, mean_rest) = (mean(|one| one.0), mean(|one| one.1));
    let sum = |of: &dyn Fn(f64, f64) -> f64| {
        played.iter().map(|&(region, rest)| of(region - mean_region, rest - mean_rest)).sum::<f64>()
    };
    // The variance due to the arrivals of a run.
    let of_arrivals = variance_by_query / count as f64 / slope.powi(2);
    // Ridge regression shrinks a slope that noise could explain.
    let by_region = sum(&|region, rest| region * rest) / (sum(&|region, _| region * region) + of_arrivals).max(1e-300);
    let left = sum(&|region, rest| (rest - by_region * region).powi(2)) / (n - 2.0);
    Ok(Rest { by_region, variance: (left - of_arrivals).max(0.0) })
}

/// The experiment with a bootstrap sample of its queries.
pub(in crate::study) fn resampled(experiment: &Experiment, number: u64) -> Experiment {
    let mut random = Purpose::QuerySamples.stream(number);
    let rows = experiment.queries.len() as u32;
    let queries: Vec<SimQuery> = (0..rows).map(|_| experiment.queries[random.below(rows) as usize]).collect();
    let cluster = experiment.cluster.as_ref().map(|cluster| cluster.over(&queries));
    Experiment { queries, cluster, ..experiment.clone() }
}
