//! The compiled kernels, their arguments, and safe functions that launch them.
//!
//! Structures and sizes here repeat those of `kernels/tandem.cuh`; [`Kernels::load`] compares the two and refuses to go on
//! if they differ. Only this file knows the shapes of grids and blocks.

use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DeviceRepr, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;

use super::device::{Device, cuda};
use crate::exec::{ExecError, MAX_K};
use crate::index::BLOCK_LEN;
use crate::query::{Mode, Query};

/// For every GPU since Turing; the driver compiles it when it is loaded.
const PTX: &str = include_str!("../../../kernels/compiled/tandem.ptx");
/// For compute capability 9.0 (H100, H200, GH200), ready to run.
const CUBIN_SM_90: &[u8] = include_bytes!("../../../kernels/compiled/tandem.sm_90.cubin");

const TILE_DOCS: u32 = 8192;
const UNION_THREADS: u32 = 256;
const INTERSECT_THREADS: u32 = 128;
const MERGE_THREADS: u32 = 512;
const SCORE_BINS: u32 = 2048;
/// Bytes of the kernels' `State`: threshold and two counters, two histograms with their counts, one more counter.
const STATE_BYTES: usize = 16 + 2 * (4 * SCORE_BINS as usize + 16) + 16;
const WARP: u32 = 32;

/// Warps of `score_intersect` that a multiprocessor holds at once: with fewer, blocks of the shortest list are shared out.
const INTERSECT_WARPS_RESIDENT: u32 = 24;
/// Thread blocks of `score_intersect` a multiprocessor at most: beyond that, each takes several rounds.
const INTERSECT_BLOCKS_EACH: u32 = 16;
/// `score_union` begins with a sample where tiles have this many postings or more on average: then a sample finds a
/// threshold that spares the others most of their candidates.
const SAMPLED_POSTINGS: u64 = 64;
/// ... and where there are at least so many tiles for each one of the sample,
const SAMPLED_TILES: u32 = 4;
/// ... and where so many results are wanted: for fewer, the first tiles of a single launch find as good a threshold.
const SAMPLED_K: u32 = 64;

/// The index: `Index` in tandem.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct IndexArgument {
    pub(super) last_docs: u64,
    pub(super) blocks: u64,
    pub(super) payload: u64,
    pub(super) short_lists: u64,
    pub(super) norms: u64,
    pub(super) num_docs: u32,
    pub(super) reserved: u32,
}

/// One term of a query: `Term` in tandem.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct TermArgument {
    pub(super) start: u64,
    pub(super) first_block: u32,
    pub(super) num_blocks: u32,
    pub(super) doc_freq: u32,
    pub(super) base: u32,
    pub(super) packing: u32,
    pub(super) max_impact: f32,
    pub(super) weight: f32,
    pub(super) reserved: u32,
}

/// A query: `Query` in tandem.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct QueryArgument {
    terms: [TermArgument; Query::MAX_TERMS],
    num_terms: u32,
    k: u32,
    mode: u32,
    use_bounds: u32,
    slice_bits: u32,
    bins_per_score: f32,
}

// SAFETY: both are plain words in C layout, of the size that the kernels have (checked when they are loaded).
unsafe impl DeviceRepr for IndexArgument {}
// SAFETY: as above.
unsafe impl DeviceRepr for QueryArgument {}

impl QueryArgument {
    /// A query for the `k` best documents. `use_bounds`: the index's impacts hold for its weights' BM25 parameters.
    ///
    /// # Panics
    /// If there are more than [`Query::MAX_TERMS`] terms.
    pub(super) fn new(terms: impl Iterator<Item = TermArgument>, mode: Mode, k: usize, use_bounds: bool) -> Self {
        let mut query = Self {
            terms: [TermArgument::default(); Query::MAX_TERMS],
            num_terms: 0,
            k: k as u32,
            mode: 0,
            use_bounds: u32::from(use_bounds),
            slice_bits: 0,
            bins_per_score: 0.0,
        };
        let mut weights = 0.0;
        for term in terms {
            query.terms[query.num_terms as usize] = term;
            query.num_terms += 1;
            weights += term.weight;
        }
        // No score exceeds the sum of the weights: tf / (tf + norm) stays below 1.
        query.bins_per_score = SCORE_BINS as f32 / weights;
        // One list alone is what its union is: tiles beat probing.
        query.mode = match mode {
            _ if query.num_terms == 1 => 1,
            Mode::And => 0,
            Mode::Or => 1,
            Mode::AndOr => 2,
        };
        query
    }

