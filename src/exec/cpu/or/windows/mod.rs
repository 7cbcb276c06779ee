//! Window at a time: a run of documents is scored as a whole, in loops over arrays.
//!
//! | file | what |
//! | --- | --- |
//! | `window.rs`, `table.rs` | a window, and a table of the best that each list has in each of them |
//! | `scorer.rs` | scores one window in bulk; reads lists by `decoded_block.rs`, keeps documents in `candidates.rs` |
//! | `max_score.rs` | MaxScore: which terms are essential, by the bounds of lists |
//! | `block_max_max_score.rs` | Block-Max MaxScore: by those of each window |
//! | `live_ranges.rs` | the same, the most promising windows first |

pub(crate) mod block_max_max_score;
mod candidates;
mod decoded_block;
pub(crate) mod live_ranges;
pub(crate) mod max_score;
mod scorer;
mod table;
mod window;

pub(crate) use max_score::{WindowBounds, WindowSearch};
pub(crate) use scorer::WindowScorer;
pub(crate) use table::WindowTable;
