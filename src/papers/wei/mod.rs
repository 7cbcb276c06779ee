//! Tables and figures of Wei and JaJa 2011: an inverted file made by CPUs and GPUs side by side.
//!
//! All of them run [`trie`](super::trie), the paper's method. `collections.rs` makes text like the paper's collections,
//! `bench.rs` builds and sums up.

mod bench;
mod collections;
pub(super) mod fig10;
pub(super) mod fig11;
pub(super) mod fig12;
pub(super) mod table4;
pub(super) mod table5;
pub(super) mod table6;
