//! CPU executors, one algorithm a file.
//!
//! | file | mode | how |
//! | --- | --- | --- |
//! | `exhaustive.rs`, `sum.rs` | OR | term at a time inside windows of documents; every posting is scored; in floats, or in 16-bit integers where postings are impacts |
//! | `tile.rs` | OR, AND | lists with a good part of all documents: rows of documents, without decoding one |
//! | `wand.rs`, `block_max_wand.rs` | OR | document at a time, skipping what the bounds of terms, or of blocks, rule out |
//! | `max_score.rs` | OR | windows in bulk; terms that cannot lift a document into the result by themselves are only looked up |
//! | `block_max_max_score.rs`, `ranges.rs` | OR | the same with bounds of each window; the most promising windows first |
//! | `auto.rs` | OR | chooses one of them by the query's features |
//! | `and.rs` | AND | the rarest list leads, block by block; the others sieve its documents; only what is left is scored |
//! | `and_dense.rs` | AND | lists that are all dense: their bits, 64 documents at a time |
//! | `and_or.rs` | AND+OR | AND, then OR if that found too few |
//! | [`multicore`] | all | many cores: each its own queries, all one query, or what pays at the moment |
//!
//! AND keeps its candidates in `matches.rs` and searches blocks by `block_search.rs`. Pruned OR begins in `pruned.rs`,
//! with the terms' bounds (`term.rs`, `bounds.rs`), a threshold to start with (`seed.rs`), and the score that must be
//! exceeded (`floor.rs`). WAND reads lists through forward cursors (`cursor.rs`) and finds pivots by `positions.rs`.
//! MaxScore and its block-max forms go through the windows (`window.rs`) of a table (`window_table.rs`) and score each
//! by `bulk.rs`, which decodes by `decoded.rs` and sifts candidates by `candidates.rs`. Shares are computed in bulk by
//! `scoring.rs`; loops that are compiled twice ask `vectors.rs` what the processor has. All keep the best documents in
//! a [`TopK`](super::TopK). A score is a sum of the terms' shares in the query's order, so that all algorithms give the
//! same bits; the exhaustive one is the reference for every other executor, on the GPU too.

mod algorithm;
mod and;
mod and_dense;
mod and_or;
mod auto;
mod block_max_max_score;
mod block_max_wand;
mod block_search;
mod bounds;
mod bulk;
mod candidates;
mod cursor;
mod decoded;
mod executor;
mod exhaustive;
mod floor;
mod lanes;
mod matches;
mod max_score;
pub mod multicore;
mod positions;
mod pruned;
mod ranges;
mod scored_block;
mod scoring;
mod seed;
mod sum;
mod term;
#[cfg(test)]
mod tests;
mod tile;
mod vectors;
mod wand;
mod window;
mod window_table;
mod word;

pub use algorithm::Algorithm;
pub use executor::CpuExecutor;
