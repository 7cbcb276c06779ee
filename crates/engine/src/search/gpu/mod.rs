//! The CUDA executor.
//!
//! ```text
//! one query           score_lone (and) ─▶ score_lone (or) ─▶ keys in pinned host memory
//! a batch             score_batch ─▶ score_tiles ─▶ score_batch (second stages) ─▶ merge_topk ─▶ keys
//!   nearly always     score_batch, or score_small_batch with its input as a parameter: one launch
//!   of impacts        score_impact_tiles in place of score_tiles
//! one query of many   a batch of one, if it is scored by tiles or asks for many results
//! ```
//!
//! The index has its own form in device memory (`lists.rs`), made from the file at upload (`upload.rs`). Under a budget
//! of device memory, kernels read other blocks from host memory across the bus (`tiered.rs`). Host planning (`plan.rs`)
//! sets bounds, the initial threshold and the driving lists. For AND+OR all kernels are launched at once: the second
//! stage reads on the device how many documents the first one found, and returns if they suffice.
//!
//! The kernels are in `kernels/`, one family per file. Their images are embedded in this binary, so a machine needs
//! NVIDIA's driver only, which is loaded on demand.
//!
//! Results equal those of the CPU bit for bit: each kernel adds a document's terms in the query's order and rounds like
//! [`Bm25::score`](crate::index::Bm25::score), or adds impacts, whose sums are exact in any order. `tests/gpu/main.rs`
//! compares them on a GPU.

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

pub use arguments::{MAX_K, MAX_TERMS};
pub use executor::GpuExecutor;
pub use plan::{Pruning, check};
pub use tiered::GpuMemory;

pub use crate::search::UploadReport;
