//! The published kernels: their arguments, and where they are loaded.
//!
//! The structures repeat those of `kernels/ding/published.cuh`; [`Kernels::load`] compares their sizes.
//! Addresses are device addresses of buffers whose owner launches the kernel and keeps them until its stream has been
//! synchronised.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, DeviceRepr, LaunchConfig, ValidAsZeroBits};

pub(crate) use tandem_core::search::device::shape;
use tandem_core::search::device::{Device, GpuError, Images, Module};

const IMAGES: Images = Images {
    what: "the published kernels",
    ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/ding.ptx")),
    cubin_sm_90: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/ding.sm_90.cubin")),
};

pub(crate) const PFOR_BLOCK_LEN: usize = 512;
pub(crate) const RICE_BLOCK_LEN: usize = 128;
pub(crate) const THREADS: u32 = 256;
pub(crate) const TILE_LEN: u32 = 1024;
pub(crate) const SCAN_THREADS: u32 = 1024;
pub(crate) const HEAP_DEGREE: u32 = 512;
/// Levels of a heap at most: the third has one key a group of 512^3.
pub(crate) const HEAP_LEVELS: usize = 3;
const WARP: u32 = 32;

/// How many there are of something: `Count` in published.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Count {
    /// Where a kernel has counted them; 0 if `at_most` is the number.
    counted: u64,
    at_most: u32,
    reserved: u32,
}

impl Count {
    /// A number that the host knows.
    pub(crate) fn known(number: u32) -> Self {
        Self { counted: 0, at_most: number, reserved: 0 }
    }

    /// A number that a kernel leaves at `address`, at most `at_most`.
    pub(crate) fn counted(address: u64, at_most: u32) -> Self {
        Self { counted: address, at_most, reserved: 0 }
    }

    /// What it is at most: what grids are made for.
    pub(crate) fn at_most(self) -> u32 {
        self.at_most
    }
}

/// `PforArray` in published.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct PforArgument {
    pub(crate) slots: u64,
    pub(crate) bases: u64,
    pub(crate) starts: u64,
    pub(crate) positions: u64,
    pub(crate) overflows: u64,
    pub(crate) output: u64,
    pub(crate) len: u32,
    pub(crate) width: u32,
    pub(crate) num_exceptions: u32,
    pub(crate) first_block: u32,
}

/// `RiceList` in published.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct RiceArgument {
    pub(crate) unary: u64,
    pub(crate) unary_sums: u64,
    pub(crate) binary: u64,
    pub(crate) binary_sums: u64,
    pub(crate) quotients: u64,
    pub(crate) output: u64,
    pub(crate) len: u32,
    pub(crate) width: u32,
    pub(crate) num_unary_bits: u32,
    pub(crate) first_unary_block: u32,
    pub(crate) first_block: u32,
    pub(crate) reserved: u32,
}

/// `MergeFind` in published.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct MergeFindArgument {
    pub(crate) a: u64,
    pub(crate) b: u64,
    pub(crate) coarse: u64,
    pub(crate) found: u64,
    pub(crate) num_a: Count,
    pub(crate) num_b: Count,
    pub(crate) stride: u32,
    pub(crate) coarse_stride: u32,
}

/// `Heap` in published.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct HeapArgument {
    pub(crate) scores: u64,
    pub(crate) docs: u64,
    pub(crate) levels: [u64; HEAP_LEVELS],
    pub(crate) lens: [u32; HEAP_LEVELS],
    pub(crate) num_levels: u32,
    pub(crate) num_scores: Count,
}

// SAFETY: all five are plain words in C layout, of the size that the kernels have (checked when they are loaded);
// zero is a value of each of the two that lie in device memory.
unsafe impl DeviceRepr for Count {}
// SAFETY: as above.
unsafe impl DeviceRepr for PforArgument {}
// SAFETY: as above.
unsafe impl DeviceRepr for RiceArgument {}
// SAFETY: as above.
unsafe impl DeviceRepr for MergeFindArgument {}
// SAFETY: as above.
unsafe impl DeviceRepr for HeapArgument {}
// SAFETY: as above.
unsafe impl ValidAsZeroBits for PforArgument {}
// SAFETY: as above.
unsafe impl ValidAsZeroBits for RiceArgument {}

/// The kernels, loaded on one device.
#[derive(Debug)]
pub(crate) struct Kernels {
    pub(crate) rice_unary: CudaFunction,
    pub(crate) rice_documents: CudaFunction,
    pub(crate) pfor_decode: CudaFunction,
    pub(crate) pfor_decode_needed: CudaFunction,
    pub(crate) merge_find: CudaFunction,
    pub(crate) merge_match: CudaFunction,
    pub(crate) mark_blocks: CudaFunction,
    pub(crate) match_in_blocks: CudaFunction,
    pub(crate) count_flags: CudaFunction,
    pub(crate) scan_counts: CudaFunction,
    pub(crate) gather_blocks: CudaFunction,
    pub(crate) gather_matches: CudaFunction,
    pub(crate) score_candidates: CudaFunction,
    pub(crate) clear_accumulators: CudaFunction,
    pub(crate) accumulate: CudaFunction,
    pub(crate) heap_leaves: CudaFunction,
    pub(crate) heap_level: CudaFunction,
    pub(crate) heap_extract: CudaFunction,
}

impl Kernels {
    /// Loads the kernels and checks that they agree with this file.
    pub(crate) fn load(device: &Device, stream: &Arc<CudaStream>) -> Result<Self, GpuError> {
        let module = Module::load(device, IMAGES)?;
        let layout = [
            PFOR_BLOCK_LEN,
            RICE_BLOCK_LEN,
            THREADS as usize,
            TILE_LEN as usize,
            SCAN_THREADS as usize,
            HEAP_DEGREE as usize,
            size_of::<PforArgument>(),
            size_of::<RiceArgument>(),
            size_of::<MergeFindArgument>(),
            size_of::<HeapArgument>(),
        ];
        module.check_layout(stream, "published_layout", &layout)?;
        Ok(Self {
            rice_unary: module.function("rice_unary")?,
            rice_documents: module.function("rice_documents")?,
            pfor_decode: module.function("pfor_decode")?,
            pfor_decode_needed: module.function("pfor_decode_needed")?,
            merge_find: module.function("merge_find")?,
            merge_match: module.function("merge_match")?,
            mark_blocks: module.function("mark_blocks")?,
            match_in_blocks: module.function("match_in_blocks")?,
            count_flags: module.function("count_flags")?,
            scan_counts: module.function("scan_counts")?,
            gather_blocks: module.function("gather_blocks")?,
            gather_matches: module.function("gather_matches")?,
            score_candidates: module.function("score_candidates")?,
            clear_accumulators: module.function("clear_accumulators")?,
            accumulate: module.function("accumulate")?,
            heap_leaves: module.function("heap_leaves")?,
            heap_level: module.function("heap_level")?,
            heap_extract: module.function("heap_extract")?,
        })
    }
}

/// One thread for each of `items`; one block at least.
pub(crate) fn threads_for(items: u32) -> LaunchConfig {
    shape(items.div_ceil(THREADS).max(1), THREADS)
}

/// One warp for each of `items`; one block at least.
pub(crate) fn warps_for(items: u32) -> LaunchConfig {
    shape(items.div_ceil(THREADS / WARP).max(1), THREADS)
}
