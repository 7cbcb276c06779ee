//! Stands in for the GPU's measurements in builds without GPU support.

use tandem_engine::search::device::list_gpus;

use super::{Arguments, Measurement};
use crate::failure::Failure;

/// Fails: this build cannot measure a GPU.
pub(super) fn measure(_: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    list_gpus()?;
    Ok((String::new(), Vec::new()))
}

pub(super) use measure as measure_queries;
