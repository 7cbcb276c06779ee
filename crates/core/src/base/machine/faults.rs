//! A fault plan: which lanes fail, when, and how. The same plan is injected into live runs and played by the simulator.
//!
//! A lane has a fallback executor, a CPU's, that gives the same answers. The rule for what becomes of a lane:
//!
//! | fault | what happens | what becomes of the lane |
//! | --- | --- | --- |
//! | `error` | calls fail: a launch, an address | retired: its fallback runs what it held, and all that comes after |
//! | `panic` | calls panic | retired |
//! | `hang` | what is under way never ends | retired, once the watchdog has waited for one batch as long as it does |
//! | `stall` | the lane's thread does nothing for a while | goes on afterwards; retired if the watchdog barks before |
//! | `memory` | calls find no memory for a while | retried: its fallback runs the batch, the next is its own again; retired after [`PATIENCE`] such batches in a row |
//!
//! A retired executor is never called again. Its fallback has none: should that fail, too, the run ends with an error, and should it
//! hang, a live run is given up after a minute at least ([`FaultPlan::lost_after`]).

use std::fmt;

use crate::base::ids::ProcessorId;
use crate::base::time::Nanos;

/// Batches in a row for which there was no memory: then a lane is retired.
pub const PATIENCE: u32 = 3;

/// What goes wrong on a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FaultKind {
    /// Calls fail.
    Error,
    /// Calls panic.
    Panic,
    /// Batches never end.
    Hang,
    /// Nothing happens for a while.
    Stall,
    /// Calls find no memory for a while.
    Memory,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Error, Self::Panic, Self::Hang, Self::Stall, Self::Memory];

    /// Its name, as in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Panic => "panic",
            Self::Hang => "hang",
            Self::Stall => "stall",
            Self::Memory => "memory",
        }
    }

    /// The fault of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it passes.
    #[must_use]
    pub fn passes(self) -> bool {
        matches!(self, Self::Stall | Self::Memory)
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One fault of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    /// When, from the run's beginning.
    pub at: Nanos,
    /// On which lane.
    pub processor: ProcessorId,
    /// What.
    pub kind: FaultKind,
    /// How long, for faults that [pass](FaultKind::passes); else 0.
    pub lasts: Nanos,
}

impl PlannedFault {
    /// When it is over.
    #[must_use]
    pub fn end(&self) -> Nanos {
        if self.kind.passes() { self.at + self.lasts } else { Nanos::MAX }
    }
}

/// What goes wrong in a run, and how long a batch may take before its lane counts as hung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultPlan {
    /// In order of time.
    pub faults: Vec<PlannedFault>,
    /// How long a lane may be at one batch before its fallback executor goes on in its place.
    pub watchdog: Nanos,
    /// How long a lane without a fallback may be at one batch before a live run is given up: nothing could go on with what it holds.
    pub lost_after: Nanos,
}

impl Default for FaultPlan {
    /// Nothing goes wrong.
    fn default() -> Self {
        Self::new(Vec::new(), Self::WATCHDOG)
    }
}

impl FaultPlan {
    /// What the watchdog waits where nothing else is asked for: far longer than any batch takes, and than a machine that others
    /// share stands still (over half a second was seen on two cores beside compilers).
    pub const WATCHDOG: Nanos = Nanos(5_000_000_000);

    /// What is waited at least for a lane that has no fallback, or whose fallback is at work: a CPU may have been handed a batch of
    /// thousands of queries that was meant for a GPU.
    const LOST_AFTER: Nanos = Nanos(60_000_000_000);
    /// And so many times as long as the watchdog waits.
    const LOST_AFTER_WATCHDOGS: u64 = 10;

    /// These faults, in order of time.
    #[must_use]
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

/// A fault that a run survived: a lane failed, and its fallback executor took over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneFault {
    /// Which lane.
    pub processor: ProcessorId,
    /// When it was noticed, from the run's beginning.
    pub at: Nanos,
    /// What: a stall for which the watchdog has waited in vain is a hang.
    pub kind: FaultKind,
    /// Queries of the batch that failed. Others that the lane held run again, too.
    pub queries: usize,
    /// Whether the lane goes on with its fallback for good.
    pub is_retired: bool,
    /// What was said of it, in words.
    pub what: String,
}
