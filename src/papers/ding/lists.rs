//! What the experiments of Ding et al. share: the lists of the queries' terms, a GPU if there is one, and timing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use crate::exec::ExecError;
use crate::exec::gpu::published::PublishedGpu;
use crate::ids::TermId;
use crate::papers::codec::{Codec, Column};
use crate::papers::{ExperimentError, Findings, Input};

/// Documents of TREC GOV2, which the synthetic index stands for.
pub(super) const GOV2_DOCS: u32 = 25_200_000;

/// The GPU that the paper's methods run on; `None`, said in the findings, where there is none.
pub(super) fn open_gpu(findings: &mut Findings) -> Result<Option<Arc<PublishedGpu>>, ExperimentError> {
    match PublishedGpu::open() {
        Ok(gpu) => {
            findings.provenance("gpu", gpu.name());
            Ok(Some(gpu))
        }
        Err(ExecError::NoGpu(reason)) => {
            findings.note(format!("No GPU here ({reason}): what it would do is left empty."));
            Ok(None)
        }
        Err(e) => Err(e.into()),
    }
}

/// Distinct terms of the queries.
pub(super) fn terms(input: &Input) -> Vec<TermId> {
    let terms: BTreeSet<TermId> = input.queries.iter().flat_map(|query| &query.terms).map(|term| term.term).collect();
    terms.into_iter().collect()
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
