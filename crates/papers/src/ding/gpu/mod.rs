//! The GPU methods of Ding, He, Yan and Suel (WWW 2009), as published: what `tandem reproduce ding-*` runs.
//!
//! Tandem's own path (`GpuExecutor`) decodes, intersects, scores and selects in one pass. In
//! 2009 each of these was a step of its own that left its result in device memory for the next one. The same steps,
//! one kernel each:
//!
//! ```text
//! rice.rs         unary part: prefix sum, compaction ─▶ binary part: prefix sum ─▶ documents
//! pfor.rs         exceptions, level by level ─▶ slots + exceptions, block-local prefix sum ─▶ documents
//! merge_find.rs   splitters of A in B ─▶ splitters between these ─▶ ... ─▶ all of A in B
//! lists.rs        the lists of a log's terms, in the host's memory
//! search.rs       AND: blocks that are needed ─▶ decoded ─▶ intersected ─▶ scored, a term at a time
//!                 OR:  one accumulator a document, a term at a time
//! heap.rs         maxima of 512, of 512 of those ─▶ the best k
//! cache.rs        which lists lie in a cache, and where; what of a log finds its lists there
//! cached.rs       such a cache in device memory; other lists are copied while other queries are worked on
//! ```
//!
//! What is stored, and what each step reads and writes, is theirs; how a step uses a warp is today's. The encoders
//! are [`papers::codec`](tandem_core::index)'s; a device list adds to each nested array of exceptions the base of every
//! block of 512, which the paper's localised prefix sum needs there too. Each kernel has a twin on the host, in
//! `twin.rs` or in the codecs.
//!
//! Source: Ding, He, Yan, Suel, "Using Graphics Processors for High Performance IR Query Processing", WWW 2009.

mod arena;
pub(crate) mod cache;
pub(crate) mod cached;
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
