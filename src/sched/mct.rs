//! `mct`: minimum completion time. Every job goes, as it arrives, to the processor that is predicted to finish it
//! first, and stays there.
//!
//! A rival that the 2009 paper lacks: an old list-scheduling rule (Braun et al. 2001; StarPU's `dm` is the same without
//! the transfers). A processor's predicted free time is what runs there now, by its estimate, and the sum of its queue;
//! estimates are corrected as jobs finish. O(processors) an arrival.

use std::collections::VecDeque;

use super::{Batch, Job, Next, Policy, PolicyError};
use crate::ids::ProcessorId;
use crate::machine::{Class, Machine};
use crate::time::Nanos;

/// One processor's queue.
#[derive(Clone, Debug)]
struct Lane {
    kind: Class,
    queue: VecDeque<Job>,
    /// Sum of the queue's predicted service times.
    queued: Nanos,
    /// When the running job is predicted to finish.
    free_at: Nanos,
}

/// Sends each job to the processor that is predicted to finish it first; ties go to the processor listed first.
#[derive(Clone, Debug)]
pub struct EarliestCompletion {
    lanes: Vec<Lane>,
}

impl EarliestCompletion {
    /// Queues before each processor of `machine`.
    ///
    /// # Errors
    /// If `machine` has no processor.
    pub fn new(machine: &Machine) -> Result<Self, PolicyError> {
        PolicyError::require(machine, "mct", &[])?;
        let lane = |(_, processor): (_, crate::machine::Processor)| Lane {
            kind: processor.class,
            queue: VecDeque::new(),
            queued: Nanos::ZERO,
            free_at: Nanos::ZERO,
        };
        Ok(Self { lanes: machine.processors().map(lane).collect() })
    }
}

impl Policy for EarliestCompletion {
    fn name(&self) -> &'static str {
        "mct"
    }

    fn arrive(&mut self, job: Job, now: Nanos) {
        let completion = |lane: &&mut Lane| lane.free_at.max(now) + lane.queued + job.predicted[lane.kind];
        // `min_by_key` keeps the first of equals.
        if let Some(lane) = self.lanes.iter_mut().min_by_key(completion) {
            lane.queued += job.predicted[lane.kind];
            lane.queue.push_back(job);
        }
    }

    fn next(&mut self, processor: ProcessorId, now: Nanos) -> Next {
        let lane = &mut self.lanes[processor.index()];
        let Some(job) = lane.queue.pop_front() else { return Next::Wait };
        lane.queued = lane.queued - job.predicted[lane.kind];
        lane.free_at = now + job.predicted[lane.kind];
        Next::Run(Batch::One(job))
    }

    fn finished(&mut self, processor: ProcessorId, _batch: &Batch, _service: Nanos, now: Nanos) {
        self.lanes[processor.index()].free_at = now;
    }
}
