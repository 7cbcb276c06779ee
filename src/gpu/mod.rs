//! GPUs: devices, kernels, page-locked memory. What everything that uses one builds on; it knows nothing of indexes.
//!
//! ```text
//!   device.rs    a GPU by its ordinal, or the reason why there is none to use
//!   module.rs    compiled kernels, embedded in this binary, checked against the host's structures
//!   pinned.rs    memory of the host that both sides read and write
//!   far_memory.rs  memory of the host that the GPU reads from all over
//!   staging.rs   large copies to the device
//!   tiered.rs    kernels that read, and bring near, what lies there
//!   limits.rs    what this GPU can do at best: copies, launches
//!   far_reads.rs   scattered reads of the host's memory, likewise
//! ```
//!
//! The driver is loaded when a GPU is asked for: without one, all else works. A build without the feature `gpu` has
//! none of this but the reasons: it says that there is no GPU to use, as a machine without one does.

mod error;
mod info;

#[cfg(feature = "gpu")]
mod device;
#[cfg(feature = "gpu")]
mod far_memory;
#[cfg(all(feature = "gpu", feature = "cli"))]
mod far_reads;
#[cfg(all(feature = "gpu", feature = "cli"))]
mod limits;
#[cfg(feature = "gpu")]
mod module;
#[cfg(feature = "gpu")]
mod pinned;
#[cfg(all(feature = "gpu", test))]
mod reservation;
#[cfg(feature = "gpu")]
mod staging;
#[cfg(feature = "gpu")]
pub(crate) mod tiered;

pub use error::GpuError;
pub use info::GpuInfo;

#[cfg(feature = "gpu")]
pub(crate) use device::Device;
#[cfg(feature = "gpu")]
pub use device::list_gpus;
#[cfg(feature = "gpu")]
pub(crate) use far_memory::FarMemory;
#[cfg(all(feature = "gpu", feature = "cli"))]
pub(crate) use limits::DeviceLimits;
#[cfg(feature = "gpu")]
pub(crate) use module::{Images, Module, shape};
#[cfg(feature = "gpu")]
pub(crate) use pinned::Pinned;
#[cfg(all(feature = "gpu", test))]
pub(crate) use reservation::Reservation;
#[cfg(feature = "gpu")]
pub(crate) use staging::{STAGING_WORDS, Staging};

/// Why a build without the feature `gpu` has none.
#[cfg(not(feature = "gpu"))]
pub(crate) const NOT_BUILT: &str = "this build has no GPU support (its feature `gpu` is off)";

/// The GPUs of this machine: none, in this build.
///
/// # Errors
/// [`GpuError::NoGpu`], always.
#[cfg(not(feature = "gpu"))]
pub fn list_gpus() -> Result<Vec<GpuInfo>, GpuError> {
    Err(GpuError::NoGpu(NOT_BUILT.to_owned()))
}
