//! In place of the GPU's measurements, where the build has no GPU support.

use super::{Arguments, Measurement};
use crate::Failure;
use tandem_core::search::device::list_gpus;

/// There is nothing to measure.
pub(super) fn measure(_: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    list_gpus()?;
    Ok((String::new(), Vec::new()))
}

pub(super) use measure as measure_queries;
