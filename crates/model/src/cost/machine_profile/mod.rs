//! The machine profile: costs of serving queries on a machine beyond their times alone, in some forty numbers.
//!
//! A workload has the time of each query alone. On a server cores wake, and share caches and memory. `profile --machine` drives
//! the lanes as serving does, at several loads, and keeps means:
//!
//! ```text
//!  single query   hand-over | (each + predicted · work) · beside · after_idle · noise | hand-back
//!  batch          hand-over | thread: host · work · beside · noise;  device: device · device · beside · noise | hand-back
//!  dispatcher     round + arrivals · a + batches · b + answers · n
//! ```
//!
//! | in the file | meaning |
//! | --- | --- |
//! | `idle` | whether lanes spin or sleep between queries; all other numbers hold for that choice |
//! | `each_us` | time of a single query that does not depend on its length |
//! | `hand_over_us`, `hand_back_us` | time from the dispatcher's start until work begins, and from its end until it is noticed |
//! | `after_idle` | factors on the work of a single query by the idle time of its lane |
//! | `beside` | factors on the work while lanes of another class are busy |
//! | `slowdown` | by queries of a batch and busy lanes of the class: mean time over its prediction, and its spread |
//! | `power` | idle watts of each device, busy watts and energy per query by queries of a batch; only with an energy counter |
//! | `dispatcher` | by policy: time per round, arrival, batch and answer |
//!
//! `validate --recorded --set without=all` shows what predictions lose without each of them, and `docs/tried.md` what was taken out.
//! The ratios belong to the index and the queries that the machine was measured with: queries whose lists exceed the caches slow
//! each other down more. The file is JSON for people to read and edit; errors have line and column, or the value's place. A
//! class that is not in the file is simulated as predicted.

mod file;
mod lanes;
mod power;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use lanes::{LaneCosts, Least, Speed};
pub use power::Power;

use crate::base::machine::{Class, Idle};
use crate::base::time::Nanos;

/// Costs of serving queries on a machine beyond their times alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineProfile {
    format: String,
    version: u64,
    /// Origin of the file: command, machine, devices.
    pub provenance: BTreeMap<String, String>,
    /// Whether lanes spin or sleep between queries.
    pub idle: Idle,
    /// Costs by class of processor.
    pub classes: BTreeMap<Class, LaneProfile>,
    /// Costs of the dispatcher.
    pub dispatcher: DispatcherProfile,
}

/// Costs on lanes of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneProfile {
    /// Time of a single query that does not depend on its length, in microseconds.
    pub each_us: f64,
    /// Time from the dispatcher's start until work begins, in microseconds.
    pub hand_over_us: f64,
    /// Time from the end of the work until the dispatcher notices it, in microseconds.
    pub hand_back_us: f64,
    /// Idle times of a lane in microseconds, ascending, and factors on the work of the single query that ends them. They are
    /// interpolated over the logarithm of the time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after_idle: Vec<(f64, f64)>,
    /// Factors on the work while lanes of another class are busy, by that class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<Class, Beside>,
    /// Mean times over their predictions, by queries of a batch, then by busy lanes, both ascending.
    pub slowdown: Vec<Slowdown>,
    /// Power of each device; `None` without an energy counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
}

/// Slow-down by busy lanes of another class.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Number of busy lanes of the other class; with fewer, the slow-down is in proportion.
    pub lanes: u32,
    /// Factor on the work of a query, or on the thread's time for a batch.
    pub work: f64,
    /// Factor on the device's time for a batch.
    pub device: f64,
}

/// Mean times of batches of one size over their predictions, at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slowdown {
    /// Queries of each batch.
    pub queries: u32,
    /// Busy lanes of the class, including this one.
    pub busy: u32,
    /// Time of a single query, or the thread's time for a batch.
    pub work: f64,
    /// The device's time for a batch that runs alone on it.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub device: f64,
    /// Share of the thread's time before the launch. Meanwhile the thread notices no other batch's end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub prepared: f64,
    /// On lanes that hold several batches: time between the ends of two batches, over the longer of a batch's thread and
    /// device times. It is below 1 where batches overlap on the device.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub spacing: f64,
    /// Variation of `work` from batch to batch.
    #[serde(default)]
    pub spread: Spread,
}

