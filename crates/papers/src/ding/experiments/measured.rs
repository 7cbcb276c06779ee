//! What the experiments of Ding et al. on a GPU share: the GPU, if there is one, and timing.

use std::sync::Arc;
use std::time::Instant;

use crate::codec::{Codec, Column};
use crate::ding::gpu::PublishedGpu;
use crate::{ExperimentError, Findings};
use tandem_core::search::device::GpuError;

/// The GPU that the paper's methods run on; `None`, said in the findings, where there is none.
pub(super) fn open_gpu(findings: &mut Findings) -> Result<Option<Arc<PublishedGpu>>, ExperimentError> {
    match PublishedGpu::open() {
        Ok(gpu) => {
            findings.provenance("gpu", gpu.name());
            Ok(Some(gpu))
        }
        Err(GpuError::NoGpu(reason)) => {
            findings.note(format!("No GPU here ({reason}): what it would do is left empty."));
            Ok(None)
        }
        Err(e) => Err(e.into()),
    }
}

/// Decodes whole lists on this thread.
pub(super) fn decode_on_cpu(codec: &dyn Codec, lists: &[Vec<u32>], docs: &mut Vec<u32>) -> Result<(), ExperimentError> {
    for words in lists {
        docs.clear();
        codec.open(Column::Docs, words)?.decode_all(docs)?;
        std::hint::black_box(docs.last());
    }
    Ok(())
}

/// The shortest of `repeats` times that `work` takes, in microseconds.
pub(super) fn fastest_us(
    repeats: usize,
    mut work: impl FnMut() -> Result<(), ExperimentError>,
) -> Result<f64, ExperimentError> {
    let mut fastest = f64::INFINITY;
    for _ in 0..repeats {
        let began = Instant::now();
        work()?;
        fastest = fastest.min(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(fastest)
}
