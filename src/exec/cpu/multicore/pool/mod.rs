//! Queries in flight, cut into tasks that cores claim without a lock.
//!
//! | file | what |
//! | --- | --- |
//! | `task_pool.rs` | the slots for queries, and who may take which task |
//! | `slot.rs` | one query: its terms, its tasks, and what came of them |
//! | `partial_result.rs` | what one core found |
//! | `partition.rs` | how a query is cut into tasks |

mod partial_result;
mod partition;
mod slot;
mod task_pool;

pub(super) use partition::Partition;
pub(super) use slot::{Claim, Slot};
pub(super) use task_pool::{Schedule, TaskPool};
