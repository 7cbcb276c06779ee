//! The one scheduler core, under simulated and under real time.

use super::{Batch, Job, Policy, RunLog};
use crate::ids::{Machine, ProcessorId};
use crate::time::Nanos;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job has arrived.
    Arrive(Job),
    /// A processor has finished what it was started on.
    Finish(ProcessorId),
    /// A time asked for by [`Action::WakeAt`] has come.
    Wake,
}

/// What the loop around the dispatcher has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start `batch` on `processor` now; report [`Event::Finish`] when it is done.
    Start(ProcessorId, Batch),
    /// Send [`Event::Wake`] at this time, unless an earlier wake-up is asked for meanwhile.
    WakeAt(Nanos),
}

/// A policy has broken its contract: our mistake, never the user's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy {policy} broke its contract at {now_ns} ns: {law}")]
pub struct LawBroken {
    /// The policy's name.
    pub policy: &'static str,
    /// When.
    pub now_ns: u64,
    /// Which law, with the values.
    pub law: String,
}

/// Owns the processors' states, asks the policy, checks its laws and writes the log.
pub struct Dispatcher {
    _policy: Box<dyn Policy>,
}

impl std::fmt::Debug for Dispatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher").finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// A dispatcher over an idle machine; `jobs` is how many will arrive, as far as known.
    #[must_use]
    pub fn new(machine: Machine, policy: Box<dyn Policy>, jobs: usize) -> Self {
        let _ = (machine, jobs);
        Self { _policy: policy }
    }

    /// Handles one event and appends what is to be done to `actions`.
    ///
    /// # Errors
    /// If the policy loses, repeats or invents a job, or the loop breaks the order of time.
    pub fn handle(&mut self, now: Nanos, event: Event, actions: &mut Vec<Action>) -> Result<(), LawBroken> {
        todo!("{now:?} {event:?} {actions:?}")
    }

    /// Jobs that have arrived and not finished.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        todo!()
    }

    /// Ends the run and gives its log: rows in order of arrival; jobs that never finished are not in it.
    #[must_use]
    pub fn into_log(self) -> RunLog {
        todo!()
    }
}
