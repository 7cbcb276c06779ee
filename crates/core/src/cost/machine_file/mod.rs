//! The machine file: what serving queries costs on a machine beyond what each takes alone.
//!
//! A profile measures every query of a collection alone, one after another. A server does not serve them so: its cores
//! wait, wake, share caches and memory with each other, and now and then belong to somebody else. All that is a property
//! of the machine, not of the queries or of the policy. `profile --machine` measures it once, and simulations of any
//! workload that was profiled on that machine reckon with it:
//!
//! ```text
//!  machine.json     idle before, lanes busy ─┐
//!  x.workload.csv   alone ───────────────────┴─▶ out ── work ── back      [`LaneCosts`], asked by `ServiceTimes`
//!
//!  work = (alone · stream · in_use.times + in_use.plus) · after_idle.times · crowding · beside · speed · noise + stalls
//!  a batch's host = profiled · batch_host · speed, its device = profiled · batch_device
//!  with a workload's own `gpu_streams`: by its size, each · its own noise, and as far as batches overlap;
//!    the thread's noise remembers that of the batch before, for as long as slow batches follow each other
//! ```
//!
//! `stream`, `crowding`, `beside`, a GPU's `in_use`, `batch_host` and `batch_device` depend on what is asked of the machine, too: those that
//! were measured with a workload ([`Contention`]) take the place of the file's, which are of the queries that the machine was
//! measured with.
//!
//! | in the file | what it says |
//! | --- | --- |
//! | `idle` | whether lanes spin or sleep between queries: all other numbers hold for that |
//! | `stream` | work of a query in a stream of others, over its profile, on one busy lane |
//! | `spacing` | of a lane that holds several batches: from one query's end to the next one's, over what one takes |
//! | `in_use` | by the share of the last `memory_ms` in which the lane worked: how much longer work takes on one that is hardly used |
//! | `after_idle` | by how long the lane had had nothing to do: how long handing over takes, and how much longer work does |
//! | `hand_back_us` | from the end of the work until the dispatcher knows |
//! | `crowding` | how much longer it takes while so many lanes of the class are busy, itself counted |
//! | `beside` | the same while lanes of another class are busy |
//! | `batch_host`, `batch_device` | of batches one after another: what the lane's thread and its device take, each over what profiled batches say |
//! | `speeds` | how fast the core is, whoever else uses its other half: quantiles over moments of `speed_lasts_ms` each; of a GPU's lane how fast its thread is at batches |
//! | `noise` | how far one and the same query varies within such a moment: quantiles of its work over what is said above |
//! | `stalls` | how often a core is taken away, and for how long: interrupts, other tenants |
//! | `dispatcher` | by lanes and by policy, its time for a round, and for each arrival, batch and answer in it; how often its own core is taken away for longer than rounds vary, and for how long (`stalls`; none in files from before) |
//!
//! It is JSON for people to read and edit; what is wrong in it is told with line and column. A class that it does not
//! name is played as profiled.

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

/// More lanes of a class has no machine that a file tells of.
pub(super) const MOST_LANES: u32 = 1 << 16;

pub use batches::{AskedBatch, BatchTimes};
pub use dispatcher::DispatcherCosts;
pub(super) use file::{distribution, not_negative};
pub use lanes::{LaneCosts, LaneState};
pub use stalls::{DispatcherStalls, StallClock};

/// What serving costs on a machine beyond what queries take alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineFile {
    /// What kind of file it is, and its version.
    format: String,
    version: u64,
    /// Where it comes from: command, machine, devices.
    pub provenance: BTreeMap<String, String>,
    /// What lanes do between queries.
    pub idle: Idle,
    /// By class of processor.
    pub classes: BTreeMap<Class, LaneFile>,
    /// The dispatcher.
    pub dispatcher: DispatcherFile,
}

