//! Stand-in for the GPU executor in builds without GPU support. It cannot be constructed and reports why.

use std::sync::Arc;

use tandem_base::base::ids::DeviceId;
use tandem_base::base::machine::Class;
use tandem_base::traffic::Mode;

use crate::index::{Bm25, Index};
use crate::query::Query;
pub use crate::search::UploadReport;
use crate::search::device::{GpuError, NOT_BUILT};
use crate::search::{ExecError, Execution, Executor, Hit};

/// A GPU executor, which this build cannot construct.
#[derive(Debug)]
pub enum GpuExecutor {}

/// The placement of an index in GPU memory, which is empty in this build.
#[derive(Clone, Debug)]
pub struct GpuMemory;

impl GpuMemory {
    /// An empty placement.
    pub fn new(_: u64, _: &Arc<Index>, _: &[Query]) -> Self {
        Self
    }
}

impl GpuExecutor {
    /// Reports that this build has no GPU support. Always fails with [`GpuError::NoGpu`].
    pub fn new(_: &Arc<Index>, _: Bm25) -> Result<Self, ExecError> {
        Err(GpuError::NoGpu(NOT_BUILT.to_owned()).into())
    }

    /// Reports that this build has no GPU support. Always fails with [`GpuError::NoGpu`].
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
    /// Never, because no such executor exists.
    pub fn for_another_stream(&self) -> Result<Self, ExecError> {
        match *self {}
    }

    /// Sizes and time of the index upload.
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
