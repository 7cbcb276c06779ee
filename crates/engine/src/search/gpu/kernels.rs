//! The compiled kernels, and functions that launch them.
//!
//! The structures of `arguments.rs` and the sizes here repeat those of `kernels/`. [`Kernels::load`] refuses
//! differences. Only this file knows the shapes of grids and thread blocks.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg};

use super::arguments::{
    BatchArgument, BatchEntry, BlockArgument, DirectoryEntry, DriverEntry, FEW_TERMS, ListsArgument, LoneArgument,
    MAX_K, MAX_TERMS, NO_GATE, PartArgument, RunArgument, SCORE_BINS, SLACK_PARTS, SMALL_INPUT_WORDS, SmallInput,
    StateArgument, TOO_MANY, TermEntry, TileEntry, WARP_K, field_offsets, transcode_field_offsets,
};
use super::lists::DeviceLists;
use super::tiered::Rows;
use crate::index::{BLOCK_LEN, LongList};
use crate::search::device::wait::wait;
use crate::search::device::{Device, GpuError, Images, Module, shape};

const IMAGES: Images = Images {
    what: "the kernels",
    ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/tandem.ptx")),
    cubin_sm_90: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/tandem.sm_90.cubin")),
};

pub(crate) const TILE_DOCS: u32 = 8192;
/// The most tiles of a thread block of `score_tiles`.
pub(crate) const GROUP_TILES: u32 = 8;
const TILE_THREADS: u32 = 256;
const LONE_THREADS: u32 = 128;
const BATCH_THREADS: u32 = 64;
const MERGE_THREADS: u32 = 512;
const TRANSCODE_THREADS: u32 = 128;
const SCAN_THREADS: u32 = 1024;
const WARP: u32 = 32;

/// Sizes that the kernels share with the host, `tandem_layout` in tandem.cuh.
fn sizes() -> Vec<usize> {
    vec![
        BLOCK_LEN,
        MAX_TERMS,
        FEW_TERMS,
        MAX_K,
        WARP_K,
        TILE_DOCS as usize,
        GROUP_TILES as usize,
        TILE_THREADS as usize,
        LONE_THREADS as usize,
        BATCH_THREADS as usize,
        MERGE_THREADS as usize,
        SCORE_BINS,
        size_of::<ListsArgument>(),
        size_of::<BlockArgument>(),
        size_of::<DirectoryEntry>(),
        size_of::<TermEntry>(),
        size_of::<LoneArgument>(),
        size_of::<LoneArgument<FEW_TERMS>>(),
        size_of::<BatchEntry>(),
        size_of::<TileEntry>(),
        size_of::<BatchArgument>(),
        SMALL_INPUT_WORDS,
        size_of::<RunArgument>(),
        size_of::<StateArgument>(),
        size_of::<DriverEntry>(),
        NO_GATE as usize,
        TOO_MANY as usize,
        SLACK_PARTS as usize,
    ]
}

/// Sizes that the kernels of uploads share with the host, `transcode_layout` in tandem.cu.
fn transcode_sizes() -> Vec<usize> {
    vec![TRANSCODE_THREADS as usize, SCAN_THREADS as usize, size_of::<LongList>(), size_of::<PartArgument>()]
}

#[derive(Debug)]
pub(crate) struct Kernels {
    _module: Module,
    score_lone: CudaFunction,
    score_lone_long: CudaFunction,
    score_batch: CudaFunction,
    score_small_batch: CudaFunction,
    /// Thread blocks of `score_batch` that the device holds at once.
    resident_batch: u32,
    /// Thread blocks of `score_small_batch` that the device holds at once.
    resident_small: u32,
    score_tiles: CudaFunction,
    score_impact_tiles: CudaFunction,
    merge_topk: CudaFunction,
    measure_blocks: CudaFunction,
    scan_rows: CudaFunction,
    scan_tiles: CudaFunction,
    write_blocks: CudaFunction,
}

