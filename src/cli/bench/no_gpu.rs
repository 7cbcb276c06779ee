//! In place of the GPU's measurements, where the build has no GPU support.

use super::{Arguments, Measurement};
use crate::cli::Failure;
use crate::gpu::list_gpus;

/// There is nothing to measure.
pub(super) fn measure(_: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    list_gpus()?;
    Ok((String::new(), Vec::new()))
}

pub(super) use measure as measure_queries;

pub(super) mod cluster {
    pub(in crate::cli::bench) use super::measure;
}

pub(super) mod memory {
    pub(in crate::cli::bench) use super::measure;
}
