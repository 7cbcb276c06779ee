//! Scores: a term's share of them, what they are summed in, and what they must exceed.

mod accumulator;
mod block;
mod threshold;

pub(crate) use accumulator::{Accumulator, fits_u16};
pub(crate) use block::score_block;
pub(crate) use threshold::{Slack, Threshold};
