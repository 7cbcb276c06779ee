//! The kernel `rank_cached` and what it is given: the structures of `kernels/wang/cached.cuh`.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use cudarc::driver::{CudaFunction, CudaStream, DeviceRepr};

use crate::wang::data::ROUND;
use crate::wang::ranker::MAX_K;
use crate::wang::ranking::MAX_TERMS;
use tandem_core::search::device::{Device, GpuError, Images, Module};

const IMAGES: Images = Images {
    what: "the kernel of pruned list caching",
    ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/wang.ptx")),
    cubin_sm_90: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/wang.sm_90.cubin")),
};

/// Threads of a block: a round's documents.
pub(super) const THREADS: u32 = ROUND as u32;

/// `CachedTerm` in cached.cuh.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct TermArgument {
    pub(super) docs: u64,
    pub(super) freqs: u64,
    pub(super) table: u64,
    pub(super) num_buckets: u32,
    pub(super) shift: u32,
    pub(super) weight: f32,
    pub(super) reserved: u32,
}

/// `CachedQuery` in cached.cuh.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(super) struct QueryArgument {
    pub(super) first_term: u32,
    pub(super) num_terms: u32,
    pub(super) len: u32,
    pub(super) behind: f32,
}

/// `CachedBatch` in cached.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct BatchArgument {
    pub(super) queries: u64,
    pub(super) terms: u64,
    pub(super) priors: u64,
    pub(super) norms: u64,
    pub(super) global_scores: u64,
    pub(super) results: u64,
    pub(super) k: u32,
    pub(super) ceiling: f32,
}

// SAFETY: plain words in C layout, of the size that the kernel has (checked when it is loaded).
unsafe impl DeviceRepr for BatchArgument {}

/// Loads the kernel and checks that it agrees with this file.
///
/// # Errors
/// If the driver refuses it, or it was compiled from another version of the sources.
pub(super) fn load(device: &Device, stream: &Arc<CudaStream>) -> Result<CudaFunction, GpuError> {
    let module = Module::load(device, IMAGES)?;
    let layout =
        [ROUND, MAX_K, MAX_TERMS, size_of::<TermArgument>(), size_of::<QueryArgument>(), size_of::<BatchArgument>()];
    module.check_layout(stream, "cached_layout", &layout)?;
    module.function("rank_cached")
}
