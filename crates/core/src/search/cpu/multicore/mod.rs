//! Many cores for one stream of queries.
//!
//! More cores can answer more queries at once, or each query sooner. Tatikonda, Cambazoglu and Junqueira compared four
//! ways, all of which are here, and one more:
//!
//! | method | who works on a query | good for |
//! | --- | --- | --- |
//! | INTER (`inter_query.rs`) | one core, from beginning to end | throughput: cores share nothing |
//! | DOCP-UI (`papers/tatikonda`) | every core, on its range of the documents | latency; the slowest range sets it |
//! | DOCP-PI (`papers/tatikonda`) | as DOCP-UI, each core with an index of its own range | the same |
//! | FGQP (`fine_grained.rs`) | whoever is free takes the next small task | latency, with even loads |
//! | adaptive (`adaptive.rs`) | one core, and those that have nothing else to do | both |
//!
//! A query is cut by documents: a task is a range of them, searched by the sequential executor as if there were no
//! others. Every method therefore finds what that executor finds, bit for bit, whoever took which task:
//!
//! ```text
//! INTER      q1 ████████   q2 ███   q3 ██████        a core each
//! DOCP       q1 [0, N/4) | [N/4, N/2) | ...          a core each, all wait for the slowest
//! FGQP       q1 |-|-|-|-|-|-|-|-| q2 |-|-|-|         cut by the rarest list's blocks, a task after another from the pool
//! adaptive   q1 |----|--|-|-|-|                      large pieces first: alone few claims, in company an even end
//! ```
//!
//! No lock is taken and nothing allocated between a query and its answer. Queries in flight lie on a `TaskPool`
//! (`pool/`) as plain numbers in atomics; a task is claimed by one compare-and-swap; each core keeps its best
//! documents to itself until no task is left, and the one that finishes last merges; only the score to beat is shared
//! while they search. Helpers are pinned (`cores.rs`), poll for a while (`backoff.rs`), then sleep (`parking.rs`). A
//! panic in a core ends the query with an error, and nothing else.
//!
//! Scoring is part of a task here, not a stage with a pool of its own as in the paper: the documents found are in the
//! cache of the core that found them.
//!
//! Source: Tatikonda, Cambazoglu, Junqueira, "Posting List Intersection on Multicore Architectures", SIGIR 2011.

mod adaptive;
pub(crate) mod backoff;
pub mod cores;
mod fine_grained;
mod inter_query;
mod parking;
pub mod pool;
mod stream;
pub mod team;
pub mod worker;

pub use adaptive::adaptive_lanes;
pub use cores::Cores;
pub use fine_grained::FineGrained;
pub use inter_query::inter_lanes;
pub use stream::digest;
pub use stream::{Served, Stream, serve};
