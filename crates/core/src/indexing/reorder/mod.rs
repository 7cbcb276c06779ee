//! Renumbering documents, so that like ones stand together.
//!
//! Lists hold the gaps between documents, and blocks the best impact of 128 neighbours. Where documents that share
//! words have near numbers, gaps get small and blocks get unlike each other: lists take fewer bits, and searches skip
//! more. Names, lengths, and so scores, stay with the documents; only ties between equal scores are broken otherwise.
//!
//! ```text
//! index ──bisection, permutation file, keys──▶ Permutation ──apply──▶ index in the new order
//! ```
//!
//! [`bisect`] finds an order from the lists alone, [`Permutation`] holds any order, [`apply`] writes the index anew,
//! and [`log_gap_bits`] says what an order is worth.

mod apply;
mod bisection;
mod cost;
mod forward;
mod gains;
mod permutation;

pub use apply::{apply, keep_last};
pub use bisection::{BisectionOptions, bisect};
pub use cost::log_gap_bits;
pub use permutation::{Permutation, read_scores};

#[cfg(test)]
mod tests;
