//! Experiments of Wei and JaJa 2011: an inverted file built by CPUs and GPUs together.
//!
//! All experiments run the paper's method, [`trie`](crate::wei::trie). `collections.rs` generates text like the paper's
//! collections, and `bench.rs` builds indexes from it.

mod bench;
pub(crate) mod caches;
mod collections;
pub(crate) mod fig10;
pub(crate) mod fig11;
pub(crate) mod fig12;
pub(crate) mod regrouping;
pub(crate) mod table4;
pub(crate) mod table5;
pub(crate) mod table6;
mod tokens;
