//! The kernel `rank_cached` and its arguments, the structures of `kernels/wang/wang.cuh`.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use cudarc::driver::{CudaFunction, CudaStream, DeviceRepr};
use tandem_engine::search::device::{Device, GpuError, Images, Module};

use crate::wang::data::ROUND;
use crate::wang::ranker::MAX_K;
use crate::wang::ranking::MAX_TERMS;

const IMAGES: Images = Images {
    what: "the kernel of pruned list caching",
    ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/wang.ptx")),
    cubin_sm_90: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/wang.sm_90.cubin")),
};

/// Threads per block, one per document of a round.
pub(crate) const THREADS: u32 = ROUND as u32;

/// `CachedTerm` in wang.cuh.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TermArgument {
    pub(crate) docs: u64,
    pub(crate) freqs: u64,
    pub(crate) table: u64,
    pub(crate) num_buckets: u32,
    pub(crate) shift: u32,
    pub(crate) weight: f32,
    pub(crate) reserved: u32,
}

/// `CachedQuery` in wang.cuh.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct QueryArgument {
    pub(crate) first_term: u32,
    pub(crate) num_terms: u32,
    pub(crate) len: u32,
    pub(crate) behind: f32,
}

/// `CachedBatch` in wang.cuh.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct BatchArgument {
    pub(crate) queries: u64,
    pub(crate) terms: u64,
    pub(crate) priors: u64,
    pub(crate) norms: u64,
    pub(crate) global_scores: u64,
    pub(crate) results: u64,
    pub(crate) k: u32,
    pub(crate) ceiling: f32,
}

// SAFETY: plain words in C layout, of the size that the kernel has (checked when it is loaded).
unsafe impl DeviceRepr for BatchArgument {}

/// Loads the kernel, with its module, and compares its layout with this file.
pub(crate) fn load(device: &Device, stream: &Arc<CudaStream>) -> Result<(CudaFunction, Module), GpuError> {
    let module = Module::load(device, IMAGES)?;
    let layout =
        [ROUND, MAX_K, MAX_TERMS, size_of::<TermArgument>(), size_of::<QueryArgument>(), size_of::<BatchArgument>()];
    module.check_layout(stream, "cached_layout", &layout)?;
    Ok((module.function("rank_cached")?, module))
}
