//! `mct`: minimum completion time. Every job goes, as it arrives, to the processor that is predicted to finish it
//! first, and stays there.
//!
//! A rival that the 2009 paper lacks: an old list-scheduling rule (Braun et al. 2001; StarPU's `dm` is the same without
//! the transfers). A processor's predicted free time is what runs there now, by its estimate, and the sum of its queue;
//! estimates are corrected as jobs finish. O(processors) an arrival at most: the first idle one of a class ends the search
//! among its like.

use std::collections::VecDeque;

use super::{Ask, Job, Lane, Next, Policy, PolicyError};
use crate::ids::{JobId, ProcessorId};
use crate::machine::{Class, Machine};
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

/// The positions of a class's processors, ascending: on all of them a job takes equally long.
#[derive(Clone, Debug)]
struct Lanes {
    class: Class,
    lanes: Vec<usize>,
}

/// Sends each job to the processor that is predicted to finish it first; ties go to the processor listed first.
#[derive(Clone, Debug)]
pub struct EarliestCompletion {
    queues: Vec<Queue>,
    by_class: Vec<Lanes>,
}

impl EarliestCompletion {
    /// Queues before each processor of `machine`.
    ///
    /// # Errors
    /// If `machine` has no processor.
    pub fn new(machine: &Machine) -> Result<Self, PolicyError> {
        PolicyError::require(machine, "mct", &[])?;
        let queue = |class| Queue { class, jobs: VecDeque::new(), waiting: Nanos::ZERO, free_at: Nanos::ZERO };
        let queues = machine.processors().map(|(_, processor)| queue(processor.class)).collect();
        let of = |class| machine.processors().filter(move |(_, p)| p.class == class).map(|(id, _)| id.index());
        let by_class = machine.classes().map(|class| Lanes { class, lanes: of(class).collect() }).collect();
        Ok(Self { queues, by_class })
    }
}

impl Policy for EarliestCompletion {
    fn name(&self) -> &str {
        "mct"
    }

    fn arrive(&mut self, job: &Job, now: Nanos) -> Ask {
        let mut earliest = (Nanos::MAX, 0);
        for class in &self.by_class {
            let alone = job.alone(class.class);
            // No lane of the class can do better than an idle one: the first of these ends the search.
            let soonest = now + alone;
            for &i in &class.lanes {
                let queue = &self.queues[i];
                let completion = queue.free_at.max(now) + queue.waiting + alone;
                if (completion, i) < earliest {
                    earliest = (completion, i);
                }
                if completion <= soonest {
                    break;
                }
            }
        }
        let (_, i) = earliest;
        let queue = &mut self.queues[i];
        let alone = job.alone(queue.class);
        queue.jobs.push_back((job.id, alone));
        queue.waiting += alone;
        Ask::Processor(ProcessorId(i as u32))
    }

    fn next(&mut self, lane: Lane, now: Nanos, batch: &mut Vec<JobId>) -> Next {
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

    fn finished(&mut self, lane: Lane, _batch: &[Job], _service: Nanos, now: Nanos) -> Ask {
        self.queues[lane.processor.index()].free_at = now;
        Ask::Nobody
    }
}
