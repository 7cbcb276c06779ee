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
//! | `halves` | the log: what trains and what is measured |
//! | `world` | all of it, made once a figure |
//! | `cpu` | the rival: the same algorithm on 1 to 8 threads |
//! | `backlog` | both processors on a backlog, under the scheduler's own policy |
//! | `bench` | runs on the GPU whose answers are checked, and the model fitted to them |
//! | `report` | what a run took and gave |
//!
//! The GPU's side is in [`wang_gpu`](super::wang_gpu); which lists it holds is decided in [`cache`](crate::cache).

mod backlog;
mod bench;
mod charts;
mod cpu;
pub(super) mod fig10;
pub(super) mod fig3;
pub(super) mod fig4;
pub(super) mod fig5;
pub(super) mod fig6;
pub(super) mod fig7;
pub(super) mod fig8;
pub(super) mod fig9;
mod halves;
mod lists;
mod order;
mod page_rank;
mod ranker;
mod ranking;
mod report;
#[cfg(test)]
mod tests;
mod world;

pub(super) use halves::RankedQuery;
pub(super) use report::{Report, RunOptions};
#[cfg(all(feature = "gpu", test))]
pub(super) use tests::{Small, answer_on_cpu};
pub(super) use world::World;
#[cfg(feature = "gpu")]
pub(super) use {
    ranker::{Best, MAX_K},
    ranking::MAX_TERMS,
    world::{FOOTPRINT, MAX_BATCH, ROUND},
};
