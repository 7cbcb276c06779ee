//! The CUDA executor.

use std::sync::Arc;

use super::{ExecError, Execution, Executor, Hit};
use crate::ids::ProcessorKind;
use crate::index::{Bm25, Index};
use crate::query::{Mode, Query};

/// Searches an index on a GPU.
#[derive(Debug)]
pub struct GpuExecutor {}

impl GpuExecutor {
    /// Copies the index to the device.
    ///
    /// # Errors
    /// If there is no usable GPU.
    pub fn new(_index: &Arc<Index>, _bm25: Bm25) -> Result<Self, ExecError> {
        Err(ExecError::NoGpu("this build has no GPU executor yet".to_owned()))
    }
}

impl Executor for GpuExecutor {
    fn kind(&self) -> ProcessorKind {
        ProcessorKind::Gpu
    }

    fn device(&self) -> String {
        String::new()
    }

    fn search(&mut self, _: &Query, _: Mode, _: usize, _: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        Err(ExecError::NoGpu("this build has no GPU executor yet".to_owned()))
    }
}
