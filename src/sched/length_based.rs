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

use super::{PolicyError, PolicyOptions, Side, SideRule, Sides};
use crate::cost::MachineModel;
use crate::ids::JobId;

/// Short queries to GPUs, long ones to CPUs.
pub type LengthBased = Sides<ByLength>;

/// The rule of [`LengthBased`].
#[derive(Clone, Debug)]
pub struct ByLength {
    threshold: u32,
    blocks: Arc<[u32]>,
}

impl LengthBased {
    /// Empty queues. `blocks` has, by row of the workload, the blocks in all lists of the query; a row behind its end counts
    /// as short.
    ///
    /// # Errors
    /// If the machine lacks CPUs or GPUs, or an option makes no sense.
    pub fn new(options: &PolicyOptions, model: &MachineModel, blocks: Arc<[u32]>) -> Result<Self, PolicyError> {
        Self::by(ByLength { threshold: options.length_threshold, blocks }, options, model)
    }
}

impl SideRule for ByLength {
    const NAME: &'static str = "length-based";

    fn side(&self, _id: JobId, row: u32) -> Side {
        let is_short = self.blocks.get(row as usize).is_none_or(|&blocks| blocks < self.threshold);
        if is_short { Side::Gpus } else { Side::Cpus }
    }
}
