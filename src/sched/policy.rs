//! The contract of a policy.

use super::{Batch, Job};
use crate::ids::ProcessorId;
use crate::time::Nanos;

/// What an idle processor does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Runs these jobs now.
    Run(Batch),
    /// Waits for the next event.
    Wait,
    /// Waits for the next event, at the latest until this time (to close a batching window, say).
    WaitUntil(Nanos),
}

/// Decides which waiting job an idle processor runs next.
///
/// A policy is a pure state machine: it learns the time only from `now`, which never decreases between calls, and
/// owns its queues. Equal histories give equal decisions. Every call costs O(log n) at most in the jobs waiting.
pub trait Policy: Send {
    /// Its name, as in options and files.
    fn name(&self) -> &'static str;

    /// Takes a job that has just arrived.
    fn arrive(&mut self, job: Job, now: Nanos);

    /// Chooses work for `processor`, which is idle. What it returns to run has left the policy's queues.
    fn next(&mut self, processor: ProcessorId, now: Nanos) -> Next;

    /// Learns that `processor` has finished `batch` after `service`; for policies that adapt or count.
    fn finished(&mut self, processor: ProcessorId, batch: &Batch, service: Nanos, now: Nanos) {
        let _ = (processor, batch, service, now);
    }
}
