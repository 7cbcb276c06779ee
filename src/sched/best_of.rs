//! `best-of`: each query on the kind of processor that is predicted to answer it sooner, one query at a time in the
//! whole machine, first come, first served.
//!
//! The third configuration of Ding et al. 2009, section 9. It shows what choosing well is worth without running in
//! parallel.

use std::collections::VecDeque;

use super::{Batch, Job, Next, Policy, PolicyError};
use crate::ids::ProcessorId;
use crate::machine::{Class, Machine};
use crate::time::Nanos;

/// Runs one job at a time, on its better kind of processor.
#[derive(Clone, Debug)]
pub struct BestOf {
    machine: Machine,
    queue: VecDeque<Job>,
    is_running: bool,
}

impl BestOf {
    /// A machine-wide queue.
    ///
    /// # Errors
    /// If `machine` lacks a kind.
    pub fn new(machine: &Machine) -> Result<Self, PolicyError> {
        PolicyError::require(machine, "best-of", &[Class::CPU, Class::GPU])?;
        Ok(Self { machine: machine.clone(), queue: VecDeque::new(), is_running: false })
    }
}

impl Policy for BestOf {
    fn name(&self) -> &'static str {
        "best-of"
    }

    fn arrive(&mut self, job: Job, _now: Nanos) {
        self.queue.push_back(job);
    }

    fn next(&mut self, processor: ProcessorId, _now: Nanos) -> Next {
        let kind = self.machine.class(processor);
        if self.is_running || self.queue.front().is_none_or(|job| job.preferred_class() != kind) {
            return Next::Wait;
        }
        self.is_running = true;
        self.queue.pop_front().map_or(Next::Wait, |job| Next::Run(Batch::One(job)))
    }

    fn finished(&mut self, _processor: ProcessorId, _batch: &Batch, _service: Nanos, _now: Nanos) {
        self.is_running = false;
    }
}
