//! Sweeps: one simulation for each point of a product of parameters.
//!
//! ```text
//!   modes × policies × CPUs × GPUs × streams × deadlines × noises × shards × replicas [× rates]
//!     │
//!     └─▶ point 17 ──play──▶ points/000017.csv ─┐
//!         point 18 ──play──▶ points/000018.csv ─┼─merge─▶ sweep.csv
//!         …                  (any process, any machine, any order)
//! ```
//!
//! Without rates a point's answer is a capacity, with them what queries wait at that rate. A point is a file of its own,
//! written whole or not at all: a sweep that was killed goes on where it was, shards of it run anywhere, and what is
//! merged is the same bytes whoever played what. The folder knows which sweep it holds by a digest of all that its
//! numbers depend on.

mod play;
mod results;

pub use play::{Sweep, SweepOptions, SweepWorkload};
pub use results::{SweepFolder, SweepRow};

use crate::query::Mode;
use crate::sched::BuiltIn;

/// What varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Axes {
    /// How the terms of queries combine.
    pub modes: Vec<Mode>,
    /// Who schedules.
    pub policies: Vec<BuiltIn>,
    /// CPU workers of a node.
    pub cpus: Vec<usize>,
    /// GPUs of a node.
    pub gpus: Vec<usize>,
    /// Streams of a GPU.
    pub streams: Vec<usize>,
    /// Time from arrival to deadline, in milliseconds.
    pub deadlines_ms: Vec<f64>,
    /// By how much the logarithm of an estimate deviates from the truth, or from what the model says.
    pub noises: Vec<f64>,
    /// Parts of the index.
    pub shards: Vec<usize>,
    /// Nodes for each part.
    pub replicas: Vec<usize>,
    /// Rates at which delays are told; none, and the capacity is.
    pub rates_qps: Vec<f64>,
}

/// One simulation of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its place in the product, from 0: the last axis varies first.
    pub number: usize,
    /// How the terms of queries combine.
    pub mode: Mode,
    /// Who schedules.
    pub policy: BuiltIn,
    /// CPU workers of a node.
    pub cpus: usize,
    /// GPUs of a node.
    pub gpus: usize,
    /// Streams of a GPU.
    pub streams: usize,
    /// Time from arrival to deadline, in milliseconds.
    pub deadline_ms: f64,
    /// By how much the logarithm of an estimate deviates.
    pub noise: f64,
    /// Parts of the index.
    pub shards: usize,
    /// Nodes for each part.
    pub replicas: usize,
    /// The rate at which delays are told; none, and the capacity is.
    pub rate_qps: Option<f64>,
}

impl Axes {
    /// How many points their product has; `None` beyond what can be counted.
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
        // The last axis varies first, as digits do.
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
