//! What a simulated query costs.

use std::time::{Duration, Instant};

use super::peak::{peak_bytes, reset_peak};
use crate::sched::{LogRow, PolicyFactory, ShedJob, Sink};
use crate::sim::{Arrivals, Experiment, SimError};

/// One policy's cost.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatorTime {
    /// The policy's name.
    pub policy: String,
    /// Nanoseconds a query, from drawing its arrival to counting its delay.
    pub ns_a_query: f64,
    /// The most memory that the process had meanwhile, if the system tells.
    pub peak_bytes: Option<u64>,
}

/// Plays `arrivals` at `rate_qps` through each policy in turn, the best of `rounds`. Only delays are summed, so that what memory
/// it takes is the simulator's.
///
/// # Errors
/// If a policy can't be made for the experiment's machine, or breaks its contract.
pub fn time_simulator(
    experiment: &Experiment,
    arrivals: &Arrivals,
    policies: &[&dyn PolicyFactory],
    rate_qps: f64,
    rounds: usize,
) -> Result<Vec<SimulatorTime>, SimError> {
    let mut least = vec![(Duration::MAX, None); policies.len()];
    for _ in 0..rounds {
        for (&policy, (least, peak)) in policies.iter().zip(&mut least) {
            // Where it can't be reset, runs of ascending lengths still tell whether longer ones take more.
            let _ = reset_peak();
            let sink = BatchMeans::new(arrivals.len());
            let began = Instant::now();
            let sink = experiment.play(policy, rate_qps, arrivals, sink, |_| false)?;
            *least = began.elapsed().min(*least);
            *peak = peak_bytes().max(*peak);
            std::hint::black_box(sink.mean_ms());
        }
    }
    let of_policy = |(&policy, (least, peak_bytes)): (&&dyn PolicyFactory, (Duration, _))| SimulatorTime {
        policy: policy.name().to_owned(),
        ns_a_query: least.as_nanos() as f64 / arrivals.len().max(1) as f64,
        peak_bytes,
    };
    Ok(policies.iter().zip(least).map(of_policy).collect())
}

/// Parts of a run whose mean delays are kept: means of so many queries are nearly independent, and their spread says how well the
/// run's mean is known.
pub(super) const BATCHES: usize = 20;

/// Sums delays by stretches of a run, in constant memory.
#[derive(Clone, Debug)]
pub(super) struct BatchMeans {
    a_batch: usize,
    ended: usize,
    sums_ns: [(u64, u64); BATCHES],
}

impl BatchMeans {
    /// Of a run of so many queries.
    pub(super) fn new(queries: usize) -> Self {
        Self { a_batch: queries.div_ceil(BATCHES).max(1), ended: 0, sums_ns: [(0, 0); BATCHES] }
    }

    /// A delay more.
    #[inline]
    pub(super) fn add(&mut self, delay_ns: u64) {
        let (sum, count) = &mut self.sums_ns[(self.ended / self.a_batch).min(BATCHES - 1)];
        *sum += delay_ns;
        *count += 1;
        self.ended += 1;
    }

    /// The mean of all delays; 0 of none.
    pub(super) fn mean_ms(&self) -> f64 {
        let (sum, count) = self.sums_ns.iter().fold((0, 0), |(sum, count), of| (sum + of.0, count + of.1));
        sum as f64 / count.max(1) as f64 / 1e6
    }

    /// The means of the parts, of those that have any.
    pub(super) fn means_ms(&self) -> Vec<f64> {
        let with_any = self.sums_ns.iter().filter(|(_, count)| *count > 0);
        with_any.map(|&(sum, count)| sum as f64 / count as f64 / 1e6).collect()
    }
}

impl Sink for BatchMeans {
    #[inline]
    fn record(&mut self, row: &LogRow) {
        self.add(row.delay().0);
    }

    fn shed(&mut self, _job: &ShedJob) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_cut_into_parts_of_equal_length() {
        let mut means = BatchMeans::new(40);
        (0..40).for_each(|i| means.add((i / 2) * 1_000_000));
        assert_eq!(means.mean_ms(), 9.5);
        assert_eq!(means.means_ms(), (0..20).map(f64::from).collect::<Vec<_>>());
        // Of few queries there are fewer parts.
        let mut few = BatchMeans::new(3);
        (0..3).for_each(|_| few.add(2_000_000));
        assert_eq!(few.means_ms(), [2.0; 3]);
        assert_eq!(BatchMeans::new(0).mean_ms(), 0.0);
    }
}
