//! The GPU's side of pruned list caching as it was published (Wang et al., ICPADS 2017).
//!
//! ```text
//!   main thread                                   device                              second thread
//!   batch: queries + lists that the cache lacks ─▶ S_b ─┐
//!                                                  S_c ─┴▶ rank_cached ─▶ K, complete?
//!   answers ◀──────────────────────────────────────────────────────────┤ no: a bounded queue ─▶ goes on behind m, from K
//! ```
//!
//! | file | what it is |
//! | --- | --- |
//! | `kernels` | the kernel and its arguments |
//! | `memory` | device memory by its size, page-locked lists of the host, or the reason why they are staged |
//! | `resident` | S_c: the beginnings of lists that the cache holds |
//! | `transfer` | S_b: what a batch brings along, gathered or copied from where it lies |
//! | `session` | one division of the memory: batches through the device |
//! | `run` | a whole log: batches on this thread, post-processing on another |

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
