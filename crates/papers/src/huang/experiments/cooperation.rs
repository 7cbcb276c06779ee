//! CPU and GPU together: splits of the queries, and their times.
//!
//! By length (LBD), the GPU answers the queries of fewer than S blocks. By random halves (SD), a coin decides. Both sides
//! work at once, the CPU with one thread. The time is that of the slower side.

use std::time::Instant;

use tandem_engine::search::Hit;
use tandem_model::base::random::Random;

use super::bench::{Bench, OnCpu};
use crate::huang::ranges::gpu::executor::{RangesGpu, Settings};
use crate::{ExperimentError, Result};

/// The paper's threshold S in blocks.
pub(crate) const LBD_BLOCKS: u64 = 30_000;
/// Random stream of SD's coin.
const COIN_STREAM: u64 = 16;

/// Numbers of the queries for the GPU and for the CPU.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    pub(crate) gpu: Vec<usize>,
    pub(crate) cpu: Vec<usize>,
}

impl Split {
    fn by(bench: &Bench, mut is_gpus: impl FnMut(usize) -> bool) -> Self {
        let (gpu, cpu) = bench.all().partition(|&number| is_gpus(number));
        Self { gpu, cpu }
    }

    /// LBD: the GPU gets queries of fewer than `threshold` blocks.
    pub(crate) fn by_length(bench: &Bench, threshold: u64) -> Self {
        Self::by(bench, |number| bench.blocks[number] < threshold)
    }

    /// SD: a coin decides for each query.
    pub(crate) fn by_coin(bench: &Bench, seed: u64) -> Self {
        let mut random = Random::new(seed, COIN_STREAM);
        Self::by(bench, |_| random.below(2) == 0)
    }
}

/// Returns ascending thresholds that give from none to all of the queries to the GPU, and the paper's 30,000.
pub(crate) fn thresholds(bench: &Bench) -> Vec<u64> {
    const STEPS: usize = 12;
    let mut blocks = bench.blocks.clone();
    blocks.sort_unstable();
    let last = blocks.len() - 1;
    let mut thresholds: Vec<u64> = (0..=STEPS).map(|step| blocks[last * step / STEPS]).collect();
    // The choice matters for the few long queries, which get closer steps.
    thresholds.extend([0.97, 0.98, 0.99, 0.995].map(|share| blocks[(last as f64 * share) as usize]));
    thresholds.extend([LBD_BLOCKS, blocks[last] + 1]);
    thresholds.sort_unstable();
    thresholds.dedup();
    thresholds
}

/// A strategy with a number of threads per query, for which cooperation is measured.
pub(crate) struct Pair<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) settings: Settings,
    pub(crate) alone: &'a OnCpu,
}

impl Pair<'_> {
    fn expected(&self, numbers: &[usize]) -> Vec<Vec<Hit>> {
        numbers.iter().map(|&number| self.alone.hits[number].clone()).collect()
    }

    /// Returns milliseconds per query of a split, from the times of each side alone.
    pub(crate) fn composed_ms(&self, gpu: &mut RangesGpu, split: &Split) -> Result<f64> {
        let (gpu_ms, cpu_ms) = self.both_ms(gpu, split)?;
        Ok(gpu_ms.max(cpu_ms))
    }

    /// Returns milliseconds per query of each side alone: measures the GPU's batches, and sums up the CPU's queries.
    fn both_ms(&self, gpu: &mut RangesGpu, split: &Split) -> Result<(f64, f64)> {
        let queries = self.bench.queries(&split.gpu);
        let expected = self.expected(&split.gpu);
        let on_gpu = || self.bench.on_gpu(gpu, &queries, &expected, self.settings);
        let gpu_ms = if queries.is_empty() { 0.0 } else { self.bench.median_ms(on_gpu)? };
        let cpu_ms: f64 = split.cpu.iter().map(|&number| self.alone.ms[number]).sum();
        let queries = self.bench.queries.len() as f64;
        Ok((gpu_ms / queries, cpu_ms / queries))
    }

    /// Returns the threshold of the shortest composed time, and that time.
    ///
    /// The GPU's work rises with the threshold and the CPU's falls, so that bisection finds where both take equally long.
    pub(crate) fn best_threshold(&self, gpu: &mut RangesGpu) -> Result<(u64, f64)> {
        let thresholds = thresholds(self.bench);
        let (mut low, mut high) = (0, thresholds.len());
        let mut best = (0, f64::INFINITY);
        while low < high {
            let middle = usize::midpoint(low, high);
            let (gpu_ms, cpu_ms) = self.both_ms(gpu, &Split::by_length(self.bench, thresholds[middle]))?;
            if gpu_ms.max(cpu_ms) < best.1 {
                best = (thresholds[middle], gpu_ms.max(cpu_ms));
            }
            if gpu_ms < cpu_ms {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(best)
    }

    /// Measures milliseconds per query of a split, with both sides at work at once.
    pub(crate) fn driven_ms(&self, gpu: &mut RangesGpu, split: &Split) -> Result<f64> {
        let queries = self.bench.queries(&split.gpu);
        let expected = self.expected(&split.gpu);
        let began = Instant::now();
        std::thread::scope(|scope| {
            let gpus = scope.spawn(|| {
                self.bench.on_gpu(gpu, &queries, &expected, self.settings)?;
                Ok::<_, ExperimentError>(began.elapsed().as_secs_f64() * 1e3)
            });
            self.bench.on_cpu(split.cpu.iter().copied(), self.settings.strategy, self.settings.k)?;
            let cpu_ms = began.elapsed().as_secs_f64() * 1e3;
            let gpu_ms =
                gpus.join().map_err(|_| ExperimentError::Exec(tandem_engine::search::ExecError::Panicked))??;
            Ok(cpu_ms.max(gpu_ms) / self.bench.queries.len() as f64)
        })
    }
}
