//! AND: the documents that are in every list.
//!
//! | file | when | how |
//! | --- | --- | --- |
//! | `small_vs_small.rs` | the rarest list is not dense | it leads, block by block; the others sieve its documents; only what is left is scored |
//! | `bitmaps.rs` | all lists are dense | their bits, 64 documents at a time |
//!
//! `conjunction.rs` says which, and owns the memory. Both keep what is left in `candidates.rs`, and score it there.

mod bitmaps;
mod candidates;
mod conjunction;
mod small_vs_small;

pub(crate) use conjunction::Conjunction;
