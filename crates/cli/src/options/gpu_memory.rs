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
    /// GPU memory for the index, such as 2GiB: it holds what queries read most, and the GPU reads all else from the host's memory
    /// [default: all of the index]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    gpu_memory: Option<u64>,
}

impl GpuMemoryArguments {
    /// Refuses a budget where recorded times stand in a GPU's place. These are of an index that was wholly in the GPU's memory.
    pub(crate) fn needs_gpu(&self, has_gpu: bool) -> Result<(), Failure> {
        if self.gpu_memory.is_none() || has_gpu {
            return Ok(());
        }
        Err(Failure::input(
            "--gpu-memory: no GPU is driven, and recorded times are of an index that is wholly in the GPU's memory: leave the option out",
        ))
    }

    /// The budget as files name it; `None` without one.
    pub(crate) fn named(&self, settings: &Settings) -> Option<String> {
        let bytes = self.gpu_memory?;
        let log = settings.gpu_memory_log.as_ref();
        let log = log.map_or(String::new(), |log| format!(", learned from {}", log.display()));
        Some(format!("{bytes} bytes{log}"))
    }

    /// The budget, with what the log teaches; `None` without one.
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
