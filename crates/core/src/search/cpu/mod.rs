//! CPU executors: an algorithm a file, a family of them a room.
//!
//! | room | what |
//! | --- | --- |
//! | `or/` | documents with any term: exhaustively, or pruned by WAND, Block-Max WAND or MaxScore |
//! | `and/` | documents with all terms: small versus small, or bitmaps |
//! | [`multicore`] | many cores: each its own queries, all one query, or what pays at the moment |
//! | `blocks/` | how lists are read: cursors, searching, bounds, tiles of bitmaps |
//! | `scoring/` | BM25 shares in bulk, what they are summed in, and the score that must be exceeded |
//! | `simd/` | vector instructions, each with a portable twin |
//!
//! A room imports only from those below it in this table. `executor.rs` says which algorithm a query takes (AND+OR: an AND, then an OR if that found too few) and owns the
//! scratch memory of all of them. All keep the best documents in a [`TopK`](super::TopK). A score is a sum of the terms'
//! shares in the query's order, so that all algorithms give the same bits; the exhaustive one is the reference for every
//! other executor, on the GPU too.

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
