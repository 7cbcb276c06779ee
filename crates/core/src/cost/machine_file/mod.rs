//! The machine file: costs of serving queries on a machine beyond their times alone.
//!
//! A profile measures every query of a collection alone, one after another. On a server, cores wait, wake, share caches and
//! memory, and are sometimes taken away by other processes. These costs belong to the machine, not to the queries or the
//! policy. `profile --machine` measures them once. Simulations of any workload that was profiled on that machine use them:
//!
//! ```text
//!  machine.json     idle before, lanes busy ─┐
//!  x.workload.csv   alone ───────────────────┴─▶ out ── work ── back      [`LaneCosts`], used by `ServiceTimes`
//!
//!  work = (alone · stream · in_use.times + in_use.plus) · after_idle.times · crowding · beside · speed · noise + stalls
//!  host time of a batch = profiled · batch_host · speed;  device time = profiled · batch_device
//!  with a workload's `gpu_streams`: factors by batch size, each · its own noise; batches may overlap on the device;
//!    the thread's noise is correlated from batch to batch
//! ```
//!
//! `stream`, `crowding`, `beside`, a GPU's `in_use`, `batch_host` and `batch_device` also depend on the queries. The file has
//! them for the queries that the machine was measured with. Values measured with a workload ([`Contention`]) replace them.
//!
//! | in the file | meaning |
//! | --- | --- |
//! | `idle` | whether lanes spin or sleep between queries; all other numbers hold for that choice |
//! | `stream` | work of a query in a stream of others, over its profile, on one busy lane |
//! | `spacing` | on a lane that holds several batches: time between the ends of two queries, over a query's time alone |
//! | `in_use` | factor on the work and extra time, by utilisation of the lane over the last `memory_ms` |
//! | `after_idle` | hand-over time and factor on the work, by the lane's idle time |
//! | `hand_back_us` | time from the end of the work until the dispatcher notices it |
//! | `crowding` | factor on the work by busy lanes of the class, including this one |
//! | `beside` | factor on the work while lanes of another class are busy |
//! | `batch_host`, `batch_device` | consecutive batches: times of the lane's thread and device over their profile |
//! | `speeds` | speed of the core, which may share its hardware with others: quantiles over moments of `speed_lasts_ms` each; on a GPU's lane the speed of its thread at batches |
//! | `noise` | variation of one query within such a moment: quantiles of its work over the expected work |
//! | `stalls` | frequency and length of stalls of a core by interrupts and other tenants |
//! | `dispatcher` | by lanes and by policy: time for a round, and for each arrival, batch and answer in it; `stalls` are those of its own core, longer than rounds vary (absent from older files) |
//!
//! The file is JSON for people to read and edit; errors have line and column. A class that is not in the file is simulated as
//! profiled.

mod batches;
mod dispatcher;
mod draws;
mod file;
mod lanes;
mod stalls;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Cost;
use super::{Contention, MachineModel};
use crate::base::machine::{Class, Idle, PerClass};
use crate::base::time::Nanos;

/// The largest number of lanes of a class in a machine file.
pub(super) const MOST_LANES: u32 = 1 << 16;

pub use batches::{AskedBatch, BatchTimes};
pub use dispatcher::DispatcherCosts;
pub(super) use file::{distribution, not_negative};
pub use lanes::{LaneCosts, LaneState};
pub use stalls::{DispatcherStalls, StallClock};

/// Costs of serving queries on a machine beyond their times alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineFile {
    format: String,
    version: u64,
    /// Origin of the file: command, machine, devices.
    pub provenance: BTreeMap<String, String>,
    /// Whether lanes spin or sleep between queries.
    pub idle: Idle,
    /// Costs by class of processor.
    pub classes: BTreeMap<Class, LaneFile>,
    /// Costs of the dispatcher.
    pub dispatcher: DispatcherFile,
}

/// Service costs on lanes of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneFile {
    /// Work in a stream over work alone.
    pub stream: f64,
    /// On lanes that hold several batches: time between the ends of two queries, as a share of a query's time alone.
    #[serde(default = "one")]
    pub spacing: f64,
    /// Costs by the lane's recent utilisation, ascending.
    pub in_use: Vec<InUse>,
    /// Length of the utilisation's memory, in milliseconds.
    pub memory_ms: f64,
    /// Costs by idle time, ascending, interpolated over its logarithm.
    pub after_idle: Vec<AfterIdle>,
    /// Time from the end of the work until the dispatcher notices it.
    pub hand_back_us: f64,
    /// Costs by busy lanes of the class, ascending, including this one.
    pub crowding: Vec<Crowding>,
    /// Factor on the work while any lane of another class is busy, by that class.
    #[serde(default)]
    pub beside: BTreeMap<Class, f64>,
    /// Thread time of consecutive batches over that of the profile.
    #[serde(default = "one")]
    pub batch_host: f64,
    /// Device time of consecutive batches over that of the profile.
    #[serde(default = "one")]
    pub batch_device: f64,
    /// Quantiles of a moment's work over the mean work, shares ascending.
    pub speeds: Vec<Quantile>,
    /// Mean length of such a moment, in milliseconds.
    pub speed_lasts_ms: f64,
    /// Quantiles of work over expected work, shares ascending.
    pub noise: Vec<Quantile>,
    /// Stalls of a lane's core.
    pub stalls: Stalls,
}

