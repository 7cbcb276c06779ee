//! Compaction: flagged items move to the front in order.

use cudarc::driver::{CudaSlice, PushKernelArg};
use tandem_engine::search::device::GpuError;

use super::context::{PublishedGpu, launching};
use super::kernels::{Count, SCAN_THREADS, THREADS, TILE_LEN, shape};

/// Memory for the counts of tiles.
#[derive(Debug)]
pub(crate) struct Compaction {
    d_tile_counts: CudaSlice<u32>,
}

/// Documents of an intersection with their number, their places in the list in which they were found, and their scores.
#[derive(Debug)]
pub(crate) struct Matches {
    pub(crate) d_docs: CudaSlice<u32>,
    pub(crate) d_places: CudaSlice<u32>,
    pub(crate) d_scores: CudaSlice<f32>,
    pub(crate) d_count: CudaSlice<u32>,
}

impl Matches {
    pub(crate) fn new(gpu: &PublishedGpu, len: u32) -> Result<Self, GpuError> {
        let len = len as usize;
        Ok(Self {
            d_docs: gpu.zeros(len)?,
            d_places: gpu.zeros(len)?,
            d_scores: gpu.zeros(len)?,
            d_count: gpu.zeros(1)?,
        })
    }

    pub(crate) fn bytes(len: u32) -> u64 {
        12 * u64::from(len)
    }

    /// Fills all memory with ones, which exposes reads of unwritten memory.
    #[cfg(test)]
    pub(crate) fn poison(&mut self, gpu: &PublishedGpu) -> Result<(), GpuError> {
        super::tests::poison(gpu, &mut self.d_docs)?;
        super::tests::poison(gpu, &mut self.d_places)?;
        super::tests::poison(gpu, &mut self.d_scores)?;
        super::tests::poison(gpu, &mut self.d_count)
    }

    pub(crate) fn docs(&self, gpu: &PublishedGpu) -> Result<Vec<u32>, GpuError> {
        let count = gpu.download(&self.d_count, 0, 1)?[0] as usize;
        gpu.download(&self.d_docs, 0, count)
    }
}

impl Compaction {
    pub(crate) fn new(gpu: &PublishedGpu, len: u32) -> Result<Self, GpuError> {
        Ok(Self { d_tile_counts: gpu.zeros(len.div_ceil(TILE_LEN) as usize)? })
    }

    /// Fills all memory with ones, which exposes reads of unwritten memory.
    #[cfg(test)]
    pub(crate) fn poison(&mut self, gpu: &PublishedGpu) -> Result<(), GpuError> {
        super::tests::poison(gpu, &mut self.d_tile_counts)
    }

    /// Enqueues the counting of flags before each tile, with the sum in `total`. Returns the number of tiles.
    fn rank(&mut self, gpu: &PublishedGpu, flags: u64, num_flags: Count, total: u64) -> Result<u32, GpuError> {
        let num_tiles = num_flags.at_most().div_ceil(TILE_LEN).max(1);
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.count_flags);
        launch.arg(&flags).arg(&num_flags).arg(&mut self.d_tile_counts);
        // SAFETY: the arguments are those of `count_flags` in kernels/ding/intersect.cu; there are `num_flags` flags,
        // and one count per tile.
        unsafe { launch.launch(shape(num_tiles, THREADS)) }.map_err(launching("count_flags"))?;
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.scan_flags);
        launch.arg(&mut self.d_tile_counts).arg(&num_tiles).arg(&total);
        // SAFETY: the arguments are those of `scan_flags`; `total` is one word of a buffer that outlives the
        // stream's work.
        unsafe { launch.launch(shape(1, SCAN_THREADS)) }.map_err(launching("scan_flags"))?;
        Ok(num_tiles)
    }

    /// Enqueues the gathering of flagged blocks: numbers to `blocks`, ranks to `slot_of`, their count to `total`.
    pub(crate) fn gather_blocks(
        &mut self,
        gpu: &PublishedGpu,
        flags: u64,
        num_blocks: u32,
        blocks: u64,
        slot_of: u64,
        total: u64,
    ) -> Result<(), GpuError> {
        let num_tiles = self.rank(gpu, flags, Count::known(num_blocks), total)?;
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.gather_blocks);
        launch.arg(&flags).arg(&num_blocks).arg(&self.d_tile_counts).arg(&blocks).arg(&slot_of);
        // SAFETY: the arguments are those of `gather_blocks`; both targets have room for all blocks.
        unsafe { launch.launch(shape(num_tiles, THREADS)) }.map(drop).map_err(launching("gather_blocks"))
    }

    /// Enqueues the gathering of the documents that were found, with their scores if there are any.
    pub(crate) fn gather_matches(
        &mut self,
        gpu: &PublishedGpu,
        found: u64,
        num_docs: Count,
        docs: u64,
        scores: Option<u64>,
        target: &mut Matches,
    ) -> Result<(), GpuError> {
        let total = gpu.address(&target.d_count);
        let num_tiles = self.rank(gpu, found, num_docs, total)?;
        let scores = scores.unwrap_or(0);
        let mut launch = gpu.stream.launch_builder(&gpu.kernels.gather_matches);
        launch.arg(&found).arg(&num_docs).arg(&self.d_tile_counts).arg(&docs).arg(&scores);
        launch.arg(&mut target.d_docs).arg(&mut target.d_places).arg(&mut target.d_scores);
        // SAFETY: the arguments are those of `gather_matches`; there are `num_docs` documents and scores, and `target`
        // has room for all of them.
        unsafe { launch.launch(shape(num_tiles, THREADS)) }.map(drop).map_err(launching("gather_matches"))
    }
}
