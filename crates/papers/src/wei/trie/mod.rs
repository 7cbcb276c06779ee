//! Indexing as Wei and JaJa 2011 published it: a trie of B-trees, filled by CPUs and GPUs side by side.
//!
//! ```text
//! parsers (M threads): read in turn │ decompress, cut, stem, leave out │ regroup by slot of the trie
//!                                                                          │ buffers, in turn
//! indexers (C threads, G GPUs):  each its slots ◀── split by a sample ─────┤
//!    a B-tree a slot, nodes of 512 bytes │ lists of the run                ▼
//! a file a run: location table, lists in variable bytes ──▶ dictionary, all runs merged ──▶ the index
//! ```
//!
//! | file | what it does |
//! | --- | --- |
//! | `slots.rs`, `split.rs` | the trie's 17,613 slots, and whose each is |
//! | `grants.rs`, `parsers.rs`, `buffer.rs`, `stream.rs` | reading in turn, parsing, what is handed over |
//! | `node.rs`, `dictionary.rs` | B-trees of degree 16, the same bytes on CPU and GPU |
//! | `indexer.rs`, `cpu_indexer.rs`, `gpu/` | indexers |
//! | `sections.rs`, `run_file.rs` | lists of a run, and their file |
//! | `combine.rs` | the end: one dictionary, one list a term |
//! | `pipeline.rs`, `report.rs` | all of it in order, and what it took |
//!
//! The index is that of Tandem's own way, byte for byte. Where the paper is departed from, and why:
//!
//! - Words are stemmed, and stop words left out, as the tokenizer says: stop words first.
//! - A string may be longer than 255 bytes (`stream`), and a run's location table is as long as the run has lists
//!   (`run_file`).
//! - Where a GPU is lost, a CPU goes on with its slots (`indexer`).

mod buffer;
mod combine;
mod cpu_indexer;
mod dictionary;
mod gpu;
mod grants;
mod indexer;
mod node;
mod parsers;
mod pipeline;
mod report;
mod run_file;
mod sections;
mod slots;
mod split;
mod stream;
#[cfg(test)]
mod tests;

pub use pipeline::{TrieIndexer, TrieOptions};
pub use report::{PartReport, RunReport, TrieReport};
