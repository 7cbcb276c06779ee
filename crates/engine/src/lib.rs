//! The search engine of Tandem: collections, indexes, queries, and executors on CPUs and GPUs.

pub mod corpus;
pub mod index;
pub mod indexing;
pub mod query;
pub mod search;
#[cfg(test)]
#[path = "../../../tests/skipped/mod.rs"]
mod skipped;
