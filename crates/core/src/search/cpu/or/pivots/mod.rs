//! Document at a time, from pivot to pivot.
//!
//! | file | what |
//! | --- | --- |
//! | `pivot.rs` | where all cursors are, and the next document that can enter |
//! | `wand.rs` | WAND: by the bounds of lists |
//! | `block_max_wand.rs` | Block-Max WAND: by those of blocks, too |
//! | `sorted.rs` | both, for queries of more than 64 terms |

mod block_max_wand;
mod pivot;
pub(crate) mod sorted;
mod wand;

pub(crate) use block_max_wand::ShallowBlocks;
pub(crate) use pivot::Positions;
pub(crate) use wand::{ListBounds, PivotSearch};
