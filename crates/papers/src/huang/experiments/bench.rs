//! The published system on this machine: one thread of the CPU, and GPUs if there are any.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use super::answers::check;
use crate::huang::experiments::{GOV2_DOCS, QUERIES};
use crate::huang::ranges::batch::Limits;
use crate::huang::ranges::gpu::RangesGpu;
use crate::huang::ranges::index::{RangeIndex, num_blocks};
use crate::huang::ranges::range::Ranges;
use crate::huang::ranges::strategy::Strategy;
use crate::{Context, ExperimentError, Findings};
use tandem_core::base::ids::{DeviceId, TermId};
use tandem_core::base::quantile::median;
use tandem_core::index::Index;
use tandem_core::query::Query;
use tandem_core::search::Hit;
use tandem_core::search::device::{Device, GpuError};

/// Terms that the kernels take in a query at most.
const MOST_TERMS: usize = 64;

/// Queries that one thread of the CPU answers at least.
const FEW: usize = 16;
/// What takes so many times as long as a measurement is to last is measured once: what a first run adds is nothing to that.
const LONG: f64 = 10.0;

/// Index and queries, in the published form.
pub(super) struct Bench {
    /// Tandem's own form.
    pub(super) index: Arc<Index>,
    pub(super) ranges: Arc<RangeIndex>,
    pub(super) queries: Vec<Query>,
    /// Blocks of 64 in all lists of each query.
    pub(super) blocks: Vec<u64>,
    /// One measurement is repeated for so long.
    seconds: f64,
}

/// What one thread of the CPU took for each query, and found.
pub(super) struct OnCpu {
    pub(super) ms: Vec<f64>,
    pub(super) hits: Vec<Vec<Hit>>,
}

impl OnCpu {
    /// Milliseconds a query, of all.
    pub(super) fn mean_ms(&self) -> f64 {
        self.ms.iter().sum::<f64>() / self.ms.len().max(1) as f64
    }
}

impl Bench {
    /// Encodes the lists of the queries.
    ///
    /// # Errors
    /// If there is no index or no query.
    pub(super) fn open(context: &Context<'_>, findings: &mut Findings) -> Result<Self, ExperimentError> {
        let input = context.input(GOV2_DOCS, QUERIES)?;
        findings.provenance("input", &input.name);
        let mut queries = input.queries;
        let before = queries.len();
        queries.retain(|query| query.terms.len() <= MOST_TERMS);
        if queries.len() < before {
            findings.note(format!("{} queries of over {MOST_TERMS} terms are left out.", before - queries.len()));
        }
        let terms: BTreeSet<TermId> = queries.iter().flat_map(|query| &query.terms).map(|term| term.term).collect();
        let ranges = Arc::new(RangeIndex::new(&input.index, &terms.into_iter().collect::<Vec<_>>()));
        let blocks = queries.iter().map(num_blocks).collect();
        Ok(Self { index: input.index, ranges, queries, blocks, seconds: context.seconds })
    }

    /// As [`open`](Self::open), for what is a GPU's alone: where there is none it says so before an index is made.
    ///
    /// # Errors
    /// [`GpuError::NoGpu`]; as of [`open`](Self::open).
    pub(super) fn open_for_gpu(context: &Context<'_>, findings: &mut Findings) -> Result<Self, ExperimentError> {
        Device::open(DeviceId(0))?;
        Self::open(context, findings)
    }

    /// Answers these queries, one after another, on this thread.
    ///
    /// # Errors
    /// If a list is damaged.
    pub(super) fn on_cpu(
        &self,
        numbers: impl IntoIterator<Item = usize>,
        strategy: Strategy,
        k: usize,
    ) -> Result<OnCpu, ExperimentError> {
        let mut done = OnCpu { ms: Vec::new(), hits: Vec::new() };
        for number in numbers {
            let began = Instant::now();
            let (hits, _) = self.ranges.search(&self.queries[number], strategy, 1, k)?;
            done.ms.push(began.elapsed().as_secs_f64() * 1e3);
            done.hits.push(hits);
        }
        Ok(done)
    }

    /// As [`on_cpu`](Self::on_cpu), of all queries, but stops after so many seconds; at least a few are answered.
    ///
    /// # Errors
    /// If a list is damaged.
    pub(super) fn on_cpu_for(&self, seconds: f64, strategy: Strategy, k: usize) -> Result<OnCpu, ExperimentError> {
        let began = Instant::now();
        let numbers = self.all().into_iter();
        let in_time = numbers.take_while(|&number| number < FEW || began.elapsed().as_secs_f64() < seconds);
        self.on_cpu(in_time, strategy, k)
    }

