//! `random-split`: half of the queries to the GPUs, in batches, the other half to the CPUs, whatever they cost.
//!
//! What [`length-based`](super::LengthBased) is compared with in its paper. The coin is a hash of the job's number: equal
//! histories give equal decisions. O(1) a job.
//!
//! Source: Huang, Ren, Zhao, Stones, Zhang, Wang, Liu, "GPU-Accelerated Block-Max Query Processing", 2017, section 4.3.

use super::sides::{Side, Sides};
use super::{Ask, Job, Jobs, Joining, Lane, Line, Lines, Next, Policy, PolicyError, PolicyOptions};
use crate::cost::MachineModel;
use crate::ids::JobId;
use crate::random::mix;
use crate::time::Nanos;

/// Each query to CPUs or GPUs by a coin.
#[derive(Clone, Debug)]
pub struct RandomSplit {
    sides: Sides,
}

impl RandomSplit {
    /// Empty queues.
    ///
    /// # Errors
    /// If the machine lacks CPUs or GPUs, or an option makes no sense.
    pub fn new(options: &PolicyOptions, model: &MachineModel) -> Result<Self, PolicyError> {
        Ok(Self { sides: Sides::new(options, model, "random-split")? })
    }

    fn side(&self, job: JobId) -> Side {
        let is_heads = mix(job.0.into()) & 1 == 0;
        if is_heads { Side::Gpus } else { Side::Cpus }
    }
}

impl Policy for RandomSplit {
    fn name(&self) -> &str {
        "random-split"
    }

    fn arrive(&mut self, job: &Job, _jobs: &Jobs, _now: Nanos) -> Ask {
        self.sides.arrive(job.id, self.side(job.id))
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        self.sides.next(lane, jobs, now, batch)
    }

    fn finished(&mut self, lane: Lane, _batch: &[JobId], _jobs: &Jobs, _service: Nanos, now: Nanos) -> Ask {
        self.sides.finished(lane, now)
    }

    fn as_lines(&mut self) -> Option<&mut dyn Lines> {
        if self.sides.is_lines() { Some(self) } else { None }
    }
}

impl Lines for RandomSplit {
    fn lines(&self) -> Vec<Line> {
        self.sides.lines()
    }

    fn join(&mut self, job: Joining<'_>, _now: Nanos) -> usize {
        self.side(job.id) as usize
    }
}
