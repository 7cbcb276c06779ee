//! The machine profile: costs of serving queries on a machine beyond their times alone.
//!
//! A workload has the time of each query alone. On a server cores wake, share caches and memory, and are sometimes taken
//! away. `profile --machine` drives the lanes as serving does, at several loads, and keeps what it saw:
//!
//! ```text
//!  single query   hand-over | (each + predicted · ratio) · after_idle · beside + stall | hand-back
//!  batch          hand-over | thread: host · ratio · beside;  device: device · ratio · beside | hand-back
//!  dispatcher     round + arrivals · a + batches · b + answers · n
//! ```
//!
//! Ratios are not fitted to a distribution. The file holds stretches of consecutive batches as they were observed, and the
//! simulator plays [blocks] of them. Slow phases and short stalls therefore appear as they did on the machine. [Pauses]
//! of 0.02 ms and more are observed on busy cores and played in time, since their number does not depend on that of
//! batches. How many lanes are busy selects the stretches: ratios are stored at one, half and all busy lanes, with hyper-
//! threads as they are.
//!
//! | in the file | meaning |
//! | --- | --- |
//! | `idle` | whether lanes spin or sleep between queries; all other numbers hold for that choice |
//! | `each_us` | time of a single query that does not depend on its length |
//! | `hand_back_us` | time from the end of the work until the dispatcher notices it |
//! | `after_idle` | hand-over time, and a factor on the work of a single query, by the lane's idle time |
//! | `beside` | factors on the work while lanes of another class are busy |
//! | `drift` | relative standard deviation of the mean ratio between rounds of the measurement |
//! | `observed` | by queries of a batch and busy lanes of the class: ratios of the time to its prediction |
//! | `power` | idle watts of each device, busy watts and energy per query by queries of a batch; only with an energy counter |
//! | `pauses` | by core: start and duration of each moment in which something else ran on it |
//! | `dispatcher` | by lanes and policy: time per round, arrival, batch and answer |
//!
//! The ratios belong to the index and the queries that the machine was measured with: queries whose lists exceed the caches
//! slow each other down more. The file is JSON for people to read and edit; errors have line and column. A class that is not
//! in the file is simulated as predicted.

pub mod blocks;
mod dispatcher;
mod file;
mod lanes;
pub mod pauses;
mod power;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use dispatcher::{DispatcherClock, DispatcherTime};
pub use lanes::interpolated;
pub use lanes::{LaneCosts, Least, Speed};
pub use pauses::{LEAST_PAUSE, PauseClock, Pauses};
pub use power::{EnergyMeter, Power};

use super::MachineModel;
use crate::base::machine::{Class, Idle, PerClass};
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
    /// Pauses of cores; `None` in files of programs that did not observe them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<Pauses>,
}

/// Costs on lanes of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneProfile {
    /// Time of a single query that does not depend on its length, in microseconds.
    pub each_us: f64,
    /// Time from the end of the work until the dispatcher notices it, in microseconds.
    pub hand_back_us: f64,
    /// Costs by idle time, ascending, interpolated over its logarithm.
    pub after_idle: Vec<AfterIdle>,
    /// Factors on the work while lanes of another class are busy, by that class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<Class, Beside>,
    /// Relative standard deviation of the mean ratio between rounds of the measurement, some seconds apart.
    pub drift: f64,
    /// Observed times, by queries of a batch, then by busy lanes, both ascending.
    pub observed: Vec<Observed>,
    /// Power of each device; `None` without an energy counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
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

/// Times of consecutive batches of one size over their predictions, at one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observed {
    /// Queries of each batch.
    pub queries: u32,
    /// Busy lanes of the class, including this one.
    pub busy: u32,
    /// Share of the thread's time before the launch. Meanwhile the thread notices no other batch's end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub prepared: f64,
    /// On lanes that hold several batches: time between the ends of two batches, over the longer of a batch's thread and
    /// device times. It is below 1 where batches overlap on the device.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub spacing: f64,
    /// Time of a single query, or the thread's time for a batch.
    pub work: Ratios,
    /// The device's time for a batch that runs alone on it; empty for single queries.
    #[serde(default, skip_serializing_if = "Ratios::is_empty")]
    pub device: Ratios,
}

