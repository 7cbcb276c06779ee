//! The published kernels: their arguments, and where they are loaded.
//!
//! The structures repeat those of `kernels/ding/published.cuh`; [`Kernels::load`] compares their sizes.
//! Addresses are device addresses of buffers whose owner launches the kernel and keeps them until its stream has been
//! synchronised.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, DeviceRepr, LaunchConfig, ValidAsZeroBits};

pub(super) use tandem_core::search::device::shape;
use tandem_core::search::device::{Device, GpuError, Images, Module};

const IMAGES: Images = Images {
    what: "the published kernels",
    ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/ding.ptx")),
    cubin_sm_90: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/ding.sm_90.cubin")),
};

pub(super) const PFOR_BLOCK_LEN: usize = 512;
pub(super) const RICE_BLOCK_LEN: usize = 128;
pub(super) const THREADS: u32 = 256;
pub(super) const TILE_LEN: u32 = 1024;
pub(super) const SCAN_THREADS: u32 = 1024;
pub(super) const HEAP_DEGREE: u32 = 512;
/// Levels of a heap at most: the third has one key a group of 512^3.
pub(super) const HEAP_LEVELS: usize = 3;
const WARP: u32 = 32;

/// How many there are of something: `Count` in published.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Count {
    /// Where a kernel has counted them; 0 if `at_most` is the number.
    counted: u64,
    at_most: u32,
    reserved: u32,
}

impl Count {
    /// A number that the host knows.
    pub(super) fn known(number: u32) -> Self {
        Self { counted: 0, at_most: number, reserved: 0 }
    }

    /// A number that a kernel leaves at `address`, at most `at_most`.
    pub(super) fn counted(address: u64, at_most: u32) -> Self {
        Self { counted: address, at_most, reserved: 0 }
    }

    /// What it is at most: what grids are made for.
    pub(super) fn at_most(self) -> u32 {
        self.at_most
    }
}

/// `PforArray` in published.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct PforArgument {
    pub(super) slots: u64,
    pub(super) bases: u64,
    pub(super) starts: u64,
    pub(super) positions: u64,
    pub(super) overflows: u64,
    pub(super) output: u64,
    pub(super) len: u32,
    pub(super) width: u32,
    pub(super) num_exceptions: u32,
    pub(super) first_block: u32,
}

/// `RiceList` in published.cuh.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct RiceArgument {
    pub(super) unary: u64,
    pub(super) unary_sums: u64,
    pub(super) binary: u64,
    pub(super) binary_sums: u64,
    pub(super) quotients: u64,
    pub(super) output: u64,
    pub(super) len: u32,
    pub(super) width: u32,
    pub(super) num_unary_bits: u32,
    pub(super) first_unary_block: u32,
    pub(super) first_block: u32,
    pub(super) reserved: u32,
}

/// `MergeFind` in published.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct MergeFindArgument {
    pub(super) a: u64,
    pub(super) b: u64,
    pub(super) coarse: u64,
    pub(super) found: u64,
    pub(super) num_a: Count,
    pub(super) num_b: Count,
    pub(super) stride: u32,
    pub(super) coarse_stride: u32,
}

/// `Heap` in published.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct HeapArgument {
    pub(super) scores: u64,
    pub(super) docs: u64,
    pub(super) levels: [u64; HEAP_LEVELS],
    pub(super) lens: [u32; HEAP_LEVELS],
    pub(super) num_levels: u32,
    pub(super) num_scores: Count,
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
pub(super) struct Kernels {
    pub(super) rice_unary: CudaFunction,
    pub(super) rice_documents: CudaFunction,
    pub(super) pfor_decode: CudaFunction,
    pub(super) pfor_decode_needed: CudaFunction,
    pub(super) merge_find: CudaFunction,
    pub(super) merge_match: CudaFunction,
    pub(super) mark_blocks: CudaFunction,
    pub(super) match_in_blocks: CudaFunction,
    pub(super) count_flags: CudaFunction,
    pub(super) scan_counts: CudaFunction,
    pub(super) gather_blocks: CudaFunction,
    pub(super) gather_matches: CudaFunction,
    pub(super) score_candidates: CudaFunction,
    pub(super) clear_accumulators: CudaFunction,
    pub(super) accumulate: CudaFunction,
    pub(super) heap_leaves: CudaFunction,
    pub(super) heap_level: CudaFunction,
    pub(super) heap_extract: CudaFunction,
}

impl Kernels {
    /// Loads the kernels and checks that they agree with this file.
    ///
    /// # Errors
    /// If the driver refuses them, or they were compiled from another version of the sources.
    pub(super) fn load(device: &Device, stream: &Arc<CudaStream>) -> Result<Self, GpuError> {
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
pub(super) fn threads_for(items: u32) -> LaunchConfig {
    shape(items.div_ceil(THREADS).max(1), THREADS)
}

/// One warp for each of `items`; one block at least.
pub(super) fn warps_for(items: u32) -> LaunchConfig {
    shape(items.div_ceil(THREADS / WARP).max(1), THREADS)
}
