//! Queries in flight, cut into tasks that cores claim without a lock.
//!
//! | file | what |
//! | --- | --- |
//! | `task_pool.rs` | the slots for queries, and who may take which task |
//! | `slot.rs` | one query: its terms, its tasks, and what came of them |
//! | `claims.rs` | who has claimed which tasks: two words, on which all else rests |
//! | `partial_result.rs` | what one core found |
//! | `partition.rs` | how a query is cut into tasks |

mod claims;
mod partial_result;
mod partition;
mod slot;
mod task_pool;

/// What [`claims`] is made of; its test puts others in their place, whose interleavings can be explored.
mod atomics {
    pub(in crate::search::cpu::multicore) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
}

pub(in crate::search::cpu::multicore) use claims::{CachePadded, Claim};
pub use partition::Partition;
pub(in crate::search::cpu::multicore) use slot::Slot;
pub use task_pool::{Schedule, TaskPool};
