//! Executors that use many cores for one stream of queries.
//!
//! More cores can answer more queries at once, or each query sooner. Tatikonda, Cambazoglu and Junqueira compared the
//! first four methods; Tandem adds the last one:
//!
//! | method | cores per query | good for |
//! | --- | --- | --- |
//! | INTER (`adaptive.rs`) | one, plus those that a scheduler names | throughput: cores share nothing by themselves |
//! | DOCP-UI (`papers/tatikonda`) | all, each on its range of documents | latency, set by the slowest range |
//! | DOCP-PI (`papers/tatikonda`) | all, each with an index of its own range | latency, set by the slowest range |
//! | FGQP (`fine_grained.rs`) | all that are free take the next small task | latency, with even loads |
//! | adaptive (`adaptive.rs`) | one, plus idle ones | both |
//!
//! A task is a range of documents, searched by the sequential executor. Every method therefore returns that executor's
//! result, bit for bit, independent of the assignment of tasks:
//!
//! ```text
//! INTER      q1 ████████   q2 ███   q3 ██████        one core each
//! DOCP       q1 [0, N/4) | [N/4, N/2) | ...          one core each, all wait for the slowest
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
pub mod cores;
mod fine_grained;
pub(crate) mod idle;
pub mod pool;
mod stream;
pub mod team;
pub mod worker;

pub use adaptive::{adaptive_lanes, inter_lanes};
pub use cores::Cores;
pub use fine_grained::FineGrained;
pub use stream::{Served, Stream, digest, serve};
