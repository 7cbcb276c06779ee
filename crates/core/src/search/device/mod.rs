//! GPU devices, kernel images and page-locked memory, independent of indexes.
//!
//! ```text
//!   handle.rs       a GPU by its ordinal, or the reason why none is usable
//!   module.rs       compiled kernels, embedded in this binary, checked against the host's structures
//!   pinned.rs       host memory that both sides read and write
//!   host_memory.rs  host memory for scattered reads by the GPU
//!   staging.rs      large copies to the device
//!   limits.rs       limits of the GPU: copies, launches
//!   host_reads.rs   the rate of scattered reads of host memory
//! ```
//!
//! The driver is loaded on demand. A build without the feature `gpu` contains only the errors and reports that no GPU
//! is usable.

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

/// The reason why a build without the feature `gpu` has no GPU.
#[cfg(not(feature = "gpu"))]
pub const NOT_BUILT: &str = "this build has no GPU support (its feature `gpu` is off)";

/// The GPUs of this machine, which this build cannot see.
///
/// # Errors
/// Always [`GpuError::NoGpu`].
#[cfg(not(feature = "gpu"))]
pub fn list_gpus() -> Result<Vec<GpuInfo>, GpuError> {
    Err(GpuError::NoGpu(NOT_BUILT.to_owned()))
}