    /// Whether documents with all terms are looked for.
    pub(super) fn intersects(&self) -> bool {
        self.mode != 1
    }

    /// Whether documents with any term are looked for, be it only if too few have all.
    pub(super) fn unites(&self) -> bool {
        self.mode != 0
    }
}

/// What the kernels of one query write. Allocated once for an executor.
#[derive(Debug)]
pub(super) struct Buffers {
    pub(super) d_state: CudaSlice<u8>,
    pub(super) d_candidates: CudaSlice<u64>,
    pub(super) d_survivors: CudaSlice<u64>,
}

impl Buffers {
    /// Keys in each buffer: every thread block that scores emits at most k of them, and none twice.
    fn num_candidates(device: &Device, num_docs: u32) -> usize {
        let blocks = num_docs.div_ceil(TILE_DOCS).max(device.multiprocessors * INTERSECT_BLOCKS_EACH);
        (blocks as usize * MAX_K).min(num_docs as usize).max(1)
    }

    /// Device memory that the buffers for an index of `num_docs` take.
    pub(super) fn bytes(device: &Device, num_docs: u32) -> u64 {
        (STATE_BYTES + 2 * 8 * Self::num_candidates(device, num_docs)) as u64
    }

    /// Allocates the buffers.
    pub(super) fn new(device: &Device, stream: &Arc<CudaStream>, num_docs: u32) -> Result<Self, DriverError> {
        let keys = Self::num_candidates(device, num_docs);
        // SAFETY: the state is cleared before each query, and kernels read as many keys as they have written.
        unsafe {
            Ok(Self {
                d_state: stream.alloc(STATE_BYTES)?,
                d_candidates: stream.alloc(keys)?,
                d_survivors: stream.alloc(keys)?,
            })
        }
    }
}

/// The kernels, loaded on one device.
#[derive(Debug)]
pub(super) struct Kernels {
    score_union: CudaFunction,
    score_intersect: CudaFunction,
    merge_topk: CudaFunction,
    multiprocessors: u32,
}

impl Kernels {
    /// Loads the kernels and checks that they agree with this file.
    ///
    /// # Errors
    /// If the driver refuses them, or they were compiled from another version of the sources.
    pub(super) fn load(device: &Device, stream: &Arc<CudaStream>) -> Result<Self, ExecError> {
        // The driver's own variable for this purpose, so that other GPUs' way can be tried on any.
        let is_native = device.info.capability == (9, 0) && std::env::var_os("CUDA_FORCE_PTX_JIT").is_none();
        let image = if is_native { Ptx::from_binary(CUBIN_SM_90.to_vec()) } else { Ptx::from_src(PTX) };
        let load = |context: &Arc<CudaContext>| {
            let module = context.load_module(image)?;
            let layout = stream.clone_dtoh(&module.get_global("tandem_layout", stream)?)?;
            let kernels = Self {
                score_union: module.load_function("score_union")?,
                score_intersect: module.load_function("score_intersect")?,
                merge_topk: module.load_function("merge_topk")?,
                multiprocessors: device.multiprocessors,
            };
            stream.synchronize()?;
            Ok((kernels, layout))
        };
        let (kernels, layout) = load(&device.context).map_err(|e| cuda("loading the kernels", &e))?;
        let expected = [
            BLOCK_LEN,
            Query::MAX_TERMS,
            MAX_K,
            TILE_DOCS as usize,
            UNION_THREADS as usize,
            INTERSECT_THREADS as usize,
            MERGE_THREADS as usize,
            SCORE_BINS as usize,
            size_of::<IndexArgument>(),
            size_of::<TermArgument>(),
            size_of::<QueryArgument>(),
            STATE_BYTES,
        ]
        .map(|value| value as u32);
        let found: Vec<u32> = layout.as_chunks().0.iter().map(|&word| u32::from_le_bytes(word)).collect();
        if found != expected {
            return Err(ExecError::Cuda {
                doing: "loading the kernels".to_owned(),
                message: format!("their layout is {found:?}, expected {expected:?} (run kernels/build.py)"),
            });
        }
        Ok(kernels)
    }

