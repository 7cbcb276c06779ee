//! `--gpu-memory`: an index that is only partly in the GPU's memory.

use std::sync::Arc;

use crate::index::bytes;
use crate::settings::Settings;
use crate::{Failure, defaults};
use tandem_core::index::Index;
use tandem_core::query::{LogOptions, Query};
use tandem_core::search::gpu::GpuMemory;

/// The budget of GPU memory for an index.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GpuMemoryArguments {
    /// Budget of GPU memory for the index, such as 2GiB. It holds the most read parts of lists; the GPU reads the others from
    /// host memory [default: room for the whole index]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    gpu_memory: Option<u64>,
}

impl GpuMemoryArguments {
    /// Refuses a budget for a replayed GPU, whose times were measured with the whole index in GPU memory.
    pub(crate) fn needs_gpu(&self, has_gpu: bool) -> Result<(), Failure> {
        if self.gpu_memory.is_none() || has_gpu {
            return Ok(());
        }
        Err(Failure::input(
            "--gpu-memory: no GPU is driven, and recorded times were measured with the whole index in GPU memory: leave the option out",
        ))
    }

    /// The budget as result files name it; `None` without one.
    pub(crate) fn named(&self, settings: &Settings) -> Option<String> {
        let bytes = self.gpu_memory?;
        let log = settings.gpu_memory_log.as_ref();
        let log = log.map_or(String::new(), |log| format!(", learned from {}", log.display()));
        Some(format!("{bytes} bytes{log}"))
    }

    /// The budget, with the expected reads of the log's queries; `None` without one.
    pub(crate) fn open(
        &self,
        settings: &Settings,
        index: &Arc<Index>,
        queries: &[Query],
    ) -> Result<Option<GpuMemory>, Failure> {
        let Some(bytes) = self.gpu_memory else { return Ok(None) };
        Ok(Some(match &settings.gpu_memory_log {
            Some(log) => GpuMemory::new(bytes, index, &defaults::read_queries(log, &LogOptions::default(), index)?),
            None => GpuMemory::new(bytes, index, queries),
        }))
    }
}
