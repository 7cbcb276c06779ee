//! The CUDA executor: lists that drive, and documents that are looked up.
//!
//! ```text
//! one query           score_lone (and) ─▶ score_lone (or) ─▶ keys in pinned host memory
//! a batch             score_batch ─▶ score_tiles ─▶ score_batch (second stages) ─▶ merge_topk ─▶ keys
//!   nearly always     score_batch, or score_small_batch, whose input is a parameter: one launch
//! one query of many   terms by tiles, or for many results: as a batch of one
//! ```
//!
//! Under a budget of device memory, kernels read the other blocks from the host's memory across the bus (`tiered/`).
//!
//! The index lies in device memory in a form of its own (`lists.rs`), made from the file when it is uploaded
//! (`upload.rs`). For AND+OR all kernels are launched at once: the second stage reads on the device how many
//! documents the first one found, and returns when they were enough. What is decided beforehand (bounds, the
//! threshold to start with, which lists drive) is in `plan.rs`. The kernels are in `kernels/`, one family a file;
//! what they compile to is embedded in this binary, so that a machine needs NVIDIA's driver and nothing else. The
//! driver is loaded when a GPU is asked for: without one, all else works.
//!
//! Results equal those of the CPU bit for bit: each kernel adds a document's terms in the query's order and rounds as
//! [`Bm25::score`](crate::index::Bm25::score) does. `tests/gpu/main.rs` compares them where there is a GPU.

mod accepted;
mod arguments;
mod batch;
mod executor;
mod kernels;
mod lists;
mod lone;
mod plan;
mod share;
mod slot;
mod terms;
mod tiered;
mod upload;

pub use accepted::check;
pub use accepted::{MAX_K, MAX_TERMS};
pub use executor::GpuExecutor;
pub use plan::Pruning;
pub use tiered::GpuMemory;
pub use upload::UploadReport;
