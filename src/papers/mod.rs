//! What exists only to re-run papers.

#[cfg(feature = "gpu")]
pub(crate) mod ding_gpu;
