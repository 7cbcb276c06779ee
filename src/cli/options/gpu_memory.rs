//! `--gpu-memory`, `--gpu-memory-log`: an index that is only partly in the GPU's memory.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::index::bytes;
use crate::cli::{Failure, defaults};
use crate::exec::gpu::GpuMemory;
use crate::index::Index;
use crate::query::Query;

/// The budget of GPU memory for an index.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct GpuMemoryArguments {
    /// GPU memory for the index, such as 2GiB: it holds what queries read most, and the GPU reads all else from the host's memory
    /// [default: all of the index]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    gpu_memory: Option<u64>,
    /// Query log that tells what queries read most [default: the queries themselves]
    #[arg(long, value_name = "FILE", requires = "gpu_memory")]
    gpu_memory_log: Option<PathBuf>,
}

impl GpuMemoryArguments {
    /// Refuses a budget where recorded times stand in a GPU's place. These are of an index that was wholly in the GPU's memory.
    pub(in crate::cli) fn needs_gpu(&self, has_gpu: bool) -> Result<(), Failure> {
        if self.gpu_memory.is_none() || has_gpu {
            return Ok(());
        }
        Err(Failure::input(
            "--gpu-memory: no GPU is driven, and recorded times are of an index that is wholly in the GPU's memory: leave the option out",
        ))
    }

    /// The budget as files name it; `None` without one.
    pub(in crate::cli) fn named(&self) -> Option<String> {
        let bytes = self.gpu_memory?;
        let log = self.gpu_memory_log.as_ref().map_or(String::new(), |log| format!(", learned from {}", log.display()));
        Some(format!("{bytes} bytes{log}"))
    }

    /// The budget, with what the log teaches; `None` without one.
    pub(in crate::cli) fn open(&self, index: &Arc<Index>, queries: &[Query]) -> Result<Option<GpuMemory>, Failure> {
        let Some(bytes) = self.gpu_memory else { return Ok(None) };
        Ok(Some(match &self.gpu_memory_log {
            Some(log) => GpuMemory::new(bytes, index, &defaults::read_queries(log, index)?),
            None => GpuMemory::new(bytes, index, queries),
        }))
    }
}
