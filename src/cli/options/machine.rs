//! `--cpus`, `--gpus`, `--streams`, `--gpu`: the machine.

use std::sync::Arc;

use crate::cli::{Failure, defaults};
use crate::exec::gpu::GpuExecutor;
use crate::exec::{ExecError, Executor};
use crate::gpu::{GpuError, list_gpus};
use crate::index::Index;

/// More processors of a class than this are surely a slip.
pub(in crate::cli) const MAX_PROCESSORS: usize = 1024;

/// Refuses numbers of processors that are surely slips; each with the option that gives it.
pub(in crate::cli) fn check_processors(counts: &[(&str, usize)]) -> Result<(), Failure> {
    match counts.iter().find(|(_, count)| *count > MAX_PROCESSORS) {
        Some((option, count)) => Err(Failure::input(format!("{option} is {count}, expected at most {MAX_PROCESSORS}"))),
        None => Ok(()),
    }
}

/// What stands in the GPU's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(in crate::cli) enum GpuChoice {
    /// The GPU if there is one, else `replay` where there are recorded times, else `none`
    Auto,
    /// The GPU; an error without one
    Real,
    /// A lane that takes the recorded time of each query
    Replay,
    /// No GPU lane
    None,
}

impl GpuChoice {
    /// Whether this machine has what is insisted on: asked before the work that would be lost without it.
    pub(in crate::cli) fn check(self) -> Result<(), Failure> {
        if self == Self::Real {
            list_gpus()?;
        }
        Ok(())
    }

    /// The GPU, if it is asked for, or present and not declined.
    pub(in crate::cli) fn executor(self, index: &Arc<Index>) -> Result<Option<Box<dyn Executor>>, Failure> {
        Ok(self.gpu(index)?.map(|gpu| Box::new(gpu) as Box<dyn Executor>))
    }

    /// As [`GpuChoice::executor`], where several streams are wanted.
    pub(in crate::cli) fn gpu(self, index: &Arc<Index>) -> Result<Option<GpuExecutor>, Failure> {
        if matches!(self, Self::Replay | Self::None) {
            return Ok(None);
        }
        match defaults::gpu_executor(index, index.built_with()) {
            Ok(gpu) => Ok(Some(gpu)),
            // Unasked, a machine without a GPU is no error: what replaces it is said, and written into every row.
            Err(ExecError::Gpu(GpuError::NoGpu(_))) if self == Self::Auto => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}
