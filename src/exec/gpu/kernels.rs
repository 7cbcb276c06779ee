//! The compiled kernels, and safe functions that launch them.
//!
//! Structures of `arguments.rs` and sizes here repeat those of `kernels/`; [`Kernels::load`] compares the two and
//! refuses to go on if they differ. Only this file knows the shapes of grids and blocks.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg};

use super::accepted::{MAX_K, MAX_TERMS};
use super::arguments::{
    BatchArgument, BlockArgument, DIRECTORY_STRIDE, DriverEntry, FEW_TERMS, ListsArgument, LoneArgument, NO_DIRECTORY,
    PartArgument, SCORE_BINS, SLACK_PARTS, StateArgument, TOO_MANY, TermEntry,
};
use crate::gpu::{Device, GpuError, Images, Module, shape};
use crate::index::{BLOCK_LEN, LongList};

const IMAGES: Images = Images {
    what: "the kernels",
    ptx: include_str!("../../../kernels/compiled/tandem.ptx"),
    cubin_sm_90: include_bytes!("../../../kernels/compiled/tandem.sm_90.cubin"),
};

const TILE_DOCS: u32 = 8192;
const UNION_THREADS: u32 = 256;
const DRIVE_THREADS: u32 = 128;
const MERGE_THREADS: u32 = 512;
const TRANSCODE_THREADS: u32 = 128;
const SCAN_THREADS: u32 = 1024;
const WARP: u32 = 32;

/// Warps of `score_drivers` that a multiprocessor holds at once.
const DRIVE_WARPS_RESIDENT: u32 = 32;
/// `score_union` begins with a sample where tiles have this many postings or more on average: then a sample finds a
/// threshold that spares the others most of their candidates.
const SAMPLED_POSTINGS: u64 = 64;
/// ... and where there are at least so many tiles for each one of the sample,
const SAMPLED_TILES: u32 = 4;
/// ... and where so many results are wanted: for fewer, the first tiles of a single launch find as good a threshold.
const SAMPLED_K: u32 = 64;

/// The kernels, loaded on one device.
#[derive(Debug)]
pub(super) struct Kernels {
    score_drivers: CudaFunction,
    score_lone: CudaFunction,
    score_lone_long: CudaFunction,
    score_union: CudaFunction,
    merge_topk: CudaFunction,
    measure_blocks: CudaFunction,
    scan_rows: CudaFunction,
    scan_tiles: CudaFunction,
    write_blocks: CudaFunction,
    multiprocessors: u32,
}

impl Kernels {
    /// Loads the kernels and checks that they agree with this file.
    ///
    /// # Errors
    /// If the driver refuses them, or they were compiled from another version of the sources.
    pub(super) fn load(device: &Device, stream: &Arc<CudaStream>) -> Result<Self, GpuError> {
        let module = Module::load(device, IMAGES)?;
        let layout = [
            BLOCK_LEN,
            MAX_TERMS,
            FEW_TERMS,
            MAX_K,
            TILE_DOCS as usize,
            UNION_THREADS as usize,
            DRIVE_THREADS as usize,
            MERGE_THREADS as usize,
            SCORE_BINS,
            DIRECTORY_STRIDE as usize,
            size_of::<ListsArgument>(),
            size_of::<BlockArgument>(),
            size_of::<TermEntry>(),
            size_of::<LoneArgument>(),
            size_of::<LoneArgument<FEW_TERMS>>(),
            size_of::<BatchArgument>(),
            size_of::<StateArgument>(),
            size_of::<DriverEntry>(),
            NO_DIRECTORY as usize,
            TOO_MANY as usize,
            SLACK_PARTS as usize,
        ];
        module.check_layout(stream, "tandem_layout", &layout)?;
        let layout = [TRANSCODE_THREADS, SCAN_THREADS, size_of::<LongList>() as u32, size_of::<PartArgument>() as u32];
        module.check_layout(stream, "transcode_layout", &layout.map(|size| size as usize))?;
        Ok(Self {
            score_drivers: module.function("score_drivers")?,
            score_lone: module.function("score_lone")?,
            score_lone_long: module.function("score_lone_long")?,
            score_union: module.function("score_union")?,
            merge_topk: module.function("merge_topk")?,
            measure_blocks: module.function("measure_blocks")?,
            scan_rows: module.function("scan_rows")?,
            scan_tiles: module.function("scan_tiles")?,
            write_blocks: module.function("write_blocks")?,
            multiprocessors: device.multiprocessors,
        })
    }