impl Kernels {
    /// Loads the kernels and checks that they agree with this file. Fails if the driver refuses them, or they were
    /// compiled from another version of the sources.
    pub(crate) fn load(device: &Device, stream: &Arc<CudaStream>) -> Result<Self, GpuError> {
        let module = Module::load(device, IMAGES)?;
        module.check_layout(stream, "tandem_layout", &sizes())?;
        module.check_layout(stream, "tandem_offsets", &field_offsets())?;
        module.check_layout(stream, "transcode_layout", &transcode_sizes())?;
        module.check_layout(stream, "transcode_offsets", &transcode_field_offsets())?;
        let resident = |name| {
            let blocks = module.function(name)?.occupancy_max_active_blocks_per_multiprocessor(BATCH_THREADS, 0, None);
            let blocks = blocks.map_err(|e| GpuError::of(format!("loading kernel `{name}`"), &e))?;
            Ok(blocks * device.multiprocessors)
        };
        Ok(Self {
            resident_batch: resident("score_batch")?,
            resident_small: resident("score_small_batch")?,
            score_lone: module.function("score_lone")?,
            score_lone_long: module.function("score_lone_long")?,
            score_batch: module.function("score_batch")?,
            score_small_batch: module.function("score_small_batch")?,
            score_tiles: module.function("score_tiles")?,
            score_impact_tiles: module.function("score_impact_tiles")?,
            merge_topk: module.function("merge_topk")?,
            measure_blocks: module.function("measure_blocks")?,
            scan_rows: module.function("scan_rows")?,
            scan_tiles: module.function("scan_tiles")?,
            write_blocks: module.function("write_blocks")?,
            _module: module,
        })
    }

    /// Launches `measure_blocks`, which writes the rows of each block of a part to `counts`.
    ///
    /// # Safety
    /// The memory of `part` must live until the kernel has ended and hold valid lists, as an opened index does. Each
    /// block must have a place in `counts`.
    pub(crate) unsafe fn measure_blocks(
        &self,
        stream: &CudaStream,
        part: &PartArgument,
        counts: &mut RowCounts,
    ) -> Result<(), DriverError> {
        let Some(shape) = part_shape(part) else { return Ok(()) };
        let mut launch = stream.launch_builder(&self.measure_blocks);
        launch.arg(part).arg(&mut counts.d_of_blocks);
        // SAFETY: the arguments match `measure_blocks` in kernels/transcode.cu; the caller guarantees their memory.
        unsafe { launch.launch(shape) }.map(drop)
    }

    /// Replaces the rows of each block by the rows of all blocks before it, and returns the sum.
    pub(crate) fn scan_rows(&self, stream: &Arc<CudaStream>, counts: &mut RowCounts) -> Result<u64, DriverError> {
        let num_tiles = counts.d_of_tiles.len() as u32;
        let mut launch = stream.launch_builder(&self.scan_rows);
        launch.arg(&mut counts.d_of_blocks).arg(&counts.num_blocks).arg(&mut counts.d_of_tiles);
        // SAFETY: the arguments match `scan_rows` in kernels/transcode.cu; there is a count per block and per tile.
        unsafe { launch.launch(shape(num_tiles, SCAN_THREADS)) }?;
        let mut d_total = stream.alloc_zeros::<u64>(1)?;
        let mut launch = stream.launch_builder(&self.scan_tiles);
        launch.arg(&mut counts.d_of_tiles).arg(&num_tiles).arg(&mut d_total);
        // SAFETY: the arguments match `scan_tiles` in kernels/transcode.cu.
        unsafe { launch.launch(shape(1, SCAN_THREADS)) }?;
        // A copy to pageable memory waits for the stream in the driver, without a limit.
        wait(stream)?;
        Ok(stream.clone_dtoh(&d_total)?[0])
    }

    /// Launches `write_blocks`, which writes the blocks, rows and directory of a part at the scanned `counts`.
    ///
    /// # Safety
    /// See [`Kernels::measure_blocks`], which must have measured the part. The targets must have room for the measured
    /// rows and for the directory of each list, which must be zero.
    pub(crate) unsafe fn write_blocks(
        &self,
        stream: &CudaStream,
        part: &PartArgument,
        counts: &RowCounts,
        (d_blocks, rows, d_directory): (&mut CudaSlice<BlockArgument>, &mut Rows, &mut CudaSlice<DirectoryEntry>),
    ) -> Result<(), DriverError> {
        let Some(shape) = part_shape(part) else { return Ok(()) };
        let (on_device, on_host, num_resident) =
            (rows.device_address(stream), rows.host_address(), rows.num_resident());
        let mut launch = stream.launch_builder(&self.write_blocks);
        launch.arg(part).arg(&counts.d_of_blocks).arg(&counts.d_of_tiles);
        launch.arg(d_blocks).arg(&on_device).arg(&on_host).arg(&num_resident).arg(d_directory);
        // SAFETY: the arguments match `write_blocks` in kernels/transcode.cu; the caller guarantees their memory.
        unsafe { launch.launch(shape) }.map(drop)
    }
}