/// Variation of times around their mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Spread {
    /// The relative standard deviation of a lognormal distribution.
    Deviation(f64),
    /// Equally likely times, in any unit.
    Factors(Vec<f64>),
}

impl Default for Spread {
    fn default() -> Self {
        Self::Deviation(0.0)
    }
}

impl Default for Slowdown {
    /// A single query that takes its time alone.
    fn default() -> Self {
        let (prepared, spread) = (0.0, Spread::default());
        Self { queries: 1, busy: 1, work: 1.0, device: 1.0, prepared, spacing: 1.0, spread }
    }
}

/// The dispatcher's costs. A round takes in all due events, then decides once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decisions {
    /// Time per round.
    #[serde(rename = "round_ns")]
    pub round: Nanos,
    /// Time per arrival or wake-up.
    #[serde(rename = "arrival_ns")]
    pub arrival: Nanos,
    /// Time per ended batch, also of one query, with handing over the next.
    #[serde(rename = "batch_ns")]
    pub batch: Nanos,
    /// Time per query of an ended batch.
    #[serde(rename = "answer_ns")]
    pub answer: Nanos,
}

impl Decisions {
    /// Costs of `event` for each arrival and each answered query, and nothing else.
    #[must_use]
    pub fn each(event: Nanos) -> Self {
        Self { arrival: event, answer: event, ..Self::default() }
    }

    /// The end of the round that begins at `now`, with these numbers of arrivals or wake-ups, ended batches, and answers.
    #[must_use]
    #[inline(always)]
    pub fn end_of_round(&self, now: Nanos, arrivals: u32, batches: u32, answers: u32) -> Nanos {
        now + self.of(arrivals, batches, answers)
    }

    /// The time of a round with these numbers of arrivals or wake-ups, ended batches, and answered queries.
    #[must_use]
    #[inline(always)]
    pub fn of(&self, arrivals: u32, batches: u32, answers: u32) -> Nanos {
        let parts = [(self.arrival, arrivals), (self.batch, batches), (self.answer, answers)];
        parts.into_iter().fold(self.round, |sum, (each, count)| sum + Nanos(each.0.saturating_mul(count.into())))
    }
}

/// Costs of the dispatcher.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatcherProfile {
    /// The costs under policies that are not listed.
    pub any: Decisions,
    /// The costs by policy.
    #[serde(default)]
    pub policies: BTreeMap<String, Decisions>,
}

fn one() -> f64 {
    1.0
}

fn is_one(value: &f64) -> bool {
    *value == 1.0
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl DispatcherProfile {
    /// The costs under a policy of this name.
    #[must_use]
    pub fn decisions(&self, policy: &str) -> Decisions {
        *self.policies.get(policy).unwrap_or(&self.any)
    }
}

impl MachineProfile {
    /// A profile of these parts, in the current version.
    #[must_use]
    pub fn new(
        provenance: BTreeMap<String, String>,
        idle: Idle,
        classes: BTreeMap<Class, LaneProfile>,
        dispatcher: DispatcherProfile,
    ) -> Self {
        Self { format: file::FORMAT.to_owned(), version: file::VERSION, provenance, idle, classes, dispatcher }
    }

    /// The version of its format. Older versions lack some of today's measurements.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Most busy lanes of a class in the measurement.
    #[must_use]
    pub fn measured_lanes(&self, class: Class) -> u32 {
        self.classes.get(&class).and_then(|lanes| lanes.slowdown.iter().map(|one| one.busy).max()).unwrap_or(0)
    }

    /// The number of queries that a server behind HTTP answers at once, whose profile this is; `None` for other machines.
    #[must_use]
    pub fn server_lanes(&self) -> Option<usize> {
        self.provenance.contains_key("target").then(|| self.measured_lanes(Class::CPU) as usize)
    }
}
