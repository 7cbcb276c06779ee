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

pub(crate) mod cache;
mod cpu;
mod data;
pub(crate) mod experiments;
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