/// The index, the memory and the stream of some queries, for launches of the kernels that search. All memory, including
/// that of arguments, must live until the kernels have ended.
#[derive(Clone, Copy)]
pub(crate) struct Search<'a> {
    kernels: &'a Kernels,
    stream: &'a CudaStream,
    lists: ListsArgument,
    has_impacts: bool,
    memory: QueryMemory,
}

impl<'a> Search<'a> {
    pub(crate) fn new(kernels: &'a Kernels, stream: &'a CudaStream, lists: &DeviceLists, memory: QueryMemory) -> Self {
        Self { kernels, stream, lists: lists.argument(stream), has_impacts: lists.has_impacts, memory }
    }

    /// Launches `score_lone`, or `score_lone_long` for more than [`FEW_TERMS`] terms: one stage of a single query.
    /// `gate` is 0 or the address of the earlier stage's state.
    ///
    /// # Safety
    /// The stage must have the items of all drivers, and the terms must belong to the index. The states must be clear
    /// before the first stage. There must be room for the stage's candidates and results.
    pub(crate) unsafe fn score_lone<const TERMS: usize>(
        &self,
        lone: &LoneArgument<TERMS>,
        gate: u64,
    ) -> Result<(), DriverError> {
        const { assert!(TERMS == FEW_TERMS || TERMS == MAX_TERMS, "there is no such kernel") };
        let Self { kernels, stream, lists, memory, .. } = self;
        let kernel = if TERMS == FEW_TERMS { &kernels.score_lone } else { &kernels.score_lone_long };
        let mut launch = stream.launch_builder(kernel);
        launch.arg(lists).arg(lone).arg(&memory.states).arg(&gate).arg(&memory.candidates).arg(&memory.results);
        let blocks = lone.stage.num_items.div_ceil(LONE_THREADS / WARP).max(1);
        // SAFETY: the arguments match the kernel in kernels/lone.cu; the caller guarantees their memory.
        unsafe { launch.launch(shape(blocks, LONE_THREADS)) }.map(drop)
    }

    /// Launches `score_batch` with at most one warp per item, or `score_small_batch` if the batch's input is `small`.
    ///
    /// # Safety
    /// The input must have the form of batch.cuh: drivers with their items, a hint per 32 items, entries with terms of
    /// the index and with places in the states, candidates and results. The run and the states must be clear before
    /// the batch's first launch.
    pub(crate) unsafe fn score_batch(
        &self,
        batch: &BatchArgument,
        small: Option<&SmallInput>,
    ) -> Result<(), DriverError> {
        let Self { kernels, stream, lists, memory, .. } = self;
        let kernel = if small.is_some() { &kernels.score_small_batch } else { &kernels.score_batch };
        let mut launch = stream.launch_builder(kernel);
        launch.arg(lists).arg(batch);
        if let Some(small) = small {
            launch.arg(small);
        }
        launch.arg(&memory.run).arg(&memory.states).arg(&memory.candidates).arg(&memory.results);
        let resident = if small.is_some() { kernels.resident_small } else { kernels.resident_batch };
        let blocks = batch.num_places.div_ceil(BATCH_THREADS / WARP).clamp(1, resident);
        // SAFETY: the arguments match the kernel in kernels/batch.cu; the caller guarantees their memory.
        unsafe { launch.launch(shape(blocks, BATCH_THREADS)) }.map(drop)
    }

