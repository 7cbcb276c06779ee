//! Decoding of whole lists of PForDelta, many per launch.

use std::sync::Arc;

use cudarc::driver::CudaSlice;
use tandem_engine::search::device::GpuError;

use super::arena::{Arena, Tree};
use super::context::PublishedGpu;
use super::kernels::PforArgument;
use super::plan::{Decoded, Places, Plan};
use crate::codec::Column;

/// Lists in device memory with room for their decoded values.
#[derive(Debug)]
pub struct PforBatch {
    gpu: Arc<PublishedGpu>,
    trees: Vec<Tree>,
    /// Place of each list's values in the output.
    outputs: Vec<usize>,
    plan: Plan,
    d_arguments: CudaSlice<PforArgument>,
    d_output: CudaSlice<u32>,
    /// Owner of the words of the lists.
    _d_words: CudaSlice<u32>,
    _d_scratch: CudaSlice<u32>,
}

impl PforBatch {
    /// Copies lists to the device, which [`PForDelta`](crate::codec::PForDelta) encoded as `column`. Fails if device
    /// memory is too small, or if a call fails.
    pub fn upload<'a>(
        gpu: &Arc<PublishedGpu>,
        column: Column,
        lists: impl IntoIterator<Item = &'a [u32]>,
    ) -> Result<Self, GpuError> {
        let mut arena = Arena::default();
        let trees: Vec<Tree> = lists.into_iter().map(|list| arena.push_list(column, list)).collect();
        let (mut outputs, mut output_len) = (Vec::new(), 0);
        for tree in &trees {
            outputs.push(output_len);
            output_len += tree.output_len();
        }
        let d_words = gpu.upload(&arena.words)?;
        let d_scratch = gpu.zeros(arena.scratch_len)?;
        let d_output = gpu.zeros(output_len)?;
        let places = Places { words: gpu.address(&d_words), scratch: gpu.address(&d_scratch) };
        let output = gpu.address(&d_output);
        let to = |start: usize| Some(output + 4 * start as u64);
        let targets: Vec<Decoded<'_>> =
            trees.iter().zip(&outputs).map(|(tree, &start)| Decoded { tree, places, output: to(start) }).collect();
        let plan = Plan::new(&targets);
        let mut d_arguments = gpu.zeros(plan.len())?;
        plan.upload(gpu, &mut d_arguments)?;
        let gpu = Arc::clone(gpu);
        Ok(Self { gpu, trees, outputs, plan, d_arguments, d_output, _d_words: d_words, _d_scratch: d_scratch })
    }

    /// Enqueues the decoding of all lists. Without `with_sums`, documents remain gaps. Fails if a launch fails.
    pub fn decode(&self, with_sums: bool) -> Result<(), GpuError> {
        self.plan.run(&self.gpu, &self.d_arguments, with_sums)
    }

    /// Returns the number of kernels that [`decode`](Self::decode) launches.
    pub(crate) fn launches(&self) -> usize {
        self.plan.num_stages()
    }

    pub(crate) fn values(&self, list: usize) -> Result<Vec<u32>, GpuError> {
        self.gpu.download(&self.d_output, self.outputs[list], self.trees[list].len as usize)
    }

    /// Fills all outputs with a value that no list has, which exposes reads of unwritten memory.
    #[cfg(test)]
    pub(crate) fn poison(&mut self) -> Result<(), GpuError> {
        super::tests::poison(&self.gpu, &mut self._d_scratch)?;
        super::tests::poison(&self.gpu, &mut self.d_output)
    }
}
