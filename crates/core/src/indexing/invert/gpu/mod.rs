//! Inverting on a GPU, one stream per thread, together with CPU cores.
//!
//! ```text
//!  host    parse, simplify │ parse, simplify │ ...      │ stem, sort terms │        │ run
//!               ╲ piece        ╲ piece                 ╱ distinct words     ╲ terms  ╱ lists
//!  GPU           cut, number    cut, number ...  fetch                      sort, encode
//! ```
//!
//! A piece is a batch's text as bytes. The host cuts text that the GPU has no tables for, and writes such words in
//! their final form, between blanks. The kernels treat bytes above 127 as letters. The GPU thus orders and counts all
//! words, however long, in one dictionary.
//!
//! All text of a run stays on the device, and a word is identified by its first occurrence. A token is its word's slot
//! in a hash table, and its document. A run is full if the device lacks room for another batch, or if its batches take
//! the host's share of memory. Then the host fetches the distinct words, stems each once, and returns the rank of its
//! term among all terms of the run. The device sorts tokens by rank and writes lists in the form of
//! [`postings`](crate::indexing::postings).
//!
//! | file | contents |
//! | --- | --- |
//! | `lane.rs` | a thread that feeds a stream, and its batches if the GPU is lost |
//! | `accumulator.rs` | a growing run: pieces written, terms found |
//! | `backend.rs` | the interface of devices; `device.rs` the device, `twin.rs` its twin on the host, for tests |
//!
//! A thread waits for its own run only at the run's end. Other streams use the GPU until then.

mod accumulator;
mod backend;
#[cfg(feature = "gpu")]
mod device;
mod lane;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;

pub(crate) use backend::Backend;
pub use lane::GpuReport;
pub(crate) use lane::{Lane, SharedReport};

use crate::search::device::GpuError;

/// Opens `streams` streams on the first GPU, by default as many as `threads` threads feed and the GPU has room for.
///
/// # Errors
/// [`GpuError::NoGpu`] if there is no usable GPU, [`GpuError::DoesNotFit`] if it has too little memory.
#[cfg(feature = "gpu")]
pub(crate) fn open(streams: Option<usize>, threads: usize) -> Result<Vec<Box<dyn Backend>>, GpuError> {
    device::open(streams, threads)
}

/// Refuses, because this build has no support for GPUs.
#[cfg(not(feature = "gpu"))]
pub(crate) fn open(_: Option<usize>, _: usize) -> Result<Vec<Box<dyn Backend>>, GpuError> {
    Err(GpuError::NoGpu(crate::search::device::NOT_BUILT.to_owned()))
}
