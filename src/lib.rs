//! Tandem: a scheduling lab for search nodes that have both CPUs and GPUs.
//!
//! What query rate can this machine sustain within this deadline, under which scheduling policy, and how do we know?
//! The layers, each importing only from those above it:
//!
//! | module | what lives there |
//! | --- | --- |
//! | [`time`], [`ids`], [`machine`], [`files`], [`random`], [`quantile`], [`stats`] | nanoseconds, identifiers, processors, reading and writing files safely, seeded randomness, medians and percentiles, how sure they are |
//! | [`corpus`] | what can be read: text collections, other engines' files, tokenizers |
//! | [`index`] | block-compressed postings, BM25, the memory-mapped file |
//! | [`build`] | text and foreign collections to an index; synthetic, renumbered and quantised ones |
//! | [`query`] | queries, logs, features, arrivals |
//! | [`gpu`] | devices, kernels, page-locked memory: below all that uses them |
//! | [`cache`] | which lists, or beginnings of lists, a memory holds that is too small for all: for the papers |
//! | [`exec`] | executors on CPU and GPU |
//! | [`cost`] | measured workloads, cost models |
//! | [`sched`] | policies, the dispatcher, the run log |
//! | [`sim`], [`live`] | two loops around the dispatcher: simulated time, real time |
//! | [`lab`] | what commands share: processors, workloads, draws, calibration, capacity, validation |
//! | [`report`] | summaries, CSV files, plots |
//! | [`papers`] | what exists only to re-run the papers' tables and figures |
//! | `cli` | the commands (feature `cli`) |

#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs, unreachable_pub, missing_debug_implementations)]

pub mod build;
pub mod cache;
#[cfg(feature = "cli")]
pub mod cli;
pub mod corpus;
pub mod cost;
pub mod exec;
pub mod files;
pub mod gpu;
pub mod ids;
pub mod index;
pub mod lab;
pub mod live;
pub mod machine;
#[cfg(feature = "plots")]
pub mod papers;
mod prefetch;
pub mod quantile;
pub mod query;
pub mod random;
pub mod report;
pub mod sched;
pub mod sim;
#[cfg(test)]
#[path = "../tests/skipped/mod.rs"]
mod skipped;
pub mod stats;
pub mod time;