    /// Starts `score_union`: one thread block a tile of documents, a sample of the tiles first where that pays.
    pub(super) fn score_union(
        &self,
        stream: &CudaStream,
        index: &IndexArgument,
        query: &QueryArgument,
        buffers: &mut Buffers,
    ) -> Result<(), DriverError> {
        let tiles = index.num_docs.div_ceil(TILE_DOCS).max(1);
        let postings: u64 = query.terms.iter().map(|term| u64::from(term.num_blocks) * BLOCK_LEN as u64).sum();
        let pays = query.k >= SAMPLED_K
            && tiles >= SAMPLED_TILES * self.multiprocessors
            && postings >= SAMPLED_POSTINGS * u64::from(tiles);
        let sample_stride = if pays { tiles / self.multiprocessors } else { 0 };
        let mut start = |grid: u32, is_sample: u32| {
            let mut launch = stream.launch_builder(&self.score_union);
            launch.arg(index).arg(query).arg(&mut buffers.d_state).arg(&mut buffers.d_candidates);
            launch.arg(&sample_stride).arg(&is_sample);
            // SAFETY: the arguments are those of `score_union` in kernels/union.cu, in order and type; the tiles of the
            // grid exist, and `Buffers` has room for k keys of each; the index is at least as long as its blocks say
            // (checked when it was opened).
            unsafe { launch.launch(shape(grid, UNION_THREADS)) }.map(drop)
        };
        if pays {
            start(tiles.div_ceil(sample_stride), 1)?;
        }
        start(tiles, 0)
    }

    /// Starts `score_intersect`: one warp a block of the shortest list, or a slice of one if there are few.
    pub(super) fn score_intersect(
        &self,
        stream: &CudaStream,
        index: &IndexArgument,
        query: &mut QueryArgument,
        buffers: &mut Buffers,
    ) -> Result<(), DriverError> {
        let driver_blocks = query.terms[0].num_blocks;
        let wanted_warps = self.multiprocessors * INTERSECT_WARPS_RESIDENT;
        query.slice_bits =
            (0..WARP.ilog2()).find(|&bits| driver_blocks << bits >= wanted_warps).unwrap_or(WARP.ilog2());
        let warps = u64::from(driver_blocks) << query.slice_bits;
        let most = u64::from(self.multiprocessors * INTERSECT_BLOCKS_EACH);
        let grid = warps.div_ceil(u64::from(INTERSECT_THREADS / WARP)).clamp(1, most) as u32;
        let mut launch = stream.launch_builder(&self.score_intersect);
        launch.arg(index).arg(&*query).arg(&mut buffers.d_state).arg(&mut buffers.d_candidates);
        // SAFETY: the arguments are those of `score_intersect` in kernels/intersect.cu, in order and type; `Buffers` has
        // room for k keys of each thread block; the index is at least as long as its blocks say.
        unsafe { launch.launch(shape(grid, INTERSECT_THREADS)) }.map(drop)
    }

    /// Starts `merge_topk`, which writes the number of results and their keys to `results`, the address of pinned memory.
    /// One thread block a multiprocessor: all but the first return at once where candidates are few.
    ///
    /// # Safety
    /// At `results` there must be 1 + [`MAX_K`] words that live until the stream has been synchronised.
    pub(super) unsafe fn merge_topk(
        &self,
        stream: &CudaStream,
        query: &QueryArgument,
        buffers: &mut Buffers,
        results: &u64,
    ) -> Result<(), DriverError> {
        let mut launch = stream.launch_builder(&self.merge_topk);
        launch
            .arg(query)
            .arg(&mut buffers.d_state)
            .arg(&buffers.d_candidates)
            .arg(&mut buffers.d_survivors)
            .arg(results);
        // SAFETY: the arguments are those of `merge_topk` in kernels/topk.cu, in order and type; survivors are candidates,
        // and have as much room; the caller vouches for `results`.
        unsafe { launch.launch(shape(self.multiprocessors, MERGE_THREADS)) }.map(drop)
    }
}

fn shape(blocks: u32, threads: u32) -> LaunchConfig {
    LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (threads, 1, 1), shared_mem_bytes: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ptx_has_every_kernel_and_runs_on_turing() {
        for kernel in ["score_union", "score_intersect", "merge_topk"] {
            assert!(PTX.contains(&format!(".entry {kernel}(")), "{kernel} is missing: run kernels/build.py");
        }
        assert!(PTX.contains(".target sm_75"));
        assert!(CUBIN_SM_90.starts_with(b"\x7fELF"));
    }

    #[test]
    fn one_term_is_a_union_in_any_mode() {
        let term = TermArgument { weight: 2.0, ..TermArgument::default() };
        for mode in Mode::ALL {
            let query = QueryArgument::new(std::iter::once(term), mode, 10, true);
            assert!(query.unites() && !query.intersects());
            assert_eq!(query.bins_per_score, 1024.0);
        }
        let query = QueryArgument::new([term; 2].into_iter(), Mode::AndOr, 10, true);
        assert!(query.unites() && query.intersects());
    }
}
