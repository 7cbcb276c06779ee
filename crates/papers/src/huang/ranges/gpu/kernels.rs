//! The kernels by document ranges and their arguments.
//!
//! The structures repeat those of `kernels/huang/huang.cuh`; [`Kernels::load`] compares their sizes.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute as Attribute};
use cudarc::driver::{CudaFunction, CudaStream, DeviceRepr, DriverError, ValidAsZeroBits};
use tandem_engine::search::device::{Device, GpuError, Images, Module};

use crate::huang::ranges::batch::{CURSOR_WORDS, QueryEntry, TermEntry};
use crate::huang::ranges::list::{RANGE_BLOCK_LEN, RangeBlock};
use crate::huang::ranges::range::MAX_OWNERS;
use crate::huang::ranges::strategy::Strategy;

const IMAGES: Images = Images {
    what: "the kernels by document ranges",
    ptx: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/huang.ptx")),
    cubin_sm_90: include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernels/compiled/huang.sm_90.cubin")),
};

/// Inverse of the slack of bounds, 2^16.
const SLACK_PARTS: usize = 65_536;

/// `RangeBatch`: device addresses of buffers that outlive the launch.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct BatchArgument {
    pub(crate) queries: u64,
    pub(crate) terms: u64,
    /// Address of the norms; 0 if all documents have `norm`.
    pub(crate) norms: u64,
    pub(crate) state: u64,
    /// Address of the threads' keys; 0 if they are in shared memory.
    pub(crate) local_keys: u64,
    pub(crate) results: u64,
    pub(crate) reports: u64,
    pub(crate) num_docs: u32,
    pub(crate) k: u32,
    pub(crate) norm: f32,
    /// Threads of a block per thread of its query.
    pub(crate) spread: u32,
    /// Vectors of shared memory for cursors.
    pub(crate) room: u32,
    pub(crate) reserved: u32,
}

/// Report of a query: `RangeReport`.
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Report {
    /// Cycles of the multiprocessor in initialisation, scoring and merging.
    pub(crate) cycles: [u64; 3],
    pub(crate) postings_scored: u64,
    /// Blocks that were decoded. A block across a border counts for each owner.
    pub(crate) blocks_decoded: u64,
    /// Number of documents found, at most `k`.
    pub(crate) found: u32,
    pub(crate) reserved: u32,
}

// SAFETY: plain words in C layout, of the size that the kernels have (checked when they are loaded).
unsafe impl DeviceRepr for BatchArgument {}
// SAFETY: as above.
unsafe impl DeviceRepr for Report {}
// SAFETY: as above; all zero is a report.
unsafe impl ValidAsZeroBits for Report {}

#[derive(Debug)]
pub(crate) struct Kernels {
    by_strategy: [CudaFunction; Strategy::ALL.len()],
    _module: Module,
    /// Maximum dynamic shared memory of a thread block.
    pub(crate) shared_bytes: usize,
}

impl Kernels {
    /// Loads the kernels and compares their layout with this file.
    pub(crate) fn load(device: &Device, stream: &Arc<CudaStream>) -> Result<Self, GpuError> {
        let module = Module::load(device, IMAGES)?;
        let layout = [
            RANGE_BLOCK_LEN,
            MAX_OWNERS as usize,
            CURSOR_WORDS,
            SLACK_PARTS,
            size_of::<RangeBlock>(),
            size_of::<TermEntry>(),
            size_of::<QueryEntry>(),
            size_of::<Report>(),
            size_of::<BatchArgument>(),
        ];
        module.check_layout(stream, "ranges_layout", &layout)?;
        let kernel = |strategy| module.function(Self::name(strategy));
        let [and, or, wand, bmw] = Strategy::ALL.map(kernel);
        let by_strategy = [and?, or?, wand?, bmw?];
        let shared_bytes = admit_shared(device, &by_strategy);
        let shared_bytes = shared_bytes.map_err(|e| GpuError::of(format!("loading {}", IMAGES.what), &e))?;
        Ok(Self { by_strategy, _module: module, shared_bytes })
    }

    pub(crate) fn of(&self, strategy: Strategy) -> &CudaFunction {
        &self.by_strategy[strategy as usize]
    }

    pub(crate) fn name(strategy: Strategy) -> &'static str {
        match strategy {
            Strategy::And => "ranges_and",
            Strategy::Or => "ranges_or",
            Strategy::Wand => "ranges_wand",
            Strategy::Bmw => "ranges_bmw",
        }
    }
}

/// Lets all kernels have as much dynamic shared memory as the device admits; returns the bytes.
fn admit_shared(device: &Device, kernels: &[CudaFunction]) -> Result<usize, DriverError> {
    let most = device.context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let fixed = kernels.iter().map(|kernel| kernel.get_attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
    let fixed = fixed.collect::<Result<Vec<_>, _>>()?.into_iter().max().unwrap_or(0);
    for kernel in kernels {
        kernel.set_attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most - fixed)?;
    }
    Ok((most - fixed).unsigned_abs() as usize)
}
