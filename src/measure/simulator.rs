//! What a simulated query costs.

use std::time::{Duration, Instant};

use crate::report::summary::Tally;
use crate::sched::PolicyFactory;
use crate::sim::{Experiment, SimError};

/// One policy's cost.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatorTime {
    /// The policy's name.
    pub policy: String,
    /// Nanoseconds a query, from arrival to its place in the summary.
    pub ns_a_query: f64,
}

/// Plays the experiment's first arrivals at `rate_qps` through each policy in turn, the best of `rounds`.
///
/// # Errors
/// If a policy can't be made for the experiment's machine, or breaks its contract.
pub fn time_simulator(
    experiment: &Experiment,
    policies: &[&dyn PolicyFactory],
    rate_qps: f64,
    rounds: usize,
) -> Result<Vec<SimulatorTime>, SimError> {
    let Some(arrivals) = experiment.arrivals.first() else { return Ok(Vec::new()) };
    let mut least = vec![Duration::MAX; policies.len()];
    for _ in 0..rounds {
        for (&policy, least) in policies.iter().zip(&mut least) {
            let tally = Tally::new(&experiment.model.machine, arrivals.len());
            let began = Instant::now();
            experiment.play(policy, rate_qps, arrivals, tally, |_| false)?;
            *least = began.elapsed().min(*least);
        }
    }
    let ns_a_query = |least: Duration| least.as_nanos() as f64 / arrivals.len() as f64;
    Ok(policies
        .iter()
        .zip(least)
        .map(|(&policy, least)| SimulatorTime { policy: policy.name().to_owned(), ns_a_query: ns_a_query(least) })
        .collect())
}