    /// Warps of `score_drivers` that the machine holds at once.
    pub(super) fn resident_warps(&self) -> u32 {
        self.multiprocessors * DRIVE_WARPS_RESIDENT
    }

    /// Starts `score_drivers`, a warp an item.
    ///
    /// # Safety
    /// What `lists`, `batch` and `memory` point to must be there until the kernel has ended. `batch.num_items` must be
    /// the items of all drivers, and terms be of the index that `lists` are. There must be a state for each query,
    /// clear before its first stage, room for `batch.capacity` candidates of each, and gates, if any, for each.
    pub(super) unsafe fn score_drivers(
        &self,
        stream: &CudaStream,
        lists: &ListsArgument,
        batch: &BatchArgument,
        lone: &LoneArgument,
        memory: &QueryMemory,
    ) -> Result<(), DriverError> {
        if batch.num_items == 0 {
            return Ok(());
        }
        let mut launch = stream.launch_builder(&self.score_drivers);
        launch.arg(lists).arg(batch).arg(lone).arg(&memory.states).arg(&memory.gates).arg(&memory.candidates);
        let blocks = batch.num_items.div_ceil(DRIVE_THREADS / WARP);
        // SAFETY: the arguments are those of `score_drivers` in kernels/drivers.cu, in order and type; the caller
        // vouches for what they point to.
        unsafe { launch.launch(shape(blocks, DRIVE_THREADS)) }.map(drop)
    }

    /// Starts `score_lone`: a lone query, or the first stage of one, with its results; for more than [`FEW_TERMS`]
    /// terms `score_lone_long`, which does the same.
    ///
    /// # Safety
    /// As [`Kernels::score_drivers`]; the states must be clear before the first stage. At `results` there must be
    /// room for [`LONE_RESULTS`] words until the kernel has ended.
    #[expect(clippy::too_many_arguments, reason = "they are the kernel's")]
    pub(super) unsafe fn score_lone<const TERMS: usize>(
        &self,
        stream: &CudaStream,
        lists: &ListsArgument,
        batch: &BatchArgument,
        lone: &LoneArgument<TERMS>,
        memory: &QueryMemory,
        results: u64,
        is_last_stage: bool,
    ) -> Result<(), DriverError> {
        let is_last_stage = u32::from(is_last_stage);
        const { assert!(TERMS == FEW_TERMS || TERMS == MAX_TERMS, "there is no such kernel") };
        let kernel = if TERMS == FEW_TERMS { &self.score_lone } else { &self.score_lone_long };
        let mut launch = stream.launch_builder(kernel);
        launch.arg(lists).arg(batch).arg(lone).arg(&memory.states).arg(&memory.gates).arg(&memory.candidates);
        launch.arg(&results).arg(&is_last_stage);
        let blocks = batch.num_items.div_ceil(DRIVE_THREADS / WARP).max(1);
        // SAFETY: the arguments are those of the kernel in kernels/drivers.cu, in order and type; the caller vouches
        // for what they point to.
        unsafe { launch.launch(shape(blocks, DRIVE_THREADS)) }.map(drop)
    }

    /// Starts `score_union`: one thread block a tile of documents, a sample of the tiles first where that pays.
    ///
    /// # Safety
    /// As [`Kernels::score_drivers`]; candidates must have room for k keys of every tile, or for all documents: the
    /// kernel does not look whether there is any left.
    pub(super) unsafe fn score_union(
        &self,
        stream: &CudaStream,
        lists: &ListsArgument,
        lone: &LoneArgument,
        memory: &QueryMemory,
    ) -> Result<(), DriverError> {
        let tiles = lists.num_docs.div_ceil(TILE_DOCS).max(1);
        let postings: u64 = lone.terms.iter().map(|term| u64::from(term.doc_freq)).sum();
        let pays = lone.query.k >= SAMPLED_K
            && tiles >= SAMPLED_TILES * self.multiprocessors
            && postings >= SAMPLED_POSTINGS * u64::from(tiles);
        let sample_stride = if pays { tiles / self.multiprocessors } else { 0 };
        let start = |grid: u32, is_sample: u32| {
            let mut launch = stream.launch_builder(&self.score_union);
            launch.arg(lists).arg(lone).arg(&memory.states).arg(&memory.gates).arg(&memory.candidates);
            launch.arg(&sample_stride).arg(&is_sample);
            // SAFETY: the arguments are those of `score_union` in kernels/union.cu, in order and type; the tiles of the
            // grid exist; the caller vouches for what they point to.
            unsafe { launch.launch(shape(grid, UNION_THREADS)) }.map(drop)
        };
        if pays {
            start(tiles.div_ceil(sample_stride), 1)?;
        }
        start(tiles, 0)
    }

