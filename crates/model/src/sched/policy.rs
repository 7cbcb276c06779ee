//! The interface of a policy, and the errors of building one.

use super::{FifoQueues, Job, Jobs, Shed};
use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::{Class, Machine};
use crate::base::random::Random;
use crate::base::time::Nanos;

/// A processor that has room for a batch, as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// The processor.
    pub processor: ProcessorId,
    /// The class, which selects the column of costs.
    pub class: Class,
    /// Batches that it already holds; 0 when idle. Another one is prepared while they run.
    pub under_way: u32,
}

/// The next step of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Runs the chosen batch.
    Run,
    /// Runs the one chosen job together with idle lanes of its class: on this many lanes in all, or on all that are idle. Only
    /// for policies that [share jobs](Policy::shares_jobs).
    RunOn(u32),
    /// Helps this busy lane of its class with its one job until the job ends. No job may be chosen. Only for policies that
    /// [share jobs](Policy::shares_jobs).
    Join(ProcessorId),
    /// Runs the chosen batch, as [`Run`](Self::Run). Its jobs were meant for another class and count as stolen.
    Steal,
    /// Waits for an event that concerns it.
    Wait,
    /// Waits for such an event, but at most until this later time, for example to close a batching window.
    WaitUntil(Nanos),
}

/// The lanes that an event concerns. Those with room are asked for their [next](Policy::next) step.
///
/// With it, an event costs the same for any number of idle lanes. Asking too many lanes is slow; asking too few leaves jobs
/// waiting. When in doubt, use [`Everyone`](Self::Everyone).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanesToPoll {
    /// No lane.
    Nobody,
    /// This lane.
    Processor(ProcessorId),
    /// One lane of the class, preferably an idle one. The policy must treat all of them alike.
    Class(Class),
    /// One lane of the class. If none has room or it waits, lanes of each other class follow, one after another until one
    /// waits. The policy must treat lanes of a class alike.
    ClassThenOthers(Class),
    /// All lanes, in the order of the machine, repeatedly until none starts anything.
    Everyone,
}

/// Decides which waiting jobs a lane runs next.
///
/// A policy is a pure state machine: it learns the time only from `now`, which never decreases between calls. The dispatcher
/// keeps the jobs in one table that every call may read; a policy orders their numbers. First come, first served needs no
/// queue of its own: [`Jobs::oldest`], [`Jobs::iter_waiting`]. Equal histories and equal [chance](Self::set_chance) give equal
/// decisions. A call costs at most O(log n) in the waiting jobs, per job that it takes in or hands out.
pub trait Policy: Send {
    /// The name in files.
    fn name(&self) -> &str;

    /// Sets the random stream of a policy that draws, before the first job arrives. Without one, equal histories give equal
    /// decisions.
    fn set_chance(&mut self, chance: Random) {
        let _ = chance;
    }

    /// Notes a job that has just arrived and waits among `jobs`. Returns the lanes that it concerns.
    fn arrive(&mut self, job: &Job, jobs: &Jobs, now: Nanos) -> LanesToPoll;

    /// Chooses work for `lane`, which has room: fills the empty `batch` with waiting jobs, or lets the lane wait. The named
    /// jobs start and wait no more.
    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next;

    /// Notes that `lane` has finished `batch` after `service`, for policies that adapt or count. Returns the lanes that this
    /// concerns; the lane itself is always asked. For a batch whose jobs were all [dropped](Self::sheds), `batch` is empty and
    /// `service` zero.
    fn finished(&mut self, lane: Lane, batch: &[JobId], jobs: &Jobs, service: Nanos, now: Nanos) -> LanesToPoll {
        let _ = (lane, batch, jobs, service, now);
        LanesToPoll::Nobody
    }

    /// Whether jobs may occupy several lanes of a class; asked once. Idle lanes are then asked after every event, also while no
    /// job waits. The policy must treat lanes of a class alike.
    fn shares_jobs(&self) -> bool {
        false
    }

    /// Whether lanes may also [join](Next::Join) jobs that run, if the policy shares jobs. If not, queries on one lane need not be
    /// cut into pieces.
    fn joins_running(&self) -> bool {
        self.shares_jobs()
    }

    /// The jobs that the dispatcher may drop; asked once.
    fn sheds(&self) -> Shed {
        Shed::Nothing
    }

    /// The policy as queues that jobs never leave before they run, if nothing else matters. Simulations are then several times as
    /// fast.
    fn as_fifo_queues(&mut self) -> Option<&mut dyn FifoQueues> {
        None
    }
}

/// Why a policy cannot be built.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// The machine lacks what the policy needs.
    #[error("policy {policy} needs a {class}, the machine has none: add one, or leave the policy out")]
    MissingClass {
        /// The policy.
        policy: &'static str,
        /// The missing class.
        class: Class,
    },
    /// The machine has no processor.
    #[error("the machine has no processors: give it at least one")]
    NoProcessors,
    /// An option's value is out of range.
    #[error("{option} is {value}, expected {expected}")]
    BadOption {
        /// The name of the option's field.
        option: &'static str,
        /// The value.
        value: f64,
        /// The valid values.
        expected: &'static str,
    },
}

impl PolicyError {
    /// Refuses a machine without a processor or without one of `classes`.
    pub(super) fn require(machine: &Machine, policy: &'static str, classes: &[Class]) -> Result<(), Self> {
        if machine.is_empty() {
            return Err(Self::NoProcessors);
        }
        match classes.iter().find(|&&class| machine.count(class) == 0) {
            Some(&class) => Err(Self::MissingClass { policy, class }),
            None => Ok(()),
        }
    }
}