    /// Launches `score_tiles`, or `score_impact_tiles` for impacts, with one thread block per group of tiles, or for the
    /// sample of tiles.
    ///
    /// # Safety
    /// See [`Self::score_batch`], with tiled queries in place of drivers. There must be room for k candidates per
    /// tile or for all documents, because the kernel does not check it.
    pub(crate) unsafe fn score_tiles(&self, batch: &BatchArgument, is_sample: bool) -> Result<(), DriverError> {
        let Self { kernels, stream, lists, has_impacts, memory } = self;
        let is_sample = u32::from(is_sample);
        let kernel = if *has_impacts { &kernels.score_impact_tiles } else { &kernels.score_tiles };
        let mut launch = stream.launch_builder(kernel);
        launch.arg(lists).arg(batch).arg(&memory.run).arg(&memory.states).arg(&memory.candidates);
        launch.arg(&memory.results).arg(&is_sample);
        // SAFETY: the arguments match the kernel in kernels/tiles.cu; the caller guarantees their memory.
        let groups = (batch.num_items / batch.num_tiled.max(1)).div_ceil(batch.tiles_a_block.max(1));
        unsafe { launch.launch(shape((groups * batch.num_tiled).max(1), TILE_THREADS)) }.map(drop)
    }

    /// Launches `merge_topk` for the `num_later` queries of a batch that it sorts.
    ///
    /// # Safety
    /// See [`Self::score_batch`], whose launches for the batch must precede this one.
    pub(crate) unsafe fn merge_topk(&self, batch: &BatchArgument, num_later: u32) -> Result<(), DriverError> {
        let Self { kernels, stream, memory, .. } = self;
        let mut launch = stream.launch_builder(&kernels.merge_topk);
        launch.arg(batch).arg(&memory.run).arg(&memory.states).arg(&memory.candidates).arg(&memory.results);
        // SAFETY: the arguments match `merge_topk` in kernels/topk.cu; the caller guarantees their memory.
        unsafe { launch.launch(shape(num_later, MERGE_THREADS)) }.map(drop)
    }

    /// Launches every search kernel of this index without work. The driver loads a kernel at its first launch, which takes longer
    /// than a batch.
    ///
    /// # Safety
    /// See [`Self::score_lone`].
    pub(crate) unsafe fn load_all(&self) -> Result<(), DriverError> {
        let nothing = BatchArgument::default();
        let small = SmallInput { words: [0; SMALL_INPUT_WORDS] };
        // SAFETY: without items or queries kernels end at once.
        unsafe {
            self.score_lone(&LoneArgument::<FEW_TERMS>::default(), 0)?;
            self.score_lone(&LoneArgument::<{ MAX_TERMS }>::default(), 0)?;
            self.score_batch(&nothing, None)?;
            self.score_batch(&nothing, Some(&small))?;
            self.score_tiles(&nothing, false)?;
            self.merge_topk(&nothing, 1)
        }
    }
}

/// Rows per block, or after a scan the rows before each block in its tile of [`SCAN_THREADS`] blocks and before each
/// tile.
#[derive(Debug)]
pub(crate) struct RowCounts {
    d_of_blocks: CudaSlice<u32>,
    d_of_tiles: CudaSlice<u32>,
    num_blocks: u32,
}

impl RowCounts {
    pub(crate) fn new(stream: &Arc<CudaStream>, num_blocks: u32) -> Result<Self, DriverError> {
        let d_of_blocks = stream.alloc_zeros(num_blocks.max(1) as usize)?;
        let d_of_tiles = stream.alloc_zeros(num_blocks.div_ceil(SCAN_THREADS).max(1) as usize)?;
        Ok(Self { d_of_blocks, d_of_tiles, num_blocks })
    }

    #[cfg(test)]
    pub(crate) fn with(stream: &Arc<CudaStream>, rows: &[u32]) -> Result<Self, DriverError> {
        let counts = Self::new(stream, rows.len() as u32)?;
        Ok(Self { d_of_blocks: stream.clone_htod(rows)?, ..counts })
    }

    /// The rows of each block, before a scan.
    pub(crate) fn rows(&self, stream: &Arc<CudaStream>) -> Result<Vec<u32>, DriverError> {
        wait(stream)?;
        stream.clone_dtoh(&self.d_of_blocks)
    }

    /// Sets each block's first row in place of a scan.
    pub(crate) fn place(&mut self, stream: &Arc<CudaStream>, first_rows: &[u32]) -> Result<(), DriverError> {
        stream.memcpy_htod(first_rows, &mut self.d_of_blocks)?;
        stream.memset_zeros(&mut self.d_of_tiles)?;
        wait(stream)
    }

