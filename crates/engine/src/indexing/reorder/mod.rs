//! Renumbering of documents, so that similar ones have near numbers.
//!
//! Lists store gaps between documents, and blocks store the best impact of 128 neighbours. If documents that share
//! words have near numbers, gaps are small and blocks differ: lists take fewer bits, and searches skip more. Names,
//! lengths and scores stay with the documents. Only ties between equal scores are broken otherwise.
//!
//! ```text
//! index ──bisection, permutation file, keys──▶ Permutation ──apply──▶ index in the new order
//! ```
//!
//! [`bisect`] finds an order from the lists alone, [`Permutation`] holds any order, [`apply`] rewrites the index,
//! and [`log_gap_bits`] measures an order.

mod apply;
mod bisection;
mod forward;
mod gains;
mod permutation;

pub use apply::{apply, keep_last, log_gap_bits};
pub use bisection::{BisectionOptions, bisect};
pub use permutation::{Permutation, read_scores};

#[cfg(test)]
mod tests;
