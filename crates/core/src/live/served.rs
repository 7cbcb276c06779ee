//! What became of each batch that a thread worked on, piece by piece.
//!
//! ```text
//!   idle ──┤ started ── out ── picked up ── worked ── done ── back ── seen ├── idle
//!  (lane)    driver           lane's thread                    driver
//! ```
//!
//! A batch that is handed over while the one before is under way waits for that first: `out` and `worked` begin where the
//! lane is free, so that the pieces of a lane never overlap.

use crate::base::ids::ProcessorId;
use crate::base::time::Nanos;

/// A batch of a worker, from its start by the dispatcher until that learnt of its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedBatch {
    /// Its number in the log.
    pub number: u32,
    /// Where it ran.
    pub processor: ProcessorId,
    /// When it was started.
    pub started: Nanos,
    /// How long its lane had had nothing to do before.
    pub idle: Nanos,
    /// Lanes with a thread that had work when it was started, itself not counted.
    pub busy: u32,
    /// From its start, or the end of the batch before, until its lane's thread took it.
    pub out: Nanos,
    /// How long the thread was at it and at none before it.
    pub worked: Nanos,
    /// Of a lane that prepares one batch while its device works on another: how long its thread was at work since the
    /// batch before ended, comparing answers counted. Zero on others.
    pub host: Nanos,
    /// Of a batch on such a lane: how long its thread prepared it, during which it saw no other end. Zero on others.
    pub prepared: Nanos,
    /// How long such a lane's device was at this batch. Zero on others.
    pub device: Nanos,
    /// From its end until the dispatcher saw it.
    pub back: Nanos,
}

impl ServedBatch {
    /// Whether its lane prepares one batch while its device works on another.
    #[must_use]
    pub fn overlaps(&self) -> bool {
        self.host > Nanos::ZERO
    }

    /// What handing it over and back took.
    #[must_use]
    pub fn handoff(&self) -> Nanos {
        self.out + self.back
    }
}

/// What one of the driver's rounds took: all that was due was taken in, then it was decided once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Arrivals and wake-ups that it took in, ...
    pub arrivals: u32,
    /// batches that ended, ...
    pub batches: u32,
    /// and the queries that these held: each is a row of the log.
    pub answers: u32,
    /// What it took.
    pub time: Nanos,
}

/// What no event takes.
const MOST_EACH: Nanos = Nanos(500);

impl Round {
    /// By how much longer a round takes that was interrupted by something else.
    pub const INTERRUPTED: Nanos = Nanos(30_000);

    /// Arrivals, wake-ups and answered queries.
    #[must_use]
    pub fn events(&self) -> u32 {
        self.arrivals + self.answers
    }

    /// Whether the driver's thread did something else meanwhile, or nothing.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.time > Self::INTERRUPTED + Nanos(MOST_EACH.0 * u64::from(self.events()))
    }
}
