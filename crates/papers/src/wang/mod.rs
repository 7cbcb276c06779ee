//! Wang, Yu, Stones, Ren, Wang, Liu, Ren: Efficient GPU-based query processing with pruned list caching in search engines
//! (ICPADS 2017).
//!
//! ```text
//!   index ──▶ GlobalOrder: documents by descending GS ──▶ SortedLists: what the log's terms have, in that order
//!                                                              │
//!   log ──▶ Halves: T-train, T-test ──▶ Ranker (host twin) ────┤ how far each query goes into each list: cache::Visits
//!                                                              ▼
//!                                         World: what all figures stand on ──▶ fig3 … fig10
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `ranking` | the paper's score, its parts and their rounding |
//! | `page_rank` | PageRank from a file, or drawn |
//! | `order` | documents renumbered by the most that they can score: GS |
//! | `lists` | lists in that order, cut into buckets by their documents' high bits |
//! | `ranker` | AND with exact early termination, from any place on |
//! | `train_test_split` | the log: what trains and what is measured |
//! | `data` | all of it, made once a figure |
//! | `cpu` | the rival: the same algorithm on 1 to 8 threads |
//! | `backlog` | both processors on a backlog, under the scheduler's own policy |
//! | `bench` | runs on the GPU whose answers are checked, and the model fitted to them |
//! | `report` | what a run took and gave |
//!
//! The GPU's side is in `gpu`; which lists it holds is decided in `cache`.

pub mod cache;
mod cpu;
mod data;
pub(super) mod experiments;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(not(feature = "gpu"))]
#[path = "no_gpu.rs"]
mod gpu;
mod lists;
mod order;
mod page_rank;
mod ranker;
mod ranking;
mod report;
#[cfg(test)]
mod tests;
mod train_test_split;
