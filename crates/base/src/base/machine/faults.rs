//! Fault plans, which say which lanes fail, when and how. Live runs inject the same plan that the simulator plays.
//!
//! A lane's fallback executor, on a CPU, gives the same answers. Each kind of fault has a rule for the lane:
//!
//! | fault | what happens | the lane afterwards |
//! | --- | --- | --- |
//! | `error` | calls fail, at a launch or an address | retired: its fallback runs the batches that it held, and all later ones |
//! | `panic` | calls panic | retired |
//! | `hang` | batches never end | retired when the watchdog's time for one batch has passed |
//! | `stall` | the lane's thread does nothing for a while | continues afterwards, or is retired if the watchdog's time passes before |
//! | `memory` | calls find no memory for a while | retried: its fallback runs the batch, and the lane the next one; retired after [`PATIENCE`] such batches in a row |
//!
//! A retired executor is never called again. A fallback has no fallback. If it fails, the run ends with an
//! error. If it hangs, a live run is given up after at least a minute ([`FaultPlan::lost_after`]).

use crate::base::ids::ProcessorId;
use crate::base::named::named_enum;
use crate::base::time::Nanos;

/// Successive batches without memory after which a lane is retired.
pub const PATIENCE: u32 = 3;

named_enum! {
    /// A kind of fault of a lane.
    pub enum FaultKind {
        /// Calls fail.
        Error = "error",
        /// Calls panic.
        Panic = "panic",
        /// Batches never end.
        Hang = "hang",
        /// Calls do nothing for a while.
        Stall = "stall",
        /// Calls find no memory for a while.
        Memory = "memory",
    }
}

impl FaultKind {
    /// Whether the fault ends by itself.
    pub fn passes(self) -> bool {
        matches!(self, Self::Stall | Self::Memory)
    }
}

/// One fault of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// Time of the fault since the start of the run.
    pub at: Nanos,
    /// Lane of the fault.
    pub processor: ProcessorId,
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Duration of faults that [pass](FaultKind::passes), else 0.
    pub lasts: Nanos,
}

impl PlannedFault {
    /// End of the fault.
    pub fn end(&self) -> Nanos {
        if self.kind.passes() { self.at + self.lasts } else { Nanos::MAX }
    }
}

/// The faults of a run, and the time after which a lane counts as hung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// Faults in order of time.
    pub faults: Vec<PlannedFault>,
    /// Time for one batch after which the lane's fallback executor replaces the lane.
    pub watchdog: Nanos,
    /// Time for one batch after which a live run is given up, on lanes without a fallback.
    pub lost_after: Nanos,
}

impl Default for FaultPlan {
    /// A plan without faults.
    fn default() -> Self {
        Self::new(Vec::new(), Self::WATCHDOG)
    }
}

impl FaultPlan {
    /// Default of the watchdog. It is far longer than any batch takes, and than a shared machine stands still: over
    /// half a second was measured on two cores that also ran compilers.
    pub const WATCHDOG: Nanos = Nanos(5_000_000_000);

    /// Minimum of [`lost_after`](Self::lost_after). A CPU may have received a batch of thousands of queries that was
    /// meant for a GPU.
    const LOST_AFTER: Nanos = Nanos(60_000_000_000);
    /// Minimum of `lost_after` in multiples of the watchdog's time.
    const LOST_AFTER_WATCHDOGS: u64 = 10;

    /// A plan of these faults, which are sorted by time.
    pub fn new(mut faults: Vec<PlannedFault>, watchdog: Nanos) -> Self {
        faults.sort_by_key(|fault| fault.at);
        let lost_after = Self::LOST_AFTER.max(Nanos(watchdog.0.saturating_mul(Self::LOST_AFTER_WATCHDOGS)));
        Self { faults, watchdog, lost_after }
    }

    /// The faults of a lane.
    pub fn of(&self, processor: ProcessorId) -> impl Iterator<Item = PlannedFault> + '_ {
        self.faults.iter().copied().filter(move |fault| fault.processor == processor)
    }
}

/// A fault that a run survived, because a fallback executor replaced the lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneFault {
    /// The lane that failed.
    pub processor: ProcessorId,
    /// Time of detection since the start of the run.
    pub at: Nanos,
    /// Kind of the fault. A stall that outlasts the watchdog is a hang.
    pub kind: FaultKind,
    /// Queries of the batch that failed. Other queries of the lane run again, too.
    pub queries: usize,
    /// Whether the fallback has replaced the lane for good.
    pub is_retired: bool,
    /// Description of the fault.
    pub what: String,
}
