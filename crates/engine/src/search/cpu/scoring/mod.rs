//! Scores: the shares of terms, their sums, and the threshold.

pub(crate) mod accumulator;
pub(crate) mod block;
pub(crate) mod threshold;
