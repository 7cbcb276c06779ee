//! An index that is only partly in device memory.
//!
//! Headers, directories and norms are always device-resident: they tell which blocks a query needs. The rows of blocks (documents,
//! impacts, frequencies) are tiered. Rows that are read often are device-resident. All others are host-resident, in page-locked
//! memory, and kernels read them across the bus, 32 bytes at a time and only as far as they need them. A block's header names its
//! first row, and rows before a border are device-resident. So kernels have one path, and answers are bit-equal under any budget.
//!
//! ```text
//!   device   | headers | directories | norms | device-resident rows ............ |
//!                 │ row                          ▲
//!                 ├── before the border ─────────┘
//!                 └── behind it ────────────────▶ | host-resident rows ........................ |   page-locked host memory
//! ```
//!
//! [`placement`](crate::search::placement) computes the order of rows once, from a log. A budget is a border in that order.

mod memory;
mod rows;

pub use memory::GpuMemory;
pub(crate) use rows::Rows;
