//! Queries in flight, cut into tasks that cores claim without a lock.
//!
//! | file | content |
//! | --- | --- |
//! | `slot.rs` | the pool's slots, each with one query: its terms, tasks and results |
//! | `claims.rs` | the claimed tasks of a slot: two words, on which all else relies |
//! | `partial_result.rs` | the result of one core |
//! | `partition.rs` | the cut of a query into tasks |

pub(crate) mod claims;
mod partial_result;
pub(crate) mod partition;
pub(crate) mod slot;

/// Atomics of [`claims`]. `tests/task_pool.rs` replaces them by loom's to explore interleavings.
mod atomics {
    pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}
