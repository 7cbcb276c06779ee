//! Disjunctions (OR): documents that are in any list.
//!
//! | file | method |
//! | --- | --- |
//! | `exhaustive.rs` | term at a time inside windows of documents; scores every posting: the reference |
//! | `pruned.rs` | entry of the pruned algorithms: choice, initial threshold, memory |
//! | `wand.rs` | WAND: document at a time, skips by bounds of lists |
//! | `block_max_wand.rs` | Block-Max WAND: also skips by bounds of blocks |
//! | `pivot.rs` | positions of all cursors, and the next document that can enter, for WAND |
//! | `sorted.rs` | both WANDs for queries of more than 64 terms |
//! | `max_score.rs` | MaxScore: windows in bulk, with look-ups of common terms |
//! | `scorer.rs`, `decoded_block.rs`, `candidates.rs` | one window of MaxScore, its blocks, and its candidates |

mod block_max_wand;
mod candidates;
mod decoded_block;
pub(crate) mod exhaustive;
mod max_score;
mod pivot;
pub(crate) mod pruned;
mod scorer;
mod sorted;
mod wand;
