//! GPUs: devices, kernels, page-locked memory. What everything that uses one builds on; it knows nothing of indexes.
//!
//! ```text
//!   handle.rs    a GPU by its ordinal, or the reason why there is none to use
//!   module.rs    compiled kernels, embedded in this binary, checked against the host's structures
//!   pinned.rs    memory of the host that both sides read and write
//!   host_memory.rs  memory of the host for scattered reads by the GPU
//!   staging.rs   large copies to the device
//!   limits.rs    what this GPU can do at best: copies, launches
//!   host_reads.rs  the rate of scattered reads of the host's memory
//! ```
//!
//! The driver is loaded when a GPU is asked for: without one, all else works. A build without the feature `gpu` has
//! none of this but the reasons: it says that there is no GPU to use, as a machine without one does.

mod error;
mod info;

#[cfg(feature = "gpu")]
mod handle;
#[cfg(feature = "gpu")]
mod host_memory;
#[cfg(feature = "gpu")]
mod host_reads;
#[cfg(feature = "gpu")]
mod limits;
#[cfg(feature = "gpu")]
mod module;
#[cfg(feature = "gpu")]
mod pinned;
#[cfg(all(feature = "gpu", test))]
mod reservation;
#[cfg(feature = "gpu")]
mod staging;

pub use error::GpuError;
pub use info::GpuInfo;

#[cfg(feature = "gpu")]
pub use handle::Device;
#[cfg(feature = "gpu")]
pub use handle::list_gpus;
#[cfg(feature = "gpu")]
pub(crate) use host_memory::HostMemory;
#[cfg(feature = "gpu")]
pub use limits::DeviceLimits;
#[cfg(feature = "gpu")]
pub use module::{Images, Module, shape};
#[cfg(feature = "gpu")]
pub use pinned::Pinned;
#[cfg(all(feature = "gpu", test))]
pub(crate) use reservation::Reservation;
#[cfg(feature = "gpu")]
pub(crate) use staging::{STAGING_WORDS, Staging};

/// Why a build without the feature `gpu` has none.
#[cfg(not(feature = "gpu"))]
pub const NOT_BUILT: &str = "this build has no GPU support (its feature `gpu` is off)";

/// The GPUs of this machine: none, in this build.
///
/// # Errors
/// [`GpuError::NoGpu`], always.
#[cfg(not(feature = "gpu"))]
pub fn list_gpus() -> Result<Vec<GpuInfo>, GpuError> {
    Err(GpuError::NoGpu(NOT_BUILT.to_owned()))
}
