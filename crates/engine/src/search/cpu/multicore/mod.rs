//! Executors that use many cores for one stream of queries.
//!
//! More cores can answer more queries at once, or each query sooner. Tatikonda, Cambazoglu and Junqueira compared the
//! first two methods with document partitioning (DOCP, in `papers/tatikonda`); Tandem adds the last one:
//!
//! | method | cores per query | good for |
//! | --- | --- | --- |
//! | INTER (`adaptive.rs`) | one, plus those that a scheduler names | throughput: cores share nothing by themselves |
//! | FGQP (`fine_grained.rs`) | all that are free take the next small task | latency, with even loads |
//! | adaptive (`adaptive.rs`) | one, plus idle ones | both |
//!
//! A task is a range of documents, searched by the sequential executor. Every method therefore returns that executor's
//! result, bit for bit, independent of the assignment of tasks:
//!
//! ```text
//! INTER      q1 ████████   q2 ███   q3 ██████        one core each
//! FGQP       q1 |-|-|-|-|-|-|-|-| q2 |-|-|-|         cut by the rarest list's blocks, task after task from the pool
//! adaptive   q1 |----|--|-|-|-|                      large pieces first: few claims alone, an even end with helpers
//! ```
//!
//! A scheduler can also name the cores that help with a query of an INTER core ([`Executor::help`](crate::search::Executor::help)).
//!
//! There is no lock and no allocation between a query and its answer. A `TaskPool` (`pool/`) holds queries in flight as
//! plain numbers in atomics; one compare-and-swap claims a task. Each core keeps its best documents until no task is
//! left, and the last to finish merges them. During the search cores share only the threshold. Helpers are pinned
//! (`cores.rs`), poll for a while, then sleep (`idle.rs`). A panic in a core fails its query only.
//!
//! Unlike the paper, scoring is part of a task instead of a stage with its own pool, because the documents found are in
//! the core's cache.
//!
//! Source: Tatikonda, Cambazoglu, Junqueira, "Posting List Intersection on Multicore Architectures", SIGIR 2011.

mod adaptive;
mod cores;
mod fine_grained;
pub(crate) mod idle;
mod pool;
mod stream;
mod team;
#[cfg(test)]
mod tests;
mod worker;

pub use adaptive::{adaptive_lanes, inter_lanes};
pub use cores::Cores;
pub use fine_grained::FineGrained;
pub use stream::{Served, Stream, digest, serve};
