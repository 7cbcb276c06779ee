//! Inverting on a GPU, a stream a thread, beside the CPU's cores.
//!
//! ```text
//!  host    parse, simplify │ parse, simplify │ ...      │ stem, sort terms │        │ run
//!               ╲ piece        ╲ piece                 ╱ distinct words     ╲ terms  ╱ lists
//!  GPU           cut, number    cut, number ...  fetch                      sort, encode
//! ```
//!
//! A piece is a batch's text as bytes. What the GPU has no tables for is cut by the host, which writes such words into the text as
//! they are to be, between blanks; to the kernels bytes above 127 are letters. So order and counting are the GPU's for all
//! words, however long, and there is one dictionary.
//!
//! All text of a run stays on the device: a word is known by the place where it first stood. A token is its word's slot in a hash
//! table, and its document. When the run is full (so much text that the device has no room for more, or as much as the memory that
//! the user gives allows the host to keep), the host gets the distinct words, stems each once, and says which place its term has
//! among all terms of the run; the device sorts tokens by it, and writes lists as [`postings`](crate::indexing::postings) has them.
//!
//! | file | what it does |
//! | --- | --- |
//! | `lane.rs` | a thread that feeds a stream, and what becomes of its batches if the GPU is lost |
//! | `accumulator.rs` | a run that grows: pieces written, terms found |
//! | `backend.rs` | what is asked of a device; `device.rs` the device, `twin.rs` its twin on the host, for tests |
//!
//! Who feeds a stream waits for its own run at the run's end only, and other streams use the GPU meanwhile.

mod accumulator;
mod backend;
#[cfg(feature = "gpu")]
mod device;
mod lane;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod twin;

pub(super) use backend::Backend;
pub use lane::GpuReport;
pub(super) use lane::{Lane, SharedReport};

use crate::search::device::GpuError;

/// Streams on the first `gpus` GPUs, so many of each; or, unless given, as many as `threads` threads feed and the GPUs have room
/// for.
///
/// # Errors
/// [`GpuError::NoGpu`] if there are not so many to use, [`GpuError::DoesNotFit`] if one has no room for that.
#[cfg(feature = "gpu")]
pub(super) fn open(gpus: usize, streams: Option<usize>, threads: usize) -> Result<Vec<Box<dyn Backend>>, GpuError> {
    device::open(gpus, streams, threads)
}

/// Streams on GPUs: this build knows none.
///
/// # Errors
/// [`GpuError::NoGpu`], always.
#[cfg(not(feature = "gpu"))]
pub(super) fn open(_: usize, _: Option<usize>, _: usize) -> Result<Vec<Box<dyn Backend>>, GpuError> {
    Err(GpuError::NoGpu(crate::search::device::NOT_BUILT.to_owned()))
}
