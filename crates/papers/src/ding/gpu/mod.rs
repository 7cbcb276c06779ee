//! The GPU methods of Ding, He, Yan and Suel (WWW 2009), as published.
//!
//! Tandem's own `GpuExecutor` decodes, intersects, scores and selects in one pass. In 2009 each of these was a step
//! that left its result in device memory for the next one. The same steps, with a kernel each:
//!
//! ```text
//! rice.rs         unary part: prefix sum, compaction ─▶ binary part: prefix sum ─▶ documents
//! pfor.rs         exceptions, level by level ─▶ slots + exceptions, block-local prefix sum ─▶ documents
//! merge_find.rs   splitters of A in B ─▶ splitters between these ─▶ ... ─▶ all of A in B
//! lists.rs        lists of a log's terms in host memory
//! search.rs       AND: needed blocks ─▶ decoded ─▶ intersected ─▶ scored, term by term
//!                 OR:  one accumulator per document, term by term
//! heap.rs         maxima of 512, of 512 of those ─▶ the best k
//! ```
//!
//! The stored data, and the inputs and outputs of the steps, are the paper's; the use of warps within a step is
//! today's. The encoders are those of [`codec`](crate::codec). A device list adds the base of every block of 512 to
//! each nested array of exceptions, because the paper's localised prefix sum needs it there too. Each kernel has a twin
//! on the host, in `twin.rs` or in the codecs.
//!
//! Source: Ding, He, Yan, Suel, "Using Graphics Processors for High Performance IR Query Processing", WWW 2009.

mod arena;
mod compact;
mod context;
mod heap;
mod kernels;
pub(crate) mod lists;
pub(crate) mod merge_find;
mod pfor;
mod plan;
mod rice;
pub(crate) mod search;
pub(crate) mod stages;
#[cfg(test)]
mod tests;
mod twin;

pub use context::PublishedGpu;
pub use pfor::PforBatch;
pub use rice::RiceBatch;
