//! OR: the documents that are in any list.
//!
//! | file | how |
//! | --- | --- |
//! | `exhaustive.rs` | term at a time inside windows of documents; every posting is scored: the reference |
//! | `pivots/` | document at a time (WAND), skipping what the bounds of terms, or of blocks, rule out |
//! | `windows/` | window at a time (MaxScore), in bulk; terms that cannot lift a document into the result are only looked up |
//!
//! The last two prune: they begin in `pruned.rs`, with a threshold to start from (`initial_threshold.rs`).
//! [`Algorithm::Auto`](super::Algorithm) chooses one of the three there, by what is known of the query.

mod exhaustive;
mod initial_threshold;
mod pivots;
mod pruned;
mod windows;

pub(crate) use exhaustive::Exhaustive;
pub(crate) use pruned::PrunedOr;