/// Costs of a lane's idle time for the query that ends it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AfterIdle {
    /// The idle time, in microseconds.
    pub idle_us: f64,
    /// Time from the dispatcher's start until work begins, in microseconds.
    pub hand_over_us: f64,
    /// Factor on the work, relative to no idle time.
    pub times: f64,
}

/// Work on a lane at one utilisation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InUse {
    /// The lane's utilisation.
    pub share: f64,
    /// Factor on the work, relative to a stream.
    pub times: f64,
    /// Extra time, in microseconds.
    pub plus_us: f64,
}

fn one() -> f64 {
    1.0
}

/// Slow-down of work by other busy lanes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crowding {
    /// Busy lanes, including this one.
    pub busy: u32,
    /// Factor on the work, relative to one busy lane.
    pub times: f64,
}

/// A point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantile {
    /// The share of values that are at most `value`.
    pub share: f64,
    /// The value of the quantile.
    pub value: f64,
}

/// Stalls of a core.
///
/// On lanes they come per time of work; for the dispatcher they come per time, busy or idle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// Stalls per second of unstalled time.
    pub per_s: f64,
    /// Quantiles of their lengths, in microseconds.
    pub us: Vec<Quantile>,
}

/// Costs of the dispatcher.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatcherFile {
    /// Costs of rounds by number of lanes, ascending.
    pub rounds: Vec<DispatcherRounds>,
    /// Stalls of its core, which are not part of the rounds' costs.
    #[serde(default, skip_serializing_if = "Stalls::are_none")]
    pub stalls: Stalls,
}

impl Stalls {
    fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Costs of rounds with one number of lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatcherRounds {
    /// Number of lanes.
    pub lanes: u32,
    /// The cost under policies that are not listed.
    pub any: RoundCost,
    /// Costs by policy.
    #[serde(default)]
    pub policies: BTreeMap<String, RoundCost>,
}

/// The cost of a round of the dispatcher, which takes in all due events and then decides once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundCost {
    /// The cost of any round.
    pub round_ns: f64,
    /// The cost of each arrival.
    pub arrival_ns: f64,
    /// The cost of each ended batch, also of one query, with handing over the next.
    pub batch_ns: f64,
    /// The cost of each query of an ended batch.
    pub answer_ns: f64,
}

impl MachineFile {
    /// A machine file of these parts, in the current version.
    #[must_use]
    pub fn new(
        provenance: BTreeMap<String, String>,
        idle: Idle,
        classes: BTreeMap<Class, LaneFile>,
        dispatcher: DispatcherFile,
    ) -> Self {
        Self { format: file::FORMAT.to_owned(), version: file::VERSION, provenance, idle, classes, dispatcher }
    }

    /// The model of `profiled` on this machine, with the contention of the workload where that was measured. `is_played` names
    /// the classes whose lanes take recorded times as they are.
    #[must_use]
    pub fn model(
        &self,
        profiled: &MachineModel,
        company: Option<&Contention>,
        is_played: impl Fn(Class) -> bool,
    ) -> MachineModel {
        let lanes = PerClass::from_fn(|class| {
            let of_class = self.classes.get(&class).filter(|_| !is_played(class))?;
            Some(LaneCosts::new(class, of_class, company))
        });
        let dispatcher = Some(DispatcherCosts::new(&self.dispatcher, profiled.machine.len()));
        // Policies reckon with the hand-over between two queries of a stream.
        let handoff = PerClass::from_fn(|class| {
            let of_class: Option<&LaneCosts> = lanes[class].as_ref();
            of_class.map_or(Nanos::ZERO, |lanes| lanes.hand_over(Nanos::ZERO) + lanes.hand_back())
        });
        MachineModel { lanes, dispatcher, handoff, ..profiled.clone() }
    }
}

impl MachineModel {
    /// The cost of a query in a stream of others, given its profiled cost.
    #[must_use]
    pub fn in_stream(&self, profiled: &PerClass<Cost>) -> PerClass<Cost> {
        PerClass::from_fn(|class| match &self.lanes[class] {
            Some(lanes) => profiled[class].scaled(lanes.stream()),
            None => profiled[class],
        })
    }
}
