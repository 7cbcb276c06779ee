//! Policies that serve queues: each job joins one as it arrives and stays there, first come, first served.
//!
//! ```text
//!              ┌─ queue 0 ──▶ lanes of a class, the first idle one        gpu-only, cpu-only, the sides of a split
//!   arrival ───┤
//!              └─ queue 1 ──▶ one lane                                    mct
//! ```
//!
//! The next step of a lane is always known, so such a policy needs no table of jobs and no polling. The simulator [plays
//! queues](crate::sim) directly, several times as fast. It uses the same code as the policy's other methods, so decisions
//! agree.

use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;

/// The servers of a queue; each lane runs one job at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueServers {
    /// All lanes of a class; the first idle one takes the next job.
    Class(Class),
    /// One lane.
    Lane(ProcessorId),
}

/// A job that joins a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedJob<'a> {
    /// The number of the arrival.
    pub id: JobId,
    /// The query's row in the workload.
    pub row: u32,
    /// Expected service time on each class, alone; [`Nanos::MAX`] on classes that the machine lacks.
    pub alone: &'a PerClass<Nanos>,
}

/// A policy as queues and the rule by which jobs join them.
///
/// Queues and rule determine what a lane does, exactly as [`Policy::next`](super::Policy::next) would answer.
pub trait FifoQueues {
    /// The queues; each lane serves at most one.
    fn queues(&self) -> Vec<QueueServers>;

    /// Whether the whole machine runs one job at a time, in order of arrival over all queues.
    fn is_serial(&self) -> bool {
        false
    }

    /// The queue of a job that arrives now, as a position in [`queues`](Self::queues).
    fn join(&mut self, job: QueuedJob<'_>, now: Nanos) -> usize;

    /// Notes that a lane starts a job with expected service time `alone`.
    fn started(&mut self, processor: ProcessorId, alone: Nanos, now: Nanos) {
        let _ = (processor, alone, now);
    }

    /// Notes that a lane has finished its job.
    fn finished(&mut self, processor: ProcessorId, now: Nanos) {
        let _ = (processor, now);
    }
}
