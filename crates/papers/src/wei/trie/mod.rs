//! Indexing as published by Wei and JaJa 2011: a trie of B-trees, filled by CPUs and GPUs together.
//!
//! ```text
//! parsers (M threads): read in turn │ decompress, cut, stem, omit stop words │ regroup by slot
//!                                                                          │ buffers, in turn
//! indexers (C threads, G GPUs):  slots assigned by a sample ◀──────────────┤
//!    a B-tree per slot, nodes of 512 bytes │ lists of the run                ▼
//! a file per run: location table, lists in variable bytes ──▶ dictionary, merged runs ──▶ the index
//! ```
//!
//! | file | contents |
//! | --- | --- |
//! | `slots.rs`, `split.rs` | the trie's 17,613 slots, and their indexers |
//! | `grants.rs`, `parsers.rs`, `buffer.rs`, `stream.rs` | reading in turn, parsing, buffers |
//! | `node.rs`, `dictionary.rs` | B-trees of degree 16, the same bytes on CPU and GPU |
//! | `indexer.rs`, `cpu_indexer.rs`, `gpu/` | indexers |
//! | `sections.rs`, `run_file.rs` | lists of a run, and their file |
//! | `combine.rs` | the last stage: one dictionary, one list per term |
//! | `pipeline.rs`, `report.rs` | the whole indexer, and its reports |
//!
//! The index is that of Tandem's own indexer, byte for byte. Departures from the paper:
//!
//! - The tokenizer removes stop words before stemming.
//! - A string may be longer than 255 bytes (`stream`), and a run's location table is as long as the run has lists
//!   (`run_file`).

pub(crate) mod buffer;
mod combine;
mod cpu_indexer;
pub(crate) mod dictionary;
mod gpu;
mod grants;
mod indexer;
pub(crate) mod node;
mod parsers;
mod pipeline;
mod report;
mod run_file;
mod sections;
pub(crate) mod slots;
mod split;
pub(crate) mod stream;
#[cfg(test)]
mod tests;

pub use pipeline::{TrieIndexer, TrieOptions};
pub use report::{PartReport, RunReport, TrieReport};
