//! CPU executors, one algorithm per file.
//!
//! | folder | content |
//! | --- | --- |
//! | `or/` | documents with any term: exhaustively, or pruned by MaxScore |
//! | `and/` | documents with all terms: small versus small, or bitmaps |
//! | [`multicore`] | many cores: one query per core, one query on all cores, or adaptive |
//! | `blocks/` | reading of posting lists: searching, bounds, tiles of bitmaps |
//! | `scoring/` | BM25 shares in bulk, their accumulators and the threshold |
//! | `simd.rs` | vector instructions, each with a portable twin |
//!
//! A row imports only from later rows. `executor.rs` selects the algorithm of a query and owns the scratch memory;
//! AND+OR runs an AND, then an OR if that found too few. All algorithms keep the best documents in a
//! [`TopK`](super::TopK). A score is the sum of the terms' shares in the query's order, so all algorithms give the same
//! bits as the exhaustive one.

mod algorithm;
mod and;
mod blocks;
pub mod executor;
pub mod multicore;
mod or;
mod scoring;
mod simd;
#[cfg(test)]
mod tests;

pub use algorithm::Algorithm;
pub use executor::CpuExecutor;
