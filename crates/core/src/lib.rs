//! Indexes, executors, cost models, policies, simulation and live runs: Tandem without its reports, papers and commands.
//!
//! The package `tandem` re-exports all of it.

pub mod base;
pub mod corpus;
pub mod cost;
pub mod files;
pub mod index;
pub mod indexing;
pub mod lab;
pub mod live;
pub mod profile;
pub mod query;
pub mod sched;
pub mod search;
pub mod sim;
#[cfg(test)]
#[path = "../../../tests/skipped/mod.rs"]
mod skipped;
