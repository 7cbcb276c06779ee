//! An index of which a part alone lies in device memory.
//!
//! Headers, directories and norms stay on the device: they tell which blocks a query needs. The rows of blocks (documents,
//! impacts, frequencies) are tiered: what is read often lies near, in device memory, all else far, in page-locked memory of
//! the host, where kernels read it across the bus, 32 bytes at a time and only what they need of a block. A block's header
//! names its first row: below a border it is near. So there is one path through the kernels, and answers are the same bits
//! wherever a block lies.
//!
//! ```text
//!   device   | headers | directories | norms | near rows ............ |
//!                 │ row                          ▲
//!                 ├── below the border ──────────┘
//!                 └── from it on ───────────────▶ | far rows ........................ |   host, page-locked
//! ```
//!
//! The order of rows is worked out once, by [`cache::place_blocks`](crate::cache::place_blocks), from a log; a budget is the
//! border in it. Or residency follows the queries that come ([`cache::OnlineTier`](crate::cache::OnlineTier), `online`): then all
//! rows are far, in pages, and those that are read most have a copy near.

mod memory;
mod online;
mod rows;

pub use memory::GpuMemory;
pub(super) use memory::far_curve;
pub use online::OnlineReport;
pub(super) use online::{OnlineRows, Reading};
pub(super) use rows::{ROW_BYTES, Rows};
