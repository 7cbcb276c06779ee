//! `mct`: minimum completion time. Every job goes, as it arrives, to the processor that is predicted to finish it
//! first, and stays there.
//!
//! A rival that the 2009 paper lacks: an old list-scheduling rule (Braun et al. 2001; StarPU's `dm` is the same without
//! the transfers). A processor's predicted free time is what runs there now, by its estimate, and the sum of its queue;
//! estimates are corrected as jobs finish. O(processors) an arrival.

use std::collections::VecDeque;

use super::{Ask, Job, Jobs, Lane, Next, Policy, PolicyError};
use crate::ids::{JobId, ProcessorId};
use crate::machine::{Class, Machine, PerClass};
use crate::time::Nanos;

/// One processor's queue.
#[derive(Clone, Debug)]
struct Queue {
    class: Class,
    /// Jobs with their predicted service times here.
    jobs: VecDeque<(JobId, Nanos)>,
    /// The sum of these times.
    waiting: Nanos,
    /// When the running job is predicted to finish.
    free_at: Nanos,
}

/// Sends each job to the processor that is predicted to finish it first; ties go to the processor listed first.
#[derive(Clone, Debug)]
pub struct EarliestCompletion {
    queues: Vec<Queue>,
}

impl EarliestCompletion {
    /// Queues before each processor of `machine`.
    ///
    /// # Errors
    /// If `machine` has no processor.
    pub fn new(machine: &Machine) -> Result<Self, PolicyError> {
        PolicyError::require(machine, "mct", &[])?;
        let queue = |class| Queue { class, jobs: VecDeque::new(), waiting: Nanos::ZERO, free_at: Nanos::ZERO };
        Ok(Self { queues: machine.processors().map(|(_, processor)| queue(processor.class)).collect() })
    }
}

impl Policy for EarliestCompletion {
    fn name(&self) -> &str {
        "mct"
    }

    fn arrive(&mut self, job: &Job, _jobs: &Jobs, now: Nanos) -> Ask {
        let alone: PerClass<Nanos> = job.predicted.map(|cost| cost.alone);
        let mut earliest = (Nanos::MAX, 0);
        for (i, queue) in self.queues.iter().enumerate() {
            let completion = queue.free_at.max(now) + queue.waiting + alone[queue.class];
            if completion < earliest.0 {
                earliest = (completion, i);
            }
        }
        let (_, i) = earliest;
        let queue = &mut self.queues[i];
        queue.jobs.push_back((job.id, alone[queue.class]));
        queue.waiting += alone[queue.class];
        Ask::Processor(ProcessorId(i as u32))
    }

    fn next(&mut self, lane: Lane, _jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        let queue = &mut self.queues[lane.processor.index()];
        if lane.under_way > 0 {
            return Next::Wait;
        }
        let Some((job, alone)) = queue.jobs.pop_front() else { return Next::Wait };
        queue.waiting = queue.waiting - alone;
        queue.free_at = now + alone;
        batch.push(job);
        Next::Run
    }

    fn finished(&mut self, lane: Lane, _batch: &[JobId], _jobs: &Jobs, _service: Nanos, now: Nanos) -> Ask {
        self.queues[lane.processor.index()].free_at = now;
        Ask::Nobody
    }
}
