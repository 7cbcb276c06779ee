//! Tables and figures of Wei and JaJa 2011: an inverted file made by CPUs and GPUs side by side.
//!
//! All of them run [`trie`](crate::wei::trie), the paper's method. `collections.rs` makes text like the paper's collections,
//! `bench.rs` builds and sums up.

mod bench;
mod collections;
pub(crate) mod fig10;
pub(crate) mod fig11;
pub(crate) mod fig12;
pub(crate) mod table4;
pub(crate) mod table5;
pub(crate) mod table6;