    /// The rows before each block, after a scan.
    #[cfg(test)]
    pub(crate) fn rows_before(&self, stream: &Arc<CudaStream>) -> Result<Vec<u32>, DriverError> {
        let (in_tile, before_tile) = (stream.clone_dtoh(&self.d_of_blocks)?, stream.clone_dtoh(&self.d_of_tiles)?);
        stream.synchronize()?;
        Ok(in_tile.iter().enumerate().map(|(block, rows)| before_tile[block / SCAN_THREADS as usize] + rows).collect())
    }

    pub(crate) fn bytes(num_blocks: u64) -> u64 {
        4 * (num_blocks + num_blocks / u64::from(SCAN_THREADS) + 2)
    }
}

/// One warp per block of a part, or `None` without blocks.
fn part_shape(part: &PartArgument) -> Option<LaunchConfig> {
    let num_units = part.num_blocks + part.num_terms;
    (num_units > 0).then(|| shape(num_units.div_ceil(TRANSCODE_THREADS / WARP), TRANSCODE_THREADS))
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryMemory {
    /// State of a batch; single queries leave it alone.
    pub(crate) run: u64,
    pub(crate) states: u64,
    pub(crate) candidates: u64,
    /// Page-locked host memory.
    pub(crate) results: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Bm25;
    use crate::search::device::layout_in_ptx;
    use tandem_base::base::random::Random;

    #[test]
    fn ptx_has_all_kernels_and_structures_for_turing() {
        let kernels = "score_lone score_lone_long score_batch score_small_batch score_tiles score_impact_tiles merge_topk \
                       measure_blocks scan_rows scan_tiles write_blocks";
        for kernel in kernels.split(' ') {
            assert!(IMAGES.ptx.contains(&format!(".entry {kernel}(")), "{kernel} is missing: run kernels/build.py");
        }
        let arrays = [
            ("tandem_layout", sizes()),
            ("tandem_offsets", field_offsets()),
            ("transcode_layout", transcode_sizes()),
            ("transcode_offsets", transcode_field_offsets()),
        ];
        for (name, expected) in arrays {
            let expected: Vec<usize> = expected.iter().map(|&value| value as u32 as usize).collect();
            assert_eq!(layout_in_ptx(IMAGES.ptx, name), expected, "{name}");
        }
        assert!(IMAGES.ptx.contains(".target sm_75"));
        assert!(IMAGES.cubin_sm_90.starts_with(b"\x7fELF"));
    }

    /// The steps of `quick_score` in tandem.cuh, from a reciprocal that is `ulps` off.
    fn quick_score(weight: f32, freq: u32, norm: f32, ulps: i32) -> f32 {
        let (dividend, divisor) = (weight * freq as f32, freq as f32 + norm);
        let reciprocal = f32::from_bits((1.0 / divisor).to_bits().wrapping_add_signed(ulps));
        let reciprocal = (-divisor).mul_add(reciprocal, 1.0).mul_add(reciprocal, reciprocal);
        let corrected = |quotient: f32| reciprocal.mul_add((-divisor).mul_add(quotient, dividend), quotient);
        corrected(corrected(dividend * reciprocal))
    }

    #[test]
    fn the_quick_division_of_tiles_has_every_bit_of_the_exact_one() {
        let mut random = Random::new(1, 0);
        let mut float = |exponents: std::ops::Range<i32>| {
            let exponent = exponents.start + random.below(exponents.len() as u32) as i32;
            (1.0 + random.unit() as f32) * (exponent as f32).exp2()
        };
        for i in 0..100_000 {
            let weight = if i % 4 == 0 { float(-60..60) } else { float(-2..5) };
            let norm = if i % 8 == 0 { float(-20..42) } else { float(-4..6) };
            let freq = if i % 2 == 0 { float(0..31) as u32 } else { float(0..6) as u32 };
            for ulps in -2..=2 {
                let (quick, exact) = (quick_score(weight, freq, norm, ulps), Bm25::score(weight, freq, norm));
                assert_eq!(quick.to_bits(), exact.to_bits(), "{weight:e} {freq} {norm:e} {ulps}");
            }
        }
    }
}
