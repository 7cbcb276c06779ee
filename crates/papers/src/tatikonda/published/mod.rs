//! The methods of Tatikonda et al. as they were published: the baseline of their figures here.
//!
//! [`multicore`](tandem_core::search::cpu::multicore) has the same four ways to share queries among cores, on Tandem's index and
//! operators. Here are the paper's own lists and steps: postings packed by PForDelta between skips of 512, intersected by
//! eliminators ([`daat::intersect`](crate::ding::daat)), blocks decoded one after another.
//!
//! | file | what |
//! | --- | --- |
//! | `core.rs` | one core on a range of documents, as an executor: INTER |
//! | `gang.rs` | DOCP: a range for each core, on one index or an index each; all wait for the slowest |
//! | `tasks.rs` | algorithm 4: a task for each skip block of the rarest list |
//! | `pools.rs` | FGQP: one producer, a pool of intersections and one of scorings |
//!
//! Source: Tatikonda, Cambazoglu, Junqueira, "Posting List Intersection on Multicore Architectures", SIGIR 2011.

pub(crate) mod core;
pub(crate) mod gang;
pub(crate) mod pools;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