/// Consecutive observed times over their predictions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratios {
    /// Ratios in thousandths.
    pub permille: Vec<u32>,
    /// Additional times that do not depend on the prediction: place in `permille`, ascending, and microseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls_us: Vec<(u32, u32)>,
}

/// Costs of the dispatcher.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatcherProfile {
    /// Costs by number of lanes, ascending.
    pub costs: Vec<DispatcherCosts>,
    /// Relative standard deviation of the mean ratio between rounds of the measurement.
    #[serde(default)]
    pub drift: f64,
    /// Ratios of rounds to their costs in files of older programs. They were misfit of the costs between loads, played as if
    /// it were variation in time, and overloaded the simulated dispatcher: they are not read (docs/tried.md).
    #[serde(default, skip_serializing)]
    #[doc(hidden)]
    pub rounds: serde::de::IgnoredAny,
}

/// Costs of the dispatcher with one number of lanes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DispatcherCosts {
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

fn one() -> f64 {
    1.0
}

fn is_one(value: &f64) -> bool {
    *value == 1.0
}

fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Ratios {
    fn is_empty(&self) -> bool {
        self.permille.is_empty()
    }

    /// The mean ratio, without stalls; 1 without ratios.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.permille.iter().map(|&permille| f64::from(permille) / 1e3).sum();
        if self.is_empty() { 1.0 } else { sum / self.permille.len() as f64 }
    }

    /// The mean additional time.
    #[must_use]
    pub fn mean_stall(&self) -> Nanos {
        let sum: u64 = self.stalls_us.iter().map(|&(_, us)| u64::from(us) * 1000).sum();
        Nanos(sum / self.permille.len().max(1) as u64)
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
        pauses: Option<Pauses>,
    ) -> Self {
        Self { format: file::FORMAT.to_owned(), version: file::VERSION, provenance, idle, classes, dispatcher, pauses }
    }

    /// The model of `predicted` on this machine. `is_played` names the classes whose lanes take recorded times as they are.
    #[must_use]
    pub fn model(&self, predicted: &MachineModel, is_played: impl Fn(Class) -> bool) -> MachineModel {
        let lanes = PerClass::from_fn(|class| {
            let of_class = self.classes.get(&class).filter(|_| !is_played(class))?;
            Some(Arc::new(LaneCosts::new(of_class)))
        });
        // Policies reckon with the hand-over between two queries that follow each other.
        let handoff = PerClass::from_fn(|class| {
            let of_class: Option<&Arc<LaneCosts>> = lanes[class].as_ref();
            of_class.map_or(Nanos::ZERO, |lanes| lanes.hand_over(Nanos::ZERO) + lanes.hand_back())
        });
        let pauses = self.pauses.as_ref().map(|pauses| Arc::new(pauses.with_lanes(predicted.machine.len())));
        MachineModel {
            lanes,
            dispatcher: Some(Arc::new(self.dispatcher.clone())),
            handoff,
            pauses,
            ..predicted.clone()
        }
    }

    /// The version of its format. Older versions lack some of today's measurements.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Most busy lanes of a class in the measurement.
    #[must_use]
    pub fn measured_lanes(&self, class: Class) -> u32 {
        self.classes.get(&class).and_then(|lanes| lanes.observed.iter().map(|one| one.busy).max()).unwrap_or(0)
    }

    /// The uncertainty of the profile: the largest relative standard deviation of a mean ratio between rounds of the
    /// measurement. Two short runs on this machine differ by as much.
    #[must_use]
    pub fn drift(&self) -> f64 {
        self.classes.values().map(|lanes| lanes.drift).fold(self.dispatcher.drift, f64::max)
    }
}