    /// Starts `merge_topk`, which writes for each of `num_queries` the number of results and their keys to `results`,
    /// the address of pinned memory, `stride` words a query.
    ///
    /// # Safety
    /// As [`Kernels::score_drivers`]; at `results` there must be room until the kernel has ended, 1 + k words a
    /// query, each query's `stride` words behind the one before.
    #[expect(clippy::too_many_arguments, reason = "they are the kernel's")]
    pub(super) unsafe fn merge_topk(
        &self,
        stream: &CudaStream,
        batch: &BatchArgument,
        lone: &LoneArgument,
        memory: &QueryMemory,
        results: u64,
        stride: u32,
        num_queries: u32,
    ) -> Result<(), DriverError> {
        let mut launch = stream.launch_builder(&self.merge_topk);
        launch.arg(batch).arg(lone).arg(&memory.states).arg(&memory.gates).arg(&memory.candidates);
        launch.arg(&results).arg(&stride);
        // SAFETY: the arguments are those of `merge_topk` in kernels/topk.cu, in order and type; the caller vouches for
        // what they point to.
        unsafe { launch.launch(shape(num_queries, MERGE_THREADS)) }.map(drop)
    }

    /// Starts `measure_blocks`: into `counts`, the rows that each block of a part will take.
    ///
    /// # Safety
    /// What `part` points to must be there until the kernel has ended, and hold what its lists say, as an index that was
    /// opened does; each of its blocks must have a place in `counts`.
    pub(super) unsafe fn measure_blocks(
        &self,
        stream: &CudaStream,
        part: &PartArgument,
        counts: &mut RowCounts,
    ) -> Result<(), DriverError> {
        let Some(shape) = part_shape(part) else { return Ok(()) };
        let mut launch = stream.launch_builder(&self.measure_blocks);
        launch.arg(part).arg(&mut counts.d_of_blocks);
        // SAFETY: the arguments are those of `measure_blocks` in kernels/transcode.cu, in order and type; the caller
        // vouches for what they point to.
        unsafe { launch.launch(shape) }.map(drop)
    }

    /// Turns the rows of each block into those of all blocks before it, and returns how many all take.
    pub(super) fn scan_rows(&self, stream: &Arc<CudaStream>, counts: &mut RowCounts) -> Result<u64, DriverError> {
        let num_tiles = counts.d_of_tiles.len() as u32;
        let mut launch = stream.launch_builder(&self.scan_rows);
        launch.arg(&mut counts.d_of_blocks).arg(&counts.num_blocks).arg(&mut counts.d_of_tiles);
        // SAFETY: the arguments are those of `scan_rows` in kernels/transcode.cu, in order and type; there is a count
        // for each block, and one for each tile.
        unsafe { launch.launch(shape(num_tiles, SCAN_THREADS)) }?;
        let mut d_total = stream.alloc_zeros::<u64>(1)?;
        let mut launch = stream.launch_builder(&self.scan_tiles);
        launch.arg(&mut counts.d_of_tiles).arg(&num_tiles).arg(&mut d_total);
        // SAFETY: as above, for `scan_tiles`.
        unsafe { launch.launch(shape(1, SCAN_THREADS)) }?;
        let total = stream.clone_dtoh(&d_total)?;
        stream.synchronize()?;
        Ok(total[0])
    }

