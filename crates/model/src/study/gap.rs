//! The gap between policies and the clairvoyant [bound on latency](crate::sim::latency_bound), and the share of it that each policy
//! that runs queries on several lanes closes.

use rayon::prelude::*;

use super::{Comparison, PolicyResults, Summary};
use crate::sched::PolicyKind;
use crate::sim::{LatencyBound, latency_bound};

/// A policy at a rate against the bound; all numbers are means over the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// The policy's name.
    pub policy: String,
    /// Arrival rate, in queries per second.
    pub rate_qps: f64,
    /// The rate over the highest one at which any scheduler is stable.
    pub load: Option<f64>,
    /// Mean latency.
    pub mean_ms: f64,
    /// 99th percentile of the latency.
    pub p99_ms: f64,
    /// Latencies that no schedule is below.
    pub bound: LatencyBound,
    /// The share of the gap in p99 between the bound and the best policy with one lane per query that this policy closes. It is
    /// negative if the policy is worse; `None` if no such policy was played or there is no gap.
    pub closed_share: Option<f64>,
}

/// The gaps of all played policies and rates; empty for clusters, for which there is no bound.
#[must_use]
pub fn gaps(comparison: &Comparison, results: &PolicyResults) -> Vec<Gap> {
    let experiment = &comparison.experiment;
    if experiment.cluster.is_some() {
        return Vec::new();
    }
    let model = experiment.model.with_fallbacks();
    let limit_qps = experiment.region().map(|region| region.rate_qps);
    let at_rate = |&rate_qps: &f64| -> Vec<Gap> {
        let bounds = experiment.arrivals.iter().filter_map(|arrivals| {
            let arrivals = comparison.arrivals_at(arrivals, rate_qps);
            latency_bound(&arrivals, &experiment.queries, &model, rate_qps)
        });
        let bounds: Vec<LatencyBound> = bounds.collect();
        let of_bounds = |of: fn(&LatencyBound) -> f64| mean(bounds.iter().map(of));
        let (Some(mean_ms), Some(p99_ms)) = (of_bounds(|bound| bound.mean_ms), of_bounds(|bound| bound.p99_ms)) else {
            return Vec::new();
        };
        let bound = LatencyBound { mean_ms, p99_ms };
        let of = |policy: &str, of: fn(&Summary) -> f64| {
            let runs = results.played.iter().filter(|run| run.policy == policy && run.rate_qps == rate_qps);
            mean(runs.map(|run| of(&run.summary)))
        };
        let names = || comparison.policies.iter().map(|policy| policy.name());
        let shares_jobs = |name: &&str| PolicyKind::from_name(name).is_some_and(PolicyKind::shares_jobs);
        let best = names().filter(|name| !shares_jobs(name)).filter_map(|name| of(name, |s| s.p99_ms));
        let best = best.min_by(f64::total_cmp).filter(|&best| best > bound.p99_ms);
        let gap = |name: &str| {
            let (mean_ms, p99_ms) = (of(name, |s| s.mean_ms)?, of(name, |s| s.p99_ms)?);
            let load = limit_qps.map(|limit| rate_qps / limit);
            let closed_share = best.map(|best| (best - p99_ms) / (best - bound.p99_ms));
            Some(Gap { policy: name.to_owned(), rate_qps, load, mean_ms, p99_ms, bound, closed_share })
        };
        names().filter_map(gap).collect()
    };
    results.rates_qps.par_iter().flat_map_iter(at_rate).collect()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
