//! The GPU's side of pruned list caching as published (Wang et al., ICPADS 2017).
//!
//! ```text
//!   main thread                                   device                              second thread
//!   batch: queries + lists that the cache misses ─▶ S_b ─┐
//!                                                  S_c ─┴▶ rank_cached ─▶ K, complete?
//!   answers ◀──────────────────────────────────────────────────────────┤ no: a bounded queue ─▶ resumes behind m with K
//! ```
//!
//! | file | contents |
//! | --- | --- |
//! | `kernels` | the kernel and its arguments |
//! | `memory` | arrays of documents, and page-locked lists of the host |
//! | `resident` | S_c: the beginnings of lists that the cache holds |
//! | `transfer` | S_b: copies of a batch, gathered or direct |
//! | `session` | batches under one division of the memory |
//! | `run` | a whole log: batches on this thread, post-processing on others |

mod kernels;
mod memory;
mod resident;
mod run;
mod session;
#[cfg(test)]
mod tests;
mod transfer;

pub(crate) use memory::CachedGpu;
pub(crate) use session::Session;
