//! Simulated delays of every policy at every rate with every seed.

use std::sync::atomic::Ordering;

use rayon::prelude::*;

use crate::base::interrupt::interrupt_flag;
use crate::base::machine::{LaneFault, Machine};
use crate::sched::{LogRow, PolicyFactory, ShedJob, Sink};
use crate::sim::{Arrivals, Experiment, SimError};
use crate::study::{PriorityTally, Summary, Tally};

/// One run of a policy at a rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Played {
    /// The policy's name.
    pub policy: String,
    /// Arrival rate, in queries per second.
    pub rate_qps: f64,
    /// The seed of its arrivals.
    pub seed: u64,
    /// The delays and other statistics.
    pub summary: Summary,
    /// The delays of each priority's queries, by its name; empty if all are alike.
    pub priorities: Vec<(String, Summary)>,
    /// The lane failures of the run.
    pub faults: Vec<LaneFault>,
    /// The share of the slowest change in the arrivals that the run covers.
    pub covered_share: f64,
}

/// Simulates every policy at every rate with every seed's arrivals; results have this order. `done` is called after
/// each run.
///
/// `wanted` selects policies (by name) and rates. Runs without arrivals and runs that an [interrupt](crate::base::interrupt)
/// cut short are left out. Runs are prolonged up to `most_covering` queries if they then [cover](Arrivals::covering)
/// their arrivals.
///
/// # Errors
/// If a policy does not fit the machine or breaks its contract.
pub fn play_all(
    experiment: &Experiment,
    policies: &[&dyn PolicyFactory],
    rates: &[f64],
    most_covering: f64,
    wanted: impl Fn(&str, f64) -> bool,
    done: &(dyn Fn() + Sync),
) -> Result<Vec<Played>, SimError> {
    let mut runs: Vec<(&dyn PolicyFactory, f64, Arrivals)> = Vec::new();
    for &policy in policies {
        for &rate_qps in rates.iter().filter(|&&rate_qps| wanted(policy.name(), rate_qps)) {
            runs.extend(
                experiment
                    .arrivals
                    .iter()
                    .map(|arrivals| (policy, rate_qps, arrivals.covering(rate_qps, most_covering))),
            );
        }
    }
    let one = |&(policy, rate_qps, ref arrivals): &(&dyn PolicyFactory, f64, Arrivals)| {
        let played = play(experiment, policy, rate_qps, arrivals)?;
        done();
        Ok(played)
    };
    let played: Vec<Result<Option<Played>, SimError>> = runs.par_iter().map(one).collect();
    played.into_iter().filter_map(Result::transpose).collect()
}

/// Simulates one run; `None` if it has no arrivals or was interrupted.
fn play(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    rate_qps: f64,
    arrivals: &Arrivals,
) -> Result<Option<Played>, SimError> {
    let stop = interrupt_flag();
    let is_stopped = || stop.load(Ordering::Relaxed);
    // A cluster reports only the rows of the slowest shards, which do not show how busy its nodes are.
    let tally = match experiment.cluster {
        Some(_) => Tally::new(&Machine::default(), arrivals.len()),
        None => {
            Tally::new(&experiment.model.machine, arrivals.len()).with_energy(&experiment.model, &experiment.queries)
        }
    };
    let levels = PriorityTally::new(arrivals.priorities().map(AsRef::as_ref));
    let is_plain = experiment.model.faults.faults.is_empty() && arrivals.priorities().is_none();
    let (tally, (faults, levels)) = if is_plain {
        (experiment.play(policy, rate_qps, arrivals, tally, |_| is_stopped())?, (LaneFaults::default(), levels))
    } else {
        let sinks = (tally, (LaneFaults::default(), levels));
        experiment.play(policy, rate_qps, arrivals, sinks, |_| is_stopped())?
    };
    if is_stopped() {
        return Ok(None);
    }
    let (policy, seed) = (policy.name().to_owned(), arrivals.seed);
    let covered_share = arrivals.covered_share(rate_qps);
    let (priorities, faults) = (levels.summaries(), faults.0);
    Ok(tally.summary().map(|summary| Played { policy, rate_qps, seed, summary, priorities, faults, covered_share }))
}

/// The lane failures of a run, in order of time.
#[derive(Debug, Default)]
struct LaneFaults(Vec<LaneFault>);

impl Sink for LaneFaults {
    fn record(&mut self, _: &LogRow) {}

    fn shed(&mut self, _: &ShedJob) {}

    fn lane_fault(&mut self, fault: &LaneFault) {
        self.0.push(fault.clone());
    }
}
