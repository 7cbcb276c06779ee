//! Conjunctions (AND): documents that are in every list.
//!
//! | file | condition | method |
//! | --- | --- | --- |
//! | `small_vs_small.rs` | the rarest list is not dense | it leads, block by block; the others filter its documents; the rest is scored |
//! | `bitmaps.rs` | all lists are dense | their bits, 64 documents at a time |
//!
//! `conjunction.rs` chooses and owns the memory. Both keep and score their results in `candidates.rs`.

mod bitmaps;
mod bounds;
mod candidates;
pub(crate) mod conjunction;
mod small_vs_small;
