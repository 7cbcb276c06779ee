//! In place of the GPU executor, where the build has no GPU support: one that cannot be made, and says why.

use std::sync::Arc;

use super::{ExecError, Execution, Executor, Hit};
use crate::base::ids::DeviceId;
use crate::base::machine::Class;
use crate::index::{Bm25, Index};
use crate::query::{Mode, Query};
use crate::search::device::{GpuError, NOT_BUILT};

/// A GPU executor: there is none in this build.
#[derive(Debug)]
pub enum GpuExecutor {}

/// How much of an index may lie in a GPU's memory: none, in this build.
#[derive(Clone, Debug)]
pub struct GpuMemory;

impl GpuMemory {
    /// Of no GPU.
    #[must_use]
    pub fn new(_: u64, _: &Arc<Index>, _: &[Query]) -> Self {
        Self
    }
}

/// What the upload of an index took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UploadReport {
    /// Device memory of the index.
    pub device_bytes: u64,
    /// Host memory of the index, which kernels read across the bus.
    pub host_bytes: u64,
    /// What was copied to the device.
    pub copied_bytes: u64,
    /// From the first copy until the last list was written.
    pub seconds: f64,
}

impl GpuExecutor {
    /// Says that there is no GPU.
    ///
    /// # Errors
    /// [`GpuError::NoGpu`], always.
    pub fn new(_: &Arc<Index>, _: Bm25) -> Result<Self, ExecError> {
        Err(GpuError::NoGpu(NOT_BUILT.to_owned()).into())
    }

    /// Says that there is no GPU.
    ///
    /// # Errors
    /// [`GpuError::NoGpu`], always.
    pub fn with_progress(index: &Arc<Index>, bm25: Bm25, _: &dyn Fn(u64, u64)) -> Result<Self, ExecError> {
        Self::new(index, bm25)
    }

    /// Says that there is no GPU.
    ///
    /// # Errors
    /// [`GpuError::NoGpu`], always.
    pub fn on_device(
        _: DeviceId,
        index: &Arc<Index>,
        bm25: Bm25,
        _: Option<&GpuMemory>,
        _: &dyn Fn(u64, u64),
    ) -> Result<Self, ExecError> {
        Self::new(index, bm25)
    }

    /// Another stream of this GPU.
    ///
    /// # Errors
    /// Never: there is no such executor.
    pub fn for_another_stream(&self) -> Result<Self, ExecError> {
        match *self {}
    }

    /// What the upload of the index took.
    #[must_use]
    pub fn upload_report(&self) -> UploadReport {
        match *self {}
    }
}

impl Executor for GpuExecutor {
    fn class(&self) -> Class {
        match *self {}
    }

    fn device(&self) -> String {
        match *self {}
    }

    fn search(&mut self, _: &Query, _: Mode, _: usize, _: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        match *self {}
    }
}
