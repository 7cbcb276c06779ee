//! Document ranges on a GPU: a thread block per query, a thread per range.
//!
//! ```text
//! cache.rs      lists of more than one block, in the device's memory
//! kernels.rs    the kernels and their arguments
//! executor.rs   a batch: packed, copied, launched, copied back
//! ```

mod cache;
pub(crate) mod executor;
mod kernels;
