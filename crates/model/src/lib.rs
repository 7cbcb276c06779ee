//! Costs, policies, simulation and studies of search nodes: Tandem without a search engine and without devices.
//!
//! A scheduling experiment needs this crate alone. `examples/own_policy.rs` at the root of the repository is one.

pub mod cost;
pub mod sched;
pub mod sim;
pub mod study;

pub use tandem_base::{base, files, traffic};
