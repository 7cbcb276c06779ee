//! Two policies on the same arrivals and queries: their differences, with intervals over seeds, or over pairs of live runs.
//!
//! Both policies play each seed's draws, so that most of the variation cancels in the ratio of their results. Live runs take
//! turns, A B B A, so that the machine's drift cancels, too. The intervals are Student's, of the logarithms of these ratios. Two capacities whose own intervals overlap may differ for certain.

use rayon::prelude::*;

use super::capacity::{CapacitySearch, RunLength, play_all};
use super::{Objective, StudyError, Summary};
use crate::base::stats::mean_interval;
use crate::sched::PolicyFactory;
use crate::sim::Experiment;

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;
/// The rate of the delays, as a share of the lower capacity, if none is given.
const LOAD: f64 = 0.9;

/// A quantity of a run: its name with its unit, and its value.
type Quantity = (&'static str, fn(&Summary) -> f64);

const DELAYS: [Quantity; 4] = [
    ("mean ms", |summary| summary.mean_ms),
    ("p99 ms", |summary| summary.p99_ms),
    ("p99.9 ms", |summary| summary.p999_ms),
    ("longest ms", |summary| summary.max_ms),
];
const THROUGHPUT: Quantity = ("throughput q/s", |summary| summary.throughput_qps);

/// The difference between two policies in one quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The quantity, with its unit.
    pub what: &'static str,
    /// The rate of delays, in queries per second; `None` for capacities.
    pub rate_qps: Option<f64>,
    /// Geometric means over seeds of the first and of the second policy.
    pub means: [f64; 2],
    /// The second over the first policy, less 1.
    pub share: f64,
    /// The 95 % interval of this share; `None` for fewer than two seeds.
    pub interval: Option<(f64, f64)>,
    /// Number of seeds, or of pairs of live runs.
    pub seeds: usize,
}

impl Difference {
    /// Whether the interval excludes that the policies are equal.
    #[must_use]
    pub fn is_decided(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }

    /// The difference of values above 0, by seed; `None` without any.
    fn of(what: &'static str, rate_qps: Option<f64>, pairs: &[[f64; 2]]) -> Option<Self> {
        let pairs: Vec<[f64; 2]> = pairs.iter().copied().filter(|pair| pair.iter().all(|value| *value > 0.0)).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let ratios: Vec<f64> = pairs.iter().map(|[a, b]| (b / a).ln()).collect();
        let of = |at: usize| mean(&pairs.iter().map(|pair| pair[at].ln()).collect::<Vec<_>>()).exp();
        let interval = mean_interval(&ratios, CONFIDENCE).map(|of| (of.low.exp_m1(), of.high.exp_m1()));
        (!pairs.is_empty()).then(|| Self {
            what,
            rate_qps,
            means: [of(0), of(1)],
            share: mean(&ratios).exp_m1(),
            interval,
            seeds: pairs.len(),
        })
    }
}

/// The differences of two policies in capacity, and in delays at a rate: by default, at nine tenths of the lower capacity.
///
/// # Errors
/// If a policy does not fit the machine or breaks its contract, or all costs are 0.
pub fn paired(
    experiment: &Experiment,
    (objective, length): (Objective, RunLength),
    policies: [&dyn PolicyFactory; 2],
    rate_qps: Option<f64>,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Difference>, StudyError> {
    let capacities = |seed: usize| {
        let arrivals = vec![experiment.arrivals[seed].clone()];
        let one = Experiment { arrivals, ..experiment.clone() };
        let search = CapacitySearch::new(&one, objective, length)?;
        let found = policies.map(|policy| search.of(policy).map(|found| found.qps));
        done();
        let [a, b] = found;
        Ok([a?, b?])
    };
    // Recorded arrivals may have only their own rate, which is then given.
    let seeds = if rate_qps.is_some() && experiment.arrivals.iter().any(|of| of.available().is_some()) {
        0
    } else {
        experiment.arrivals.len()
    };
    let capacities: Vec<Result<[f64; 2], StudyError>> = (0..seeds).into_par_iter().map(capacities).collect();
    let capacities = capacities.into_iter().collect::<Result<Vec<_>, _>>()?;
    let capacity = Difference::of("capacity q/s", None, &capacities);
    let lowest = capacity.as_ref().map(|found| found.means[0].min(found.means[1]) * LOAD);
    let Some(rate_qps) = rate_qps.or(lowest) else { return Ok(Vec::new()) };
    let play = |policy| play_all(experiment, &[policy], &[rate_qps], 0.0, |_, _| true, done);
    let [first, second] = policies.map(play);
    let runs: Vec<[Summary; 2]> = first?.iter().zip(&second?).map(|(a, b)| [a.summary, b.summary]).collect();
    Ok(capacity.into_iter().chain(differences(&DELAYS, rate_qps, &runs)).collect())
}

/// The differences in throughput and delays of pairs of live runs at a rate.
#[must_use]
pub fn driven_pairs(rate_qps: f64, runs: &[[Summary; 2]]) -> Vec<Difference> {
    differences(&[THROUGHPUT], rate_qps, runs).chain(differences(&DELAYS, rate_qps, runs)).collect()
}

fn differences(of: &[Quantity], rate_qps: f64, runs: &[[Summary; 2]]) -> impl Iterator<Item = Difference> {
    of.iter().filter_map(move |&(what, of)| {
        let pairs: Vec<[f64; 2]> = runs.iter().map(|pair| [of(&pair[0]), of(&pair[1])]).collect();
        Difference::of(what, Some(rate_qps), &pairs)
    })
}
