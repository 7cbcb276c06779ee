//! Window at a time: a run of documents is scored as a whole, in loops over arrays.
//!
//! | file | what |
//! | --- | --- |
//! | `max_score.rs` | MaxScore: which terms are essential, by the bounds of lists |
//! | `scorer.rs` | scores one window in bulk; reads lists by `decoded_block.rs`, keeps documents in `candidates.rs` |

mod candidates;
mod decoded_block;
mod max_score;
mod scorer;

pub(crate) use max_score::{WindowBounds, WindowSearch};
pub(crate) use scorer::WindowScorer;
