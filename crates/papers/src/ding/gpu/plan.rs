//! Order of decoding: the arrays of exceptions of all lists, deepest first, then the lists.

use cudarc::driver::{CudaSlice, PushKernelArg};
use tandem_engine::search::device::GpuError;

use super::arena::{Source, Tree};
use super::context::{PublishedGpu, launching};
use super::kernels::{PforArgument, warps_for};

/// Device addresses of the first words of an arena and of its scratch memory. If only a part of
/// the latter is allocated, this is the address that its first word would have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) words: u64,
    pub(crate) scratch: u64,
}

impl Places {
    /// Returns the address of a word of the arena.
    fn word(self, index: usize) -> u64 {
        self.words.wrapping_add(4 * index as u64)
    }

    /// Returns the argument for a tree that is decoded to `output`.
    pub(crate) fn argument(self, tree: &Tree, output: u64) -> PforArgument {
        PforArgument {
            slots: self.word(tree.slots),
            bases: tree.bases.map_or(0, |bases| self.word(bases)),
            starts: self.word(tree.starts),
            positions: self.exceptions(&tree.positions),
            overflows: self.exceptions(&tree.overflows),
            output,
            len: tree.len,
            width: tree.width,
            num_exceptions: tree.num_exceptions,
            first_block: 0,
        }
    }

    fn exceptions(self, source: &Source) -> u64 {
        match source {
            Source::Nowhere => 0,
            Source::Raw(start) => self.word(*start),
            Source::Packed { scratch, .. } => self.scratch.wrapping_add(4 * *scratch as u64),
        }
    }
}

/// A list whose exceptions are decoded, and with an output all of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decoded<'t> {
    pub(crate) tree: &'t Tree,
    pub(crate) places: Places,
    pub(crate) output: Option<u64>,
}

/// Arrays by stage. A launch decodes the arrays of a stage, which need the arrays of earlier stages.
#[derive(Debug)]
pub(crate) struct Plan {
    arguments: Vec<PforArgument>,
    /// First array, number of arrays and number of blocks of each stage.
    stages: Vec<(usize, u32, u32)>,
}

impl Plan {
    pub(crate) fn new(lists: &[Decoded<'_>]) -> Self {
        let depth = lists.iter().map(|list| list.tree.depth()).max().unwrap_or(0);
        let mut by_depth = vec![Vec::new(); depth + 1];
        for &Decoded { tree, places, output } in lists {
            if let Some(output) = output {
                by_depth[0].push(places.argument(tree, output));
            }
            collect_exceptions(places, tree, 1, &mut by_depth);
        }
        let (mut arguments, mut stages) = (Vec::new(), Vec::new());
        for mut stage in by_depth.into_iter().rev().filter(|stage| !stage.is_empty()) {
            let mut num_blocks = 0;
            for argument in &mut stage {
                argument.first_block = num_blocks;
                num_blocks += argument.len.div_ceil(super::kernels::PFOR_BLOCK_LEN as u32);
            }
            stages.push((arguments.len(), stage.len() as u32, num_blocks));
            arguments.append(&mut stage);
        }
        Self { arguments, stages }
    }

    /// Returns the number of stages, each a launch.
    pub(crate) fn num_stages(&self) -> usize {
        self.stages.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.arguments.len()
    }

    /// Copies the descriptions of arrays to `target`, which is long enough.
    pub(crate) fn upload(&self, gpu: &PublishedGpu, target: &mut CudaSlice<PforArgument>) -> Result<(), GpuError> {
        let copied = gpu.stream.memcpy_htod(&self.arguments, &mut target.slice_mut(..self.arguments.len()));
        copied.map_err(|e| GpuError::of("copying to the device", &e))
    }

    /// Decodes all stages. Without `with_sums`, the arrays of the last stage remain gaps.
    ///
    /// `d_arguments` is the target of [`upload`](Self::upload); all arrays that it describes are allocated.
    pub(crate) fn run(
        &self,
        gpu: &PublishedGpu,
        d_arguments: &CudaSlice<PforArgument>,
        with_sums: bool,
    ) -> Result<(), GpuError> {
        for (number, &(first, num_arrays, num_blocks)) in self.stages.iter().enumerate() {
            let with_sums = u32::from(with_sums || number + 1 < self.stages.len());
            let arrays = gpu.address(d_arguments) + (first * size_of::<PforArgument>()) as u64;
            let mut launch = gpu.stream.launch_builder(&gpu.kernels.pfor_decode);
            launch.arg(&arrays).arg(&num_arrays).arg(&num_blocks).arg(&with_sums);
            // SAFETY: the arguments are those of `pfor_decode` in kernels/ding/pfor.cu; `Places::argument` made the
            // uploaded descriptions from a tree whose arena, scratch memory and output are on the device.
            unsafe { launch.launch(warps_for(num_blocks)) }.map_err(launching("pfor_decode"))?;
        }
        Ok(())
    }
}

/// Adds the packed arrays of exceptions below `tree`, at this depth and deeper.
fn collect_exceptions(places: Places, tree: &Tree, depth: usize, by_depth: &mut [Vec<PforArgument>]) {
    for source in [&tree.positions, &tree.overflows] {
        if let Source::Packed { tree, .. } = source {
            by_depth[depth].push(places.argument(tree, places.exceptions(source)));
            collect_exceptions(places, tree, depth + 1, by_depth);
        }
    }
}