    /// The numbers of all queries.
    pub(super) fn all(&self) -> Vec<usize> {
        (0..self.queries.len()).collect()
    }

    /// The queries of these numbers.
    pub(super) fn queries(&self, numbers: &[usize]) -> Vec<Query> {
        numbers.iter().map(|&number| self.queries[number].clone()).collect()
    }

    /// Measures `work`, which returns milliseconds: once unmeasured unless that is [`LONG`], then again and again for the time that
    /// a measurement may take, at least once. Returns the median.
    ///
    /// # Errors
    /// Those of `work`.
    pub(super) fn median_ms(
        &self,
        mut work: impl FnMut() -> Result<f64, ExperimentError>,
    ) -> Result<f64, ExperimentError> {
        let first_ms = work()?;
        if first_ms > LONG * self.seconds * 1e3 {
            return Ok(first_ms);
        }
        let began = Instant::now();
        let mut times_ms = Vec::new();
        while times_ms.is_empty() || began.elapsed().as_secs_f64() < self.seconds {
            times_ms.push(work()?);
        }
        Ok(median(times_ms))
    }

    /// GPU `ordinal` with the lists that stay there; `None` where there is no such GPU.
    ///
    /// # Errors
    /// If its memory is too small, or it fails.
    pub(super) fn gpu(&self, ordinal: u32) -> Result<Option<RangesGpu>, ExperimentError> {
        match RangesGpu::open(DeviceId(ordinal), &self.ranges, u64::MAX) {
            Ok(gpu) => Ok(Some(gpu)),
            Err(GpuError::NoGpu(_)) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// The first GPU; `None`, said in the findings, where there is none.
    ///
    /// # Errors
    /// If its memory is too small, or it fails.
    pub(super) fn gpu_if_any(&self, findings: &mut Findings) -> Result<Option<RangesGpu>, ExperimentError> {
        let gpu = self.gpu(0)?;
        match &gpu {
            Some(gpu) => {
                findings.provenance("gpu", gpu.name());
                findings.provenance("lists in the GPU's memory", format!("{:.1} MB", gpu.cached_bytes() as f64 / 1e6));
            }
            None => findings.note("No GPU to use here: the GPU's part is left out; what stands here is the CPU's."),
        }
        Ok(gpu)
    }

    /// The first GPU, without which there would be nothing to show.
    ///
    /// # Errors
    /// [`GpuError::NoGpu`] if there is none.
    pub(super) fn needed_gpu(&self, findings: &mut Findings) -> Result<RangesGpu, ExperimentError> {
        let gpu = RangesGpu::open(DeviceId(0), &self.ranges, u64::MAX)?;
        findings.provenance("gpu", gpu.name());
        findings.provenance("lists in the GPU's memory", format!("{:.1} MB", gpu.cached_bytes() as f64 / 1e6));
        Ok(gpu)
    }

    /// Answers queries in batches, and checks the answers; `expected` are the CPU's to these queries. Returns the
    /// milliseconds of all.
    ///
    /// # Errors
    /// If the GPU fails, or answers wrongly.
    pub(super) fn on_gpu(
        &self,
        gpu: &mut RangesGpu,
        queries: &[Query],
        expected: &[Vec<Hit>],
        how: How,
    ) -> Result<f64, ExperimentError> {
        let How { strategy, threads, ranges, k } = how;
        let mut busy_ms = 0.0;
        for batch in gpu.cut(queries, Limits::default()) {
            let began = Instant::now();
            let outcome = gpu.run(&queries[batch.clone()], strategy, threads, ranges, k)?;
            busy_ms += began.elapsed().as_secs_f64() * 1e3;
            check(strategy, k, queries[batch.clone()].iter().zip(&expected[batch]), &outcome.answers)?;
        }
        Ok(busy_ms)
    }
}

/// How queries are answered on a GPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct How {
    pub(super) strategy: Strategy,
    /// Threads of a query.
    pub(super) threads: u32,
    pub(super) ranges: Ranges,
    pub(super) k: usize,
}

impl How {
    /// As the paper does it.
    pub(super) fn published(strategy: Strategy, threads: u32, k: usize) -> Self {
        Self { strategy, threads, ranges: Ranges::AsPublished, k }
    }
}
