//! Wang, Yu, Stones, Ren, Wang, Liu, Ren: Efficient GPU-based query processing with pruned list caching in search engines
//! (ICPADS 2017).
//!
//! ```text
//!   index ──▶ GlobalOrder: documents by descending GS ──▶ SortedLists: lists of the log's terms in that order
//!                                                              │
//!   log ──▶ TrainTestSplit ──▶ Ranker (twin on the host) ──────┤ how far each query reads each list: Visits
//!                                                              ▼
//!                                         ExperimentData: input of all experiments ──▶ fig3 … fig10
//! ```
//!
//! | file | contents |
//! | --- | --- |
//! | `ranking` | the paper's score, its parts and their rounding |
//! | `page_rank` | PageRank from a file, or drawn |
//! | `order` | documents in descending order of their global score GS |
//! | `lists` | lists in that order, cut into buckets by the high bits of documents |
//! | `ranker` | AND with exact early termination, resumable at any place |
//! | `train_test_split` | the halves of the log |
//! | `data` | all of these, made once for all experiments |
//! | `cpu` | the same algorithm on 1 to 8 threads of the CPU |
//! | `report` | options and results of a run |
//! | `gpu`, `no_gpu` | the GPU's side, and its replacement in builds without GPU support |
//! | `cache` | the choice of cached lists, and the throughput model |

pub mod cache;
mod cpu;
mod data;
pub(crate) mod experiments;
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
