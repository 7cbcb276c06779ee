//! Contents of a memory that is too small for all lists: whole lists, or beginnings of lists.
//!
//! The cache holds no postings. Lists are numbers with sizes, so that executors and simulations share the code.
//!
//! ```text
//!   training log ──▶ Visits ──▶ Admission (VFB, Qtf, QtfDf) ──▶ Prefixes: cached postings of each list
//!                                                                  │
//!   queries ───────────────────────────────────────────────────────┴──▶ BatchMaker: lists that each batch copies
//!                                                                          │ queries per batch, MB per query
//!   measured c(n), t(S_b) ──▶ ThroughputModel ◀───────────────────────────┘
//!                                  └──▶ best division of a memory into cache S_c and buffer S_b
//! ```
//!
//! Source of the static policies and of the model: Wang, Yu, Stones, Ren, Wang, Liu and Ren, "Efficient GPU-based Query
//! Processing with Pruned List Caching in Search Engines", ICPADS 2017.

pub(crate) mod admission;
pub(crate) mod batches;
pub(crate) mod model;
pub(crate) mod prefixes;
pub(crate) mod sizes;
pub(crate) mod visits;

#[cfg(test)]
mod tests;
