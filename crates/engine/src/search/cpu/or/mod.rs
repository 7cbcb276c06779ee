//! Disjunctions (OR): documents that are in any list.
//!
//! | file | method |
//! | --- | --- |
//! | `exhaustive.rs` | term at a time inside windows of documents; scores every posting: the reference |
//! | `pruned.rs` | choice of the algorithm, initial threshold, memory |
//! | `max_score.rs` | MaxScore: windows in bulk, with look-ups of common terms |
//! | `scorer.rs`, `decoded_block.rs`, `candidates.rs` | one window of MaxScore, its blocks, and its candidates |

mod candidates;
mod decoded_block;
pub(crate) mod exhaustive;
mod max_score;
pub(crate) mod pruned;
mod scorer;
