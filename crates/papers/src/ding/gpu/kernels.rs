//! The published kernels and their arguments.
//!
//! The structures repeat those of `kernels/ding/ding.cuh`; [`Kernels::load`] compares their sizes. Addresses are device
//! addresses of buffers whose owner launches the kernel and keeps them until its stream has been synchronised.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, DeviceRepr, LaunchConfig, ValidAsZeroBits};

pub(crate) use tandem_engine::search::device::shape;
use tandem_engine::search::device::{Device, GpuError, Images, Module};

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
/// Maximum number of levels of a heap; the third has one key per 512^3 scores.
pub(crate) const HEAP_LEVELS: usize = 3;
const WARP: u32 = 32;

/// A number of items: `Count` in ding.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Count {
    /// Address of a number counted by a kernel; 0 if `at_most` is the number.
    counted: u64,
    at_most: u32,
    reserved: u32,
}

impl Count {
    pub(crate) fn known(number: u32) -> Self {
        Self { counted: 0, at_most: number, reserved: 0 }
    }

    /// A number that a kernel writes to `address`, at most `at_most`.
    pub(crate) fn counted(address: u64, at_most: u32) -> Self {
        Self { counted: address, at_most, reserved: 0 }
    }

    /// Returns the maximum, for which grids are made.
    pub(crate) fn at_most(self) -> u32 {
        self.at_most
    }
}

/// `PforArray` in ding.cuh.
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

/// `RiceList` in ding.cuh.
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

/// `MergeFind` in ding.cuh.
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

/// `Heap` in ding.cuh.
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

/// Marks structures as arguments of kernels.
macro_rules! device_repr {
    ($($argument:ident)*) => {
        // SAFETY: each is plain words in C layout, of the size that the kernels have (compared when they are loaded).
        $(unsafe impl DeviceRepr for $argument {})*
    };
}
device_repr!(Count PforArgument RiceArgument MergeFindArgument HeapArgument);
// SAFETY: all its fields may be zero.
unsafe impl ValidAsZeroBits for PforArgument {}
// SAFETY: all its fields may be zero.
unsafe impl ValidAsZeroBits for RiceArgument {}

/// Defines [`Kernels`] with these functions.
macro_rules! kernels {
    ($($name:ident)*) => {
        #[derive(Debug)]
        pub(crate) struct Kernels {
            $(pub(crate) $name: CudaFunction,)*
            _module: Module,
        }

        impl Kernels {
            fn of(module: Module) -> Result<Self, GpuError> {
                Ok(Self { $($name: module.function(stringify!($name))?,)* _module: module })
            }
        }
    };
}
kernels! {
    rice_unary rice_documents pfor_decode pfor_decode_needed merge_find merge_match mark_blocks match_in_blocks
    count_flags scan_flags gather_blocks gather_matches score_candidates clear_accumulators accumulate
    heap_leaves heap_level heap_extract
}

impl Kernels {
    /// Loads the kernels and compares their layout with this file.
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
        Self::of(module)
    }
}

/// Returns a launch of one thread per item, at least one block.
pub(crate) fn threads_for(items: u32) -> LaunchConfig {
    shape(items.div_ceil(THREADS).max(1), THREADS)
}

/// Returns a launch of one warp per item, at least one block.
pub(crate) fn warps_for(items: u32) -> LaunchConfig {
    shape(items.div_ceil(THREADS / WARP).max(1), THREADS)
}
