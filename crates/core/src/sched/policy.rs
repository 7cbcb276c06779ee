//! The contract of a policy, and the reasons why one cannot be made.

use super::{Job, Jobs, Lines, Shed};
use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::{Class, Machine};
use crate::base::random::Random;
use crate::base::time::Nanos;

/// A processor that has room for a batch, as a policy sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Which it is.
    pub processor: ProcessorId,
    /// What its costs are a column of.
    pub class: Class,
    /// Batches that it holds already: 0 when it is idle. Another one is prepared while they run.
    pub under_way: u32,
}

/// What a lane does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Runs the batch that was filled in.
    Run,
    /// As [`Run`](Self::Run); the policy had meant these jobs for another class, and counts them as stolen.
    Steal,
    /// Waits for an event that concerns it.
    Wait,
    /// The same, at the latest until this time, which lies ahead (to close a batching window, say).
    WaitUntil(Nanos),
}

/// Which lanes an event concerns: those of them that have room are asked what they do [next](Policy::next).
///
/// With it an event costs the same however many lanes are idle. Asking too many is slow, asking too few leaves work
/// lying; when in doubt, [`Everyone`](Self::Everyone).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanesToPoll {
    /// None.
    Nobody,
    /// This one.
    Processor(ProcessorId),
    /// One of the class, idle ones before those that hold a batch: to the policy they are alike.
    Class(Class),
    /// One of the class; if none has room or the one that was asked waits, those of each other class, one after another until
    /// one waits: to the policy they are alike.
    ClassThenOthers(Class),
    /// All of them, in the order of the machine, again and again until none starts anything.
    Everyone,
}

/// Decides which waiting jobs a lane runs next.
///
/// A policy is a pure state machine: it learns the time only from `now`, which never decreases between calls. The jobs
/// are the dispatcher's, in one table that every call may read; a policy orders their numbers. First come, first served
/// needs no queue of its own: [`Jobs::oldest`], [`Jobs::iter_waiting`]. Equal histories and equal [chance](Self::set_chance) give equal decisions.
/// Every call costs O(log n) at most in the jobs waiting, for each job that it hands out or takes in.
pub trait Policy: Send {
    /// Its name, as in files.
    fn name(&self) -> &str;

    /// Takes the stream that a policy which draws decides by, before the first job arrives. Without one, equal histories
    /// give equal decisions.
    fn set_chance(&mut self, chance: Random) {
        let _ = chance;
    }

    /// Learns of a job that has just arrived, and waits among `jobs`; says whom that concerns.
    fn arrive(&mut self, job: &Job, jobs: &Jobs, now: Nanos) -> LanesToPoll;

    /// Chooses work for `lane`, which has room: fills `batch`, which comes empty, with waiting jobs, or lets it wait. The
    /// jobs that it names start and wait no more.
    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next;

    /// Learns that `lane` has finished `batch` after `service`, for policies that adapt or count, and says whom that
    /// concerns besides the lane itself, which is asked in any case. Of a batch that was [dropped](Self::sheds) whole before it
    /// started, it learns at once: `batch` is then empty, and `service` zero.
    fn finished(&mut self, lane: Lane, batch: &[JobId], jobs: &Jobs, service: Nanos, now: Nanos) -> LanesToPoll {
        let _ = (lane, batch, jobs, service, now);
        LanesToPoll::Nobody
    }

    /// What the dispatcher may drop of what it takes up; asked once.
    fn sheds(&self) -> Shed {
        Shed::Nothing
    }

    /// The policy as lines that jobs join for good, if it is no more than that: then simulations are several times as fast.
    fn as_lines(&mut self) -> Option<&mut dyn Lines> {
        None
    }
}

/// Why a policy can't be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PolicyError {
    /// The machine lacks what the policy needs.
    #[error("policy {policy} needs a {class}, the machine has none: add one, or leave the policy out")]
    MissingClass {
        /// The policy.
        policy: &'static str,
        /// What is missing.
        class: Class,
    },
    /// There is nothing to run on.
    #[error("the machine has no processors: give it at least one")]
    NoProcessors,
    /// An option's value makes no sense.
    #[error("{option} is {value}, expected {expected}")]
    BadOption {
        /// The option, by the name of its field.
        option: &'static str,
        /// Its value.
        value: f64,
        /// What would do.
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
