//! The published system on this machine: one thread of the CPU, and GPUs if there are any.

use std::sync::Arc;
use std::time::Instant;

use tandem_engine::query::Query;
use tandem_engine::search::device::{Device, GpuError};
use tandem_engine::search::{Answers, Hit};
use tandem_model::base::ids::DeviceId;
use tandem_model::base::quantile::median;

use crate::context::{GOV2_DOCS, terms_of};
use crate::huang::ranges::batch::Limits;
use crate::huang::ranges::gpu::executor::{RangesGpu, Settings};
use crate::huang::ranges::index::{RangeIndex, num_blocks};
use crate::huang::ranges::strategy::Strategy;
use crate::measure::are_equal;
use crate::{Context, ExperimentError, Findings, Result};

/// Threads per query of most of the paper's results.
pub(crate) const PAPERS_P: u32 = 64;
/// Results per query of the paper.
pub(crate) const PAPERS_K: usize = 10;
/// Default number of queries. The CPU's one thread takes most of the time.
pub(crate) const QUERIES: usize = 1000;
/// Maximum number of terms of the kernels.
const MOST_TERMS: usize = 64;
/// Minimum number of queries that one thread of the CPU answers.
const FEW: usize = 64;
/// Minimum number of queries that are measured together on a GPU.
const BATCH: usize = 1024;
/// A first run of this many measurements is not repeated, because its overhead is negligible.
const LONG: f64 = 10.0;

/// Index and queries in the published form.
pub(crate) struct Bench {
    pub(crate) ranges: Arc<RangeIndex>,
    pub(crate) queries: Vec<Query>,
    /// Blocks of 64 postings in all lists of each query.
    pub(crate) blocks: Vec<u64>,
    /// Duration of one measurement.
    seconds: f64,
}

/// Times and answers of queries on one thread of the CPU.
pub(crate) struct OnCpu {
    pub(crate) ms: Vec<f64>,
    pub(crate) hits: Vec<Vec<Hit>>,
}

impl OnCpu {
    pub(crate) fn mean_ms(&self) -> f64 {
        self.ms.iter().sum::<f64>() / self.ms.len().max(1) as f64
    }
}

impl Bench {
    pub(crate) fn open(context: &Context<'_>, findings: &mut Findings) -> Result<Self> {
        let input = context.input(GOV2_DOCS, QUERIES, findings)?;
        let mut queries = input.queries;
        let before = queries.len();
        queries.retain(|query| query.terms.len() <= MOST_TERMS);
        if queries.len() < before {
            findings.note(format!("{} queries of over {MOST_TERMS} terms are left out.", before - queries.len()));
        }
        let ranges = Arc::new(RangeIndex::new(&input.index, &terms_of(&queries)));
        let blocks = queries.iter().map(num_blocks).collect();
        Ok(Self { ranges, queries, blocks, seconds: context.seconds })
    }

    /// Encodes the lists for an experiment that needs a GPU. Reports the absence of a GPU before an index is made.
    pub(crate) fn open_for_gpu(context: &Context<'_>, findings: &mut Findings) -> Result<Self> {
        Device::open(DeviceId(0))?;
        Self::open(context, findings)
    }

    /// Answers these queries, one after another, on this thread.
    pub(crate) fn on_cpu(
        &self,
        numbers: impl IntoIterator<Item = usize>,
        strategy: Strategy,
        k: usize,
    ) -> Result<OnCpu> {
        let mut done = OnCpu { ms: Vec::new(), hits: Vec::new() };
        for number in numbers {
            let began = Instant::now();
            let (hits, _) = self.ranges.search(&self.queries[number], strategy, 1, k)?;
            done.ms.push(began.elapsed().as_secs_f64() * 1e3);
            done.hits.push(hits);
        }
        Ok(done)
    }

    /// Answers at most this many first queries for a limited time, but at least a few.
    pub(crate) fn on_cpu_for(&self, most: usize, seconds: f64, strategy: Strategy, k: usize) -> Result<OnCpu> {
        let began = Instant::now();
        let numbers = 0..most;
        let in_time = numbers.take_while(|&number| number < FEW || began.elapsed().as_secs_f64() < seconds);
        self.on_cpu(in_time, strategy, k)
    }

    pub(crate) fn all(&self) -> std::ops::Range<usize> {
        0..self.queries.len()
    }

    pub(crate) fn queries(&self, numbers: &[usize]) -> Vec<Query> {
        numbers.iter().map(|&number| self.queries[number].clone()).collect()
    }

    /// Returns the numbers of some queries, repeated in turn until they fill a batch: a query is one thread block, and a few blocks leave
    /// most multiprocessors idle.
    pub(crate) fn filled(&self, numbers: &[usize]) -> Vec<usize> {
        let passes = BATCH.div_ceil(numbers.len().max(1));
        numbers.iter().copied().cycle().take(passes * numbers.len()).collect()
    }

    /// Repeats `work`, which returns milliseconds, for the duration of a measurement; returns the median. A first run warms
    /// up; if it is very long, it is the only one.
    pub(crate) fn median_ms(&self, mut work: impl FnMut() -> Result<f64>) -> Result<f64> {
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

    /// Opens a GPU and uploads the lists that stay there.
    pub(crate) fn gpu(&self, ordinal: u32) -> Result<RangesGpu, GpuError> {
        RangesGpu::open(DeviceId(ordinal), &self.ranges, u64::MAX)
    }

    /// Opens the first GPU; `None`, with a note, on a machine without one.
    pub(crate) fn gpu_if_any(&self, findings: &mut Findings) -> Result<Option<RangesGpu>> {
        let gpu = self.needed_gpu(findings);
        findings.gpu_if_any(gpu)
    }

    pub(crate) fn needed_gpu(&self, findings: &mut Findings) -> Result<RangesGpu> {
        let gpu = self.gpu(0)?;
        findings.provenance("gpu", gpu.name());
        findings.provenance("lists in the GPU's memory", format!("{:.1} MB", gpu.cached_bytes() as f64 / 1e6));
        Ok(gpu)
    }

    /// Answers queries in batches and returns the milliseconds of all. The answers must be the `expected` ones of the CPU.
    pub(crate) fn on_gpu(
        &self,
        gpu: &mut RangesGpu,
        queries: &[Query],
        expected: &[Vec<Hit>],
        settings: Settings,
    ) -> Result<f64> {
        let mut busy_ms = 0.0;
        for batch in gpu.cut(queries, Limits::default()) {
            let began = Instant::now();
            let outcome = gpu.run(&queries[batch.clone()], settings)?;
            busy_ms += began.elapsed().as_secs_f64() * 1e3;
            check(
                settings.strategy,
                settings.k,
                queries[batch.clone()].iter().zip(&expected[batch]),
                &outcome.answers,
            )?;
        }
        Ok(busy_ms)
    }
}

/// Checks the answers of a batch bit by bit. `expected` may have more hits per query.
pub(crate) fn check<'a>(
    strategy: Strategy,
    k: usize,
    queries: impl Iterator<Item = (&'a Query, &'a Vec<Hit>)>,
    found: &Answers,
) -> Result<()> {
    for ((query, expected), found) in queries.zip(found.iter()) {
        if !are_equal(&expected[..k.min(expected.len())], found) {
            let (label, name) = (&query.label, strategy.name());
            return Err(ExperimentError::Wrong(format!(
                "query {label} gets other results on the GPU: {name}, top {k}"
            )));
        }
    }
    Ok(())
}
