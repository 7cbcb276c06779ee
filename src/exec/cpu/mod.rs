//! CPU executors, one algorithm a file.
//!
//! | file | mode | how |
//! | --- | --- | --- |
//! | `exhaustive.rs` | OR | term at a time inside document windows that fit the L1 cache; every posting is scored |
//! | `and.rs` | AND | the rarest list leads, the others gallop over block headers and decode only the blocks they land in |
//! | `and_or.rs` | AND+OR | AND, then OR if that found too few |
//!
//! They read lists through a forward cursor (`cursor.rs`), and keep the best documents in a [`TopK`](super::TopK). A score is a sum
//! of the terms' shares in the query's order, so that all algorithms give the same bits; the exhaustive one is the reference
//! for every other executor, on the GPU too.

mod and;
mod and_or;
mod cursor;
mod executor;
mod exhaustive;
mod scoring;
#[cfg(test)]
mod tests;

pub use executor::CpuExecutor;
