//! The GPU and the CPU decoder of the experiments of Ding et al.

use std::sync::Arc;

use crate::codec::{Codec, Column};
use crate::ding::gpu::PublishedGpu;
use crate::{Findings, Result};

/// Opens the GPU for the paper's methods; `None`, with a note, on a machine without one.
pub(crate) fn open_gpu(findings: &mut Findings) -> Result<Option<Arc<PublishedGpu>>> {
    let gpu = findings.gpu_if_any(PublishedGpu::open())?;
    if let Some(gpu) = &gpu {
        findings.provenance("gpu", gpu.name());
    }
    Ok(gpu)
}

/// Decodes whole lists on this thread.
pub(crate) fn decode_on_cpu(codec: &dyn Codec, lists: &[Vec<u32>], docs: &mut Vec<u32>) -> Result<()> {
    for words in lists {
        docs.clear();
        codec.open(Column::Docs, words)?.decode_all(docs)?;
        std::hint::black_box(docs.last());
    }
    Ok(())
}
