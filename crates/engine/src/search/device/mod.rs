//! GPU devices, kernel images and page-locked memory, independent of indexes.
//!
//! ```text
//!   handle.rs       a GPU by its ordinal, or the reason why none is usable
//!   module.rs       compiled kernels, embedded in this binary, checked against the host's structures
//!   pinned.rs       host memory that both sides read and write
//!   host_memory.rs  host memory for scattered reads by the GPU
//!   staging.rs      large copies to the device
//!   wait.rs         waits that end in an error if a GPU hangs
//!   energy.rs       joules of a run
//!   limits.rs       limits of the GPU: copies, launches
//!   host_reads.rs   the rate of scattered reads of host memory
//! ```
//!
//! The driver is loaded on demand. A build without the feature `gpu` contains only the errors and reports that no GPU
//! is usable.

use tandem_base::base::ids::DeviceId;

mod energy;
mod error;

#[cfg(feature = "gpu")]
mod handle;
#[cfg(feature = "gpu")]
pub(crate) mod host_memory;
#[cfg(feature = "gpu")]
mod host_reads;
#[cfg(feature = "gpu")]
mod limits;
#[cfg(feature = "gpu")]
mod module;
#[cfg(feature = "gpu")]
mod pinned;
#[cfg(feature = "gpu")]
pub(crate) mod staging;
#[cfg(feature = "gpu")]
pub(crate) mod wait;

pub use energy::EnergyProbe;
pub use error::GpuError;
#[cfg(feature = "gpu")]
pub use handle::{DRIVER_FUNCTIONS, Device, list_gpus};
#[cfg(feature = "gpu")]
pub use limits::DeviceLimits;
#[cfg(all(test, feature = "gpu"))]
pub(crate) use module::layout_in_ptx;
#[cfg(feature = "gpu")]
pub(crate) use module::offsets;
#[cfg(feature = "gpu")]
pub use module::{Images, Module, shape};
#[cfg(feature = "gpu")]
pub use pinned::Pinned;
#[cfg(feature = "gpu")]
pub use wait::{has_hung, wait, wait_for};

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuInfo {
    /// The ordinal. `CUDA_VISIBLE_DEVICES` selects and renumbers GPUs.
    pub ordinal: DeviceId,
    /// The driver's name of the GPU.
    pub name: String,
    /// Device memory in bytes.
    pub memory_bytes: u64,
    /// Compute capability, major and minor.
    pub capability: (i32, i32),
}

/// The reason why a build without the feature `gpu` has no GPU.
#[cfg(not(feature = "gpu"))]
pub const NOT_BUILT: &str = "this build has no GPU support (its feature `gpu` is off)";

/// The GPUs of this machine, which this build cannot see. Always fails with [`GpuError::NoGpu`].
#[cfg(not(feature = "gpu"))]
pub fn list_gpus() -> Result<Vec<GpuInfo>, GpuError> {
    Err(GpuError::NoGpu(NOT_BUILT.to_owned()))
}
