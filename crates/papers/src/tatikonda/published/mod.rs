//! The methods of Tatikonda et al. as published, the baseline of their figures.
//!
//! [`multicore`](tandem_engine::search::cpu::multicore) has the same four ways to share queries among cores on Tandem's
//! index and operators. This module has the paper's lists and steps: postings packed by PForDelta between skips of 512,
//! intersected by eliminators ([`small_adaptive`](crate::ding::daat)), block after block.
//!
//! | file | contents |
//! | --- | --- |
//! | `core.rs` | one core on a range of documents, as an executor: INTER |
//! | `gang.rs` | DOCP: a range per core, on one index or an index each; all wait for the slowest |
//! | `tasks.rs` | algorithm 4: a task per skip block of the rarest list |
//! | `pools.rs` | FGQP: one producer, a pool of intersections and one of scorings |
//!
//! Source: Tatikonda, Cambazoglu, Junqueira, "Posting List Intersection on Multicore Architectures", SIGIR 2011.

pub(crate) mod core;
pub(crate) mod gang;
pub(crate) mod pools;
pub(crate) mod tasks;
#[cfg(test)]
mod tests;
