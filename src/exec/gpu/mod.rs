//! The CUDA executor: a query is a short chain of kernels on one stream.
//!
//! ```text
//! clear the state ─▶ score_intersect ─▶ score_union ─▶ merge_topk ─▶ keys in pinned host memory
//!                    (and, and-or)      (or, and-or)
//! ```
//!
//! The index lies in device memory, in the bytes that the CPU reads too. For AND+OR all kernels are launched at once:
//! `score_union` reads on the device how many documents the intersection found, and returns when they were enough.
//! The kernels are in `kernels/`, one family a file; what they compile to is embedded in this binary, so that a machine
//! needs NVIDIA's driver and nothing else. The driver is loaded when a GPU is asked for: without one, all else works.
//!
//! Results equal those of the CPU bit for bit: each kernel adds a document's terms in the query's order and rounds as
//! [`Bm25::score`](crate::index::Bm25::score) does. `tests/gpu.rs` compares them where there is a GPU.

mod decoder;
mod device;
mod executor;
mod index;
mod kernels;
mod limits;
mod octets;
pub(crate) mod published;

pub(crate) use decoder::{Consumer, ListDecoder};
pub use device::{GpuInfo, list_gpus};
pub use executor::GpuExecutor;
pub(crate) use limits::{DeviceLimits, Reservation, free_device_bytes};
