//! The course of each batch on a thread, piece by piece.
//!
//! ```text
//!   idle ──┤ started ── out ── picked up ── worked ── done ── back ── seen ├── idle
//!  (lane)    driver           lane's thread                    driver
//! ```
//!
//! A batch that is handed over while the one before is under way waits for that first. Its `out` and `worked` begin when
//! the lane is free, so the pieces of a lane never overlap.

use tandem_model::base::ids::ProcessorId;
use tandem_model::base::time::Nanos;

/// A worker's batch, from its start by the dispatcher until the dispatcher saw its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedBatch {
    /// Its number in the log.
    pub number: u32,
    /// The processor that ran it.
    pub processor: ProcessorId,
    /// The time of its start.
    pub started: Nanos,
    /// Time for which its lane was idle before.
    pub idle: Nanos,
    /// Other lanes with a thread that were busy when it was started.
    pub busy: u32,
    /// Time from its start, or the end of the batch before, until its lane's thread took it.
    pub out: Nanos,
    /// Time in which the thread worked on it and on none before it.
    pub worked: Nanos,
    /// Working time of the thread since the end of the batch before, comparing answers included, on a lane that prepares
    /// one batch while its device works on another. Zero on other lanes.
    pub host: Nanos,
    /// Time to prepare it, on a lane that overlaps batches; its thread noticed no other end during this time. Else zero.
    pub prepared: Nanos,
    /// Time of the device on this batch, on a lane that overlaps batches; else zero.
    pub device: Nanos,
    /// Time from its end until the dispatcher saw it.
    pub back: Nanos,
}

impl ServedBatch {
    /// Whether its lane prepares one batch while its device works on another.
    #[must_use]
    pub fn overlaps(&self) -> bool {
        self.host > Nanos::ZERO
    }

    /// Time to hand it over and back.
    #[must_use]
    pub fn handoff(&self) -> Nanos {
        self.out + self.back
    }
}

/// One round of the driver: it takes in all events that are due, then decides once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Arrivals and wake-ups taken in.
    pub arrivals: u32,
    /// Batches that ended.
    pub batches: u32,
    /// Queries of these batches; each is a row of the log.
    pub answers: u32,
    /// Time of the round.
    pub time: Nanos,
}

/// Upper limit of the time for one event in an undisturbed round.
const MOST_EACH: Nanos = Nanos(500);

impl Round {
    /// Excess time from which a round counts as interrupted.
    pub const INTERRUPTED: Nanos = Nanos(30_000);

    /// Arrivals, wake-ups and answered queries.
    #[must_use]
    pub fn events(&self) -> u32 {
        self.arrivals + self.answers
    }

    /// The longest time that its events take.
    pub(super) fn explained(&self) -> Nanos {
        Nanos(MOST_EACH.0 * u64::from(self.events()))
    }

    /// Whether the driver's thread was interrupted by other work or lost its core.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.time > Self::INTERRUPTED + self.explained()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_disturbed_beyond_the_time_of_its_events() {
        let round = |time| Round { arrivals: 1, batches: 1, answers: 2, time: Nanos(time) };
        assert!(!round(31_500).is_disturbed() && round(31_501).is_disturbed());
    }
}