    /// Starts `write_blocks`: a part's blocks, rows and directory, where the scanned `counts` say.
    ///
    /// # Safety
    /// As [`Kernels::measure_blocks`], which must have measured the part; the targets must have room for all that was
    /// measured, and for the directory of each list.
    pub(super) unsafe fn write_blocks(
        &self,
        stream: &CudaStream,
        part: &PartArgument,
        counts: &RowCounts,
        (d_blocks, d_rows, d_directory): (&mut CudaSlice<BlockArgument>, &mut CudaSlice<u32>, &mut CudaSlice<u32>),
    ) -> Result<(), DriverError> {
        let Some(shape) = part_shape(part) else { return Ok(()) };
        let mut launch = stream.launch_builder(&self.write_blocks);
        launch.arg(part).arg(&counts.d_of_blocks).arg(&counts.d_of_tiles);
        launch.arg(d_blocks).arg(d_rows).arg(d_directory);
        // SAFETY: the arguments are those of `write_blocks` in kernels/transcode.cu, in order and type; the caller
        // vouches for what they point to.
        unsafe { launch.launch(shape) }.map(drop)
    }
}

/// The rows that blocks take, then how many come before them in their tile of [`SCAN_THREADS`] blocks; and before the
/// tile.
#[derive(Debug)]
pub(super) struct RowCounts {
    d_of_blocks: CudaSlice<u32>,
    d_of_tiles: CudaSlice<u32>,
    num_blocks: u32,
}

impl RowCounts {
    /// Counts of 0.
    pub(super) fn new(stream: &Arc<CudaStream>, num_blocks: u32) -> Result<Self, DriverError> {
        let d_of_blocks = stream.alloc_zeros(num_blocks.max(1) as usize)?;
        let d_of_tiles = stream.alloc_zeros(num_blocks.div_ceil(SCAN_THREADS).max(1) as usize)?;
        Ok(Self { d_of_blocks, d_of_tiles, num_blocks })
    }

    /// These rows.
    #[cfg(test)]
    pub(super) fn with(stream: &Arc<CudaStream>, rows: &[u32]) -> Result<Self, DriverError> {
        let counts = Self::new(stream, rows.len() as u32)?;
        Ok(Self { d_of_blocks: stream.clone_htod(rows)?, ..counts })
    }

    /// The rows before each block, of scanned counts.
    #[cfg(test)]
    pub(super) fn rows_before(&self, stream: &Arc<CudaStream>) -> Result<Vec<u32>, DriverError> {
        let (in_tile, before_tile) = (stream.clone_dtoh(&self.d_of_blocks)?, stream.clone_dtoh(&self.d_of_tiles)?);
        stream.synchronize()?;
        Ok(in_tile.iter().enumerate().map(|(block, rows)| before_tile[block / SCAN_THREADS as usize] + rows).collect())
    }

    /// Device memory that they take.
    pub(super) fn bytes(num_blocks: u64) -> u64 {
        4 * (num_blocks + num_blocks / u64::from(SCAN_THREADS) + 2)
    }
}

/// A warp for each block that a part has; none if it has no block.
fn part_shape(part: &PartArgument) -> Option<LaunchConfig> {
    let num_units = part.num_blocks + part.num_terms;
    (num_units > 0).then(|| shape(num_units.div_ceil(TRANSCODE_THREADS / WARP), TRANSCODE_THREADS))
}

/// Words of the results of a lone query: their number, their keys, the nanoseconds that it took, and those after
/// scoring.
pub(super) const LONE_RESULTS: usize = 3 + MAX_K;
/// The most results that `score_lone` sorts: more are better sorted by larger thread blocks.
pub(super) const LONE_K: u32 = DRIVE_THREADS;

/// Addresses of what the kernels of some queries write. `gates` is 0, or that of the states whose counts tell that
/// enough documents have all terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueryMemory {
    pub(super) states: u64,
    pub(super) gates: u64,
    pub(super) candidates: u64,
}

/// Keys that every tile of `score_union` may leave for a query, and `score_drivers` too: one for each document.
pub(super) fn num_candidates(num_docs: u32) -> usize {
    num_docs.max(1) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_has_every_kernel_and_runs_on_turing() {
        for kernel in [
            "score_drivers",
            "score_lone",
            "score_lone_long",
            "score_union",
            "merge_topk",
            "measure_blocks",
            "scan_rows",
            "scan_tiles",
            "write_blocks",
        ] {
            assert!(IMAGES.ptx.contains(&format!(".entry {kernel}(")), "{kernel} is missing: run kernels/build.py");
        }
        assert!(IMAGES.ptx.contains(".target sm_75"));
        assert!(IMAGES.cubin_sm_90.starts_with(b"\x7fELF"));
    }
}
