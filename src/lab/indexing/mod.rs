//! Indexing as a scheduling problem: which processor indexes which slots, run after run.
//!
//! ```text
//! parsers (M): read in turn, unpack, parse ──▶ run 0 │ run 1 │ run 2 ...      each a barrier
//!                                                 │
//!                     jobs: (run, group of slots) ▼
//!                     policy ──▶ CPU indexers (C), GPUs (G): whoever has a group has its trees
//! ```
//!
//! A job is what a group of slots has in one run. It can be done only where the group's trees are; taking a group from another
//! processor moves its trees, which costs what copying them takes. All jobs of a run are done before the next run's begin, and
//! parsers work on meanwhile, as long as somebody takes what they have parsed.
//!
//! Policies see what is known when a run arrives (tokens of each group, and what tokens took in the runs before), never what the
//! jobs will take. [`bound`](lp_bound) is what no policy can undercut.

mod bound;
mod company;
mod jobs;
mod owners;
mod pipeline;
mod policy;
#[cfg(test)]
mod tests;

pub use bound::lp_bound;
pub use company::Company;
pub use jobs::{IndexJob, IndexRun, IndexTrace};
pub use pipeline::{IndexMachine, IndexOutcome, simulate_indexing};
pub use policy::IndexPolicy;
