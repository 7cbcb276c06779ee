//! Policies that serve lines: each job joins one as it arrives and stays there, first come, first served.
//!
//! ```text
//!              ┌─ line 0 ──▶ lanes of a class, the first idle one        gpu-only, cpu-only, the sides of a split
//!   arrival ───┤
//!              └─ line 1 ──▶ one lane                                    mct
//! ```
//!
//! Whoever plays such a policy needs no table of jobs and asks no lane in vain: what a lane does next is known. So the
//! simulator [plays lines](crate::sim) by themselves, several times as fast, and decides by the same code, which the
//! policy's other methods call, too.

use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;

/// Who serves a line, one job at a time on each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// All lanes of a class; of idle ones the first.
    Class(Class),
    /// This lane.
    Lane(ProcessorId),
}

/// What joins a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joining<'a> {
    /// Which arrival it is.
    pub id: JobId,
    /// The query's row in the workload.
    pub row: u32,
    /// Its expected service time on each class, alone; [`Nanos::MAX`] on those that the machine lacks.
    pub alone: &'a PerClass<Nanos>,
}

/// A policy as lines and the rule by which jobs join them.
///
/// What a lane does follows from it, and is what [`Policy::next`](super::Policy::next) would answer.
pub trait Lines {
    /// The lines, no lane in two of them.
    fn lines(&self) -> Vec<Line>;

    /// Whether the whole machine runs one job at a time, in order of arrival over all lines.
    fn is_serial(&self) -> bool {
        false
    }

    /// The line that a job joins, which arrives now: its position in [`lines`](Self::lines).
    fn join(&mut self, job: Joining<'_>, now: Nanos) -> usize;

    /// Learns that a lane starts a job that is expected to take so long there.
    fn started(&mut self, processor: ProcessorId, alone: Nanos, now: Nanos) {
        let _ = (processor, alone, now);
    }

    /// Learns that a lane has finished its job.
    fn finished(&mut self, processor: ProcessorId, now: Nanos) {
        let _ = (processor, now);
    }
}
