//! Indexer on a GPU: 480 thread blocks of a warp each, which process a slot at a time.
//!
//! ```text
//! prepare   the slots' streams, one after another, to the device; room for the worst
//! index     kernel `index_slots`: trees, and postings of each slot in the order in which they began
//! collect   postings and new terms back; a slot's postings by term, encoded
//! ```
//!
//! The trees stay on the device. Terms and their strings are copied back with every run.
//!
//! A [`Backend`](backend::Backend) is the device, or its twin on the host, which does the same steps for tests without
//! a GPU.

#[cfg(any(feature = "gpu", test))]
mod backend;
#[cfg(feature = "gpu")]
mod device;
#[cfg(any(feature = "gpu", test))]
mod gpu_indexer;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod twin;

#[cfg(any(feature = "gpu", test))]
pub(crate) use gpu_indexer::GpuIndexer;

use tandem_engine::search::device::GpuError;

use super::indexer::SlotIndexer;

/// Opens the indexer on a GPU. Returns [`GpuError::NoGpu`] if there is no such GPU.
#[cfg(feature = "gpu")]
pub(crate) fn open(ordinal: usize) -> Result<Box<dyn SlotIndexer>, GpuError> {
    let device = device::DeviceBackend::open(tandem_model::base::ids::DeviceId(ordinal as u32))?;
    Ok(Box::new(GpuIndexer::new(Box::new(device))))
}

/// Fails, because this build has no GPU support.
#[cfg(not(feature = "gpu"))]
pub(crate) fn open(_: usize) -> Result<Box<dyn SlotIndexer>, GpuError> {
    Err(GpuError::NoGpu(tandem_engine::search::device::NOT_BUILT.to_owned()))
}
