//! `length-based`: queries of short lists to the GPUs, in batches, those of long ones to the CPUs.
//!
//! ```text
//!               fewer blocks than the threshold ──▶ GPU: all that waits of these, as one batch
//!   arrival ──┤
//!               as many or more ─────────────────▶ CPU: the oldest of these
//! ```
//!
//! The paper's GPU threads own ranges of documents: a long list makes them wait for the one with the fullest range, so that
//! long queries are the CPU's. Its threshold, 30,000 blocks of 64 postings, is 15,000 of ours; the best one depends on the
//! machine, and [`lab`](crate::lab) finds it. Lengths are told by row of the workload. O(1) a job.
//!
//! Source: Huang, Ren, Zhao, Stones, Zhang, Wang, Liu, "GPU-Accelerated Block-Max Query Processing", 2017, section 3.2.

use std::sync::Arc;

use super::sides::{Side, Sides};
use super::{Ask, Job, Jobs, Joining, Lane, Line, Lines, Next, Policy, PolicyError, PolicyOptions};
use crate::cost::MachineModel;
use crate::ids::JobId;
use crate::time::Nanos;

/// Short queries to GPUs, long ones to CPUs.
#[derive(Clone, Debug)]
pub struct LengthBased {
    threshold: u32,
    blocks: Arc<[u32]>,
    sides: Sides,
}

impl LengthBased {
    /// Empty queues. `blocks` has, by row of the workload, the blocks in all lists of the query; a row behind its end counts
    /// as short.
    ///
    /// # Errors
    /// If the machine lacks CPUs or GPUs, or an option makes no sense.
    pub fn new(options: &PolicyOptions, model: &MachineModel, blocks: Arc<[u32]>) -> Result<Self, PolicyError> {
        let sides = Sides::new(options, model, "length-based")?;
        Ok(Self { threshold: options.length_threshold, blocks, sides })
    }

    fn side(&self, row: u32) -> Side {
        let is_short = self.blocks.get(row as usize).is_none_or(|&blocks| blocks < self.threshold);
        if is_short { Side::Gpus } else { Side::Cpus }
    }
}

impl Policy for LengthBased {
    fn name(&self) -> &str {
        "length-based"
    }

    fn arrive(&mut self, job: &Job, _jobs: &Jobs, _now: Nanos) -> Ask {
        self.sides.arrive(job.id, self.side(job.row))
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

impl Lines for LengthBased {
    fn lines(&self) -> Vec<Line> {
        self.sides.lines()
    }

    fn join(&mut self, job: Joining<'_>, _now: Nanos) -> usize {
        self.side(job.row) as usize
    }
}
