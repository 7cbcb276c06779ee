//! Document at a time, from pivot to pivot.
//!
//! | file | what |
//! | --- | --- |
//! | `pivot.rs` | where all cursors are, and the next document that can enter |
//! | `wand.rs` | WAND: by the bounds of lists |
//! | `block_max_wand.rs` | Block-Max WAND: by those of blocks, too |

mod block_max_wand;
mod pivot;
mod wand;

pub(crate) use block_max_wand::ShallowBlocks;
pub(crate) use pivot::Positions;
pub(crate) use wand::{ListBounds, PivotSearch};
