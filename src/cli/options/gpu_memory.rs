//! `--gpu-memory`, `--gpu-memory-log`: an index of which a part alone lies in the GPU's memory.

use std::path::PathBuf;

use crate::cli::index::bytes;
use crate::cli::{Failure, defaults};
use crate::exec::gpu::GpuMemory;
use crate::index::Index;
use crate::query::Query;

/// How much of an index may lie in the GPU's memory.
#[derive(Clone, Debug, clap::Args)]
pub(in crate::cli) struct GpuMemoryArguments {
    /// GPU memory for the index, such as 2GiB: what queries need most lies there, all else in the host's memory, where the
    /// GPU reads it [default: all of the index]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    gpu_memory: Option<u64>,
    /// Query log that tells what queries need most [default: the queries themselves]
    #[arg(long, value_name = "FILE", requires = "gpu_memory")]
    gpu_memory_log: Option<PathBuf>,
}

impl GpuMemoryArguments {
    /// The budget, with what the log says; `None` if all of the index is to lie there.
    pub(in crate::cli) fn open(&self, index: &Index, queries: &[Query]) -> Result<Option<GpuMemory>, Failure> {
        let Some(bytes) = self.gpu_memory else { return Ok(None) };
        Ok(Some(match &self.gpu_memory_log {
            Some(log) => GpuMemory::new(bytes, &defaults::read_queries(log, index)?),
            None => GpuMemory::new(bytes, queries),
        }))
    }
}