/// What serving costs on lanes of a class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneFile {
    /// Work in a stream over work alone.
    pub stream: f64,
    /// Of lanes that hold several batches: the share of what a query takes alone that passes between the ends of two.
    #[serde(default = "one")]
    pub spacing: f64,
    /// By the share of the lane's time that was work lately, ascending.
    pub in_use: Vec<InUse>,
    /// How long ago that share forgets.
    pub memory_ms: f64,
    /// By idle time, ascending; between two the logarithm of the idle time counts.
    pub after_idle: Vec<AfterIdle>,
    /// From the end of the work until the dispatcher knows of it.
    pub hand_back_us: f64,
    /// By busy lanes of the class, ascending, itself counted.
    pub crowding: Vec<Crowding>,
    /// By other class: how many times longer work takes while any of its lanes is busy.
    #[serde(default)]
    pub beside: BTreeMap<Class, f64>,
    /// Of batches one after another: how many times as long the lane's thread is at them as in the profile, ...
    #[serde(default = "one")]
    pub batch_host: f64,
    /// ... and the device.
    #[serde(default = "one")]
    pub batch_device: f64,
    /// Quantiles of how many times longer work takes in one moment than in all, shares ascending.
    pub speeds: Vec<Quantile>,
    /// How long such a moment lasts in the mean.
    pub speed_lasts_ms: f64,
    /// Quantiles of work over what is expected of it, shares ascending.
    pub noise: Vec<Quantile>,
    /// How often a core is taken away.
    pub stalls: Stalls,
}

/// What a lane's idle time costs the query that ends it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AfterIdle {
    /// The idle time.
    pub idle_us: f64,
    /// From the dispatcher's start until the lane is at work.
    pub hand_over_us: f64,
    /// How many times longer the work takes than without.
    pub times: f64,
}

/// What work takes on a lane that is used so much.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InUse {
    /// The share of its time.
    pub share: f64,
    /// How many times longer than in a stream.
    pub times: f64,
    /// What it takes beyond.
    pub plus_us: f64,
}

fn one() -> f64 {
    1.0
}

/// How much longer work takes while others work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crowding {
    /// Busy lanes, itself counted.
    pub busy: u32,
    /// How many times longer than on one.
    pub times: f64,
}

/// A point of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quantile {
    /// This share of all values,
    pub share: f64,
    /// is at most this.
    pub value: f64,
}

/// Moments in which a core does something else.
///
/// Of lanes they come with their work, of the dispatcher with the time, busy or idle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stalls {
    /// How many come in a second in which it does not.
    pub per_s: f64,
    /// Quantiles of how long they last, in microseconds.
    pub us: Vec<Quantile>,
}

/// What the dispatcher takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatcherFile {
    /// By the lanes that it serves, ascending.
    pub rounds: Vec<DispatcherRounds>,
    /// How often its core is taken away: what rounds take does not count them.
    #[serde(default, skip_serializing_if = "Stalls::are_none")]
    pub stalls: Stalls,
}

impl Stalls {
    /// Whether nothing is told of any.
    fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What it takes with so many lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatcherRounds {
    /// How many.
    pub lanes: u32,
    /// Under policies that are not named.
    pub any: RoundCost,
    /// By policy.
    #[serde(default)]
    pub policies: BTreeMap<String, RoundCost>,
}

/// What a round of the dispatcher takes: all that is due is taken in, then it is decided once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundCost {
    /// Any round, ...
    pub round_ns: f64,
    /// each arrival in it, ...
    pub arrival_ns: f64,
    /// each batch that ended, a query by itself too, with handing over another, ...
    pub batch_ns: f64,
    /// and each query of that batch.
    pub answer_ns: f64,
}

impl MachineFile {
    /// One of these parts, for this version.
    #[must_use]
    pub fn new(
        provenance: BTreeMap<String, String>,
        idle: Idle,
        classes: BTreeMap<Class, LaneFile>,
        dispatcher: DispatcherFile,
    ) -> Self {
        Self { format: file::FORMAT.to_owned(), version: file::VERSION, provenance, idle, classes, dispatcher }
    }

    /// `profiled` as this machine serves it, with what its queries take in company where that was measured. `is_played` says
    /// of a class that its lanes take recorded times as they are.
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
        // What policies reckon with: as between two queries of a stream.
        let handoff = PerClass::from_fn(|class| {
            let of_class: Option<&LaneCosts> = lanes[class].as_ref();
            of_class.map_or(Nanos::ZERO, |lanes| lanes.hand_over(Nanos::ZERO) + lanes.hand_back())
        });
        MachineModel { lanes, dispatcher, handoff, ..profiled.clone() }
    }
}

impl MachineModel {
    /// What a query takes in a stream of others that was profiled at these costs.
    #[must_use]
    pub fn in_stream(&self, profiled: &PerClass<Cost>) -> PerClass<Cost> {
        PerClass::from_fn(|class| match &self.lanes[class] {
            Some(lanes) => profiled[class].scaled(lanes.stream()),
            None => profiled[class],
        })
    }
}
