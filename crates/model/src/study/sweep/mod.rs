//! Sweeps: one simulation per point of a product of parameters.
//!
//! ```text
//!   modes × policies × CPUs × GPUs × streams × deadlines × noises × shards × replicas [× rates]
//!     │
//!     └─▶ point 17 ──play──▶ points/000017.csv ─┐
//!         point 18 ──play──▶ points/000018.csv ─┼─merge─▶ sweep.csv
//!         …                  (any process, any machine, any order)
//! ```
//!
//! Without rates a point yields a capacity, with rates the delays at its rate. Each point is written to its own file,
//! completely or not at all. A sweep can therefore resume after a crash and run in parts on several machines, and the
//! merged bytes are always equal. The folder identifies its sweep by a digest of all inputs.

mod play;
mod results;

pub use play::{Sweep, SweepOptions, SweepWorkload};
pub use results::{SweepFolder, SweepRow};

use crate::sched::BuiltIn;
use crate::traffic::Mode;

/// The parameters that vary.
#[derive(Clone, Debug, PartialEq)]
pub struct Axes {
    /// Query modes: how terms combine.
    pub modes: Vec<Mode>,
    /// Scheduling policies.
    pub policies: Vec<BuiltIn>,
    /// Numbers of CPU workers per node.
    pub cpus: Vec<usize>,
    /// Numbers of GPUs per node.
    pub gpus: Vec<usize>,
    /// Numbers of streams per GPU.
    pub streams: Vec<usize>,
    /// Deadlines after arrival, in milliseconds.
    pub deadlines_ms: Vec<f64>,
    /// Standard deviations of the noise on the logarithm of estimates.
    pub noises: Vec<f64>,
    /// Numbers of index shards.
    pub shards: Vec<usize>,
    /// Numbers of nodes per shard.
    pub replicas: Vec<usize>,
    /// Rates at which delays are simulated; if empty, capacities are searched.
    pub rates_qps: Vec<f64>,
}

/// One simulation of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its index in the product, from 0; the last axis varies fastest.
    pub number: usize,
    /// Query mode: how terms combine.
    pub mode: Mode,
    /// Scheduling policy.
    pub policy: BuiltIn,
    /// Number of CPU workers per node.
    pub cpus: usize,
    /// Number of GPUs per node.
    pub gpus: usize,
    /// Number of streams per GPU.
    pub streams: usize,
    /// Deadline after arrival, in milliseconds.
    pub deadline_ms: f64,
    /// Standard deviation of the noise on the logarithm of estimates.
    pub noise: f64,
    /// Number of index shards.
    pub shards: usize,
    /// Number of nodes per shard.
    pub replicas: usize,
    /// The rate at which delays are simulated; `None` searches the capacity.
    pub rate_qps: Option<f64>,
}

impl Axes {
    /// Number of points in the product; `None` on overflow.
    #[must_use]
    pub fn num_points(&self) -> Option<usize> {
        let counts = [
            self.modes.len(),
            self.policies.len(),
            self.cpus.len(),
            self.gpus.len(),
            self.streams.len(),
            self.deadlines_ms.len(),
            self.noises.len(),
            self.shards.len(),
            self.replicas.len(),
            self.rates_qps.len().max(1),
        ];
        counts.into_iter().try_fold(1_usize, usize::checked_mul)
    }

    /// All points, in order.
    #[must_use]
    pub fn points(&self) -> Vec<Point> {
        let rates: Vec<Option<f64>> =
            if self.rates_qps.is_empty() { vec![None] } else { self.rates_qps.iter().copied().map(Some).collect() };
        let total = self.num_points().unwrap_or(0);
        (0..total).map(|number| self.point(number, &rates)).collect()
    }

    fn point(&self, number: usize, rates: &[Option<f64>]) -> Point {
        let mut left = number;
        // The last axis varies fastest, like the last digit of a number.
        let mut digit = |count: usize| {
            let digit = left % count;
            left /= count;
            digit
        };
        let rate_qps = rates[digit(rates.len())];
        let replicas = self.replicas[digit(self.replicas.len())];
        let shards = self.shards[digit(self.shards.len())];
        let noise = self.noises[digit(self.noises.len())];
        let deadline_ms = self.deadlines_ms[digit(self.deadlines_ms.len())];
        let streams = self.streams[digit(self.streams.len())];
        let gpus = self.gpus[digit(self.gpus.len())];
        let cpus = self.cpus[digit(self.cpus.len())];
        let policy = self.policies[digit(self.policies.len())].clone();
        let mode = self.modes[digit(self.modes.len())];
        Point { number, mode, policy, cpus, gpus, streams, deadline_ms, noise, shards, replicas, rate_qps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::{PolicyKind, PolicyOptions};

    #[test]
    fn every_combination_is_one_point_and_the_last_axis_varies_first() {
        let policy = |kind: PolicyKind| kind.with(PolicyOptions::default());
        let axes = Axes {
            modes: vec![Mode::And, Mode::Or],
            policies: vec![policy(PolicyKind::Mct), policy(PolicyKind::CpuOnly)],
            cpus: vec![1, 2, 4],
            gpus: vec![1],
            streams: vec![1],
            deadlines_ms: vec![50.0],
            noises: vec![0.0, 0.5],
            shards: vec![1],
            replicas: vec![1, 2],
            rates_qps: Vec::new(),
        };
        let points = axes.points();
        assert_eq!((points.len(), axes.num_points()), (48, Some(48)));
        let told = |point: &Point| {
            format!("{} {} {} {} {}", point.mode, point.policy.kind, point.cpus, point.noise, point.replicas)
        };
        assert_eq!(
            points[..3].iter().map(told).collect::<Vec<_>>(),
            ["and mct 1 0 1", "and mct 1 0 2", "and mct 1 0.5 1"]
        );
        let mut distinct: Vec<String> = points.iter().map(told).collect();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 48);
        assert!(points.iter().enumerate().all(|(number, point)| point.number == number && point.rate_qps.is_none()));
        let with_rates = Axes { rates_qps: vec![10.0, 20.0], ..axes };
        assert_eq!(with_rates.points()[1].rate_qps, Some(20.0));
    }
}
