//! `cpu-only` and `gpu-only`: one FIFO queue before all processors of one kind; the other kind stays idle.
//!
//! The first two configurations of Ding et al. 2009, section 9; with c processors of the kind this is the textbook's
//! queue with c servers.

use std::collections::VecDeque;

use super::{Batch, Job, Next, Policy, PolicyError};
use crate::ids::ProcessorId;
use crate::machine::{Class, Machine};
use crate::time::Nanos;

/// Runs every job on processors of one kind, first come, first served.
#[derive(Clone, Debug)]
pub struct OnlyOn {
    kind: Class,
    machine: Machine,
    queue: VecDeque<Job>,
}

impl OnlyOn {
    /// Uses the processors of `kind` alone.
    ///
    /// # Errors
    /// If `machine` has none.
    pub fn new(kind: Class, machine: &Machine) -> Result<Self, PolicyError> {
        let policy = Self { kind, machine: machine.clone(), queue: VecDeque::new() };
        PolicyError::require(machine, policy.name(), &[kind])?;
        Ok(policy)
    }
}

impl Policy for OnlyOn {
    fn name(&self) -> &'static str {
        if self.kind.is_gpu() { "gpu-only" } else { "cpu-only" }
    }

    fn arrive(&mut self, job: Job, _now: Nanos) {
        self.queue.push_back(job);
    }

    fn next(&mut self, processor: ProcessorId, _now: Nanos) -> Next {
        if self.machine.class(processor) != self.kind {
            return Next::Wait;
        }
        self.queue.pop_front().map_or(Next::Wait, |job| Next::Run(Batch::One(job)))
    }
}
