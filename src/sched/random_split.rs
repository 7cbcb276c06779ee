//! `random-split`: half of the queries to the GPUs, in batches, the other half to the CPUs, whatever they cost.
//!
//! What [`length-based`](super::LengthBased) is compared with in its paper. The coin is a hash of the job's number: equal
//! histories give equal decisions. O(1) a job.
//!
//! Source: Huang, Ren, Zhao, Stones, Zhang, Wang, Liu, "GPU-Accelerated Block-Max Query Processing", 2017, section 4.3.

use super::{PolicyError, PolicyOptions, Side, SideRule, Sides};
use crate::cost::MachineModel;
use crate::ids::JobId;
use crate::random::mix;

/// Each query to CPUs or GPUs by a coin.
pub type RandomSplit = Sides<ByCoin>;

/// The rule of [`RandomSplit`].
#[derive(Clone, Copy, Debug)]
pub struct ByCoin;

impl RandomSplit {
    /// Empty queues.
    ///
    /// # Errors
    /// If the machine lacks CPUs or GPUs, or an option makes no sense.
    pub fn new(options: &PolicyOptions, model: &MachineModel) -> Result<Self, PolicyError> {
        Self::by(ByCoin, options, model)
    }
}

impl SideRule for ByCoin {
    const NAME: &'static str = "random-split";

    fn side(&self, id: JobId, _row: u32) -> Side {
        let is_heads = mix(id.0.into()) & 1 == 0;
        if is_heads { Side::Gpus } else { Side::Cpus }
    }
}
