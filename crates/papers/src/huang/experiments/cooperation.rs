//! CPU and GPU together: which queries go where, and what both take.
//!
//! By length (LBD) the GPU has the queries of fewer than S blocks; by random halves (SD) it has those that a coin gives it.
//! Both work at once, the CPU with one thread; the time is that of whichever is done later.

use std::time::Instant;

use super::bench::{Bench, How, OnCpu};
use crate::ExperimentError;
use crate::huang::ranges::gpu::RangesGpu;
use crate::huang::ranges::strategy::Strategy;
use tandem_core::base::random::Random;
use tandem_core::search::Hit;

/// Random stream of SD's coin.
const COIN_STREAM: u64 = 16;

/// Which queries go to the GPU, by number; the others go to the CPU.
#[derive(Clone, Debug)]
pub(super) struct Split {
    pub(super) gpu: Vec<usize>,
    pub(super) cpu: Vec<usize>,
}

impl Split {
    fn by(bench: &Bench, mut is_gpus: impl FnMut(usize) -> bool) -> Self {
        let (gpu, cpu) = bench.all().into_iter().partition(|&number| is_gpus(number));
        Self { gpu, cpu }
    }

    /// LBD: queries of fewer than `threshold` blocks to the GPU.
    pub(super) fn by_length(bench: &Bench, threshold: u64) -> Self {
        Self::by(bench, |number| bench.blocks[number] < threshold)
    }

    /// SD: each query by a coin.
    pub(super) fn by_coin(bench: &Bench, seed: u64) -> Self {
        let mut random = Random::new(seed, COIN_STREAM);
        Self::by(bench, |_| random.below(2) == 0)
    }
}

/// Thresholds to try, ascending: those that leave none, a few, ... all queries to the GPU, and the paper's 30,000.
pub(super) fn thresholds(bench: &Bench) -> Vec<u64> {
    const STEPS: usize = 12;
    let mut blocks = bench.blocks.clone();
    blocks.sort_unstable();
    let last = blocks.len() - 1;
    let mut thresholds: Vec<u64> = (0..=STEPS).map(|step| blocks[last * step / STEPS]).collect();
    // Long queries are few, and where the choice matters: closer steps there.
    thresholds.extend([0.97, 0.98, 0.99, 0.995].map(|share| blocks[(last as f64 * share) as usize]));
    thresholds.extend([30_000, blocks[last] + 1]);
    thresholds.sort_unstable();
    thresholds.dedup();
    thresholds
}

/// A strategy with a number of threads a query: what cooperation is measured for.
pub(super) struct Pair<'a> {
    pub(super) bench: &'a Bench,
    pub(super) strategy: Strategy,
    pub(super) threads: u32,
    pub(super) k: usize,
    /// What the CPU took for each query alone, and found.
    pub(super) alone: &'a OnCpu,
}

impl Pair<'_> {
    fn expected(&self, numbers: &[usize]) -> Vec<Vec<Hit>> {
        numbers.iter().map(|&number| self.alone.hits[number].clone()).collect()
    }

    /// Milliseconds a query of a split, from what each side takes by itself.
    ///
    /// # Errors
    /// If the GPU fails, or answers wrongly.
    pub(super) fn composed_ms(&self, gpu: &mut RangesGpu, split: &Split) -> Result<f64, ExperimentError> {
        let (gpu_ms, cpu_ms) = self.both_ms(gpu, split)?;
        Ok(gpu_ms.max(cpu_ms))
    }

    /// Milliseconds a query of either side by itself: the GPU's batches are measured, the CPU's queries were.
    fn both_ms(&self, gpu: &mut RangesGpu, split: &Split) -> Result<(f64, f64), ExperimentError> {
        let queries = self.bench.queries(&split.gpu);
        let expected = self.expected(&split.gpu);
        let on_gpu =
            || self.bench.on_gpu(gpu, &queries, &expected, How::published(self.strategy, self.threads, self.k));
        let gpu_ms = if queries.is_empty() { 0.0 } else { self.bench.median_ms(on_gpu)? };
        let cpu_ms: f64 = split.cpu.iter().map(|&number| self.alone.ms[number]).sum();
        let queries = self.bench.queries.len() as f64;
        Ok((gpu_ms / queries, cpu_ms / queries))
    }

    /// The threshold of the shortest composed time, and that time: where the GPU, which has more to do the higher it is, comes to
    /// take longer than the CPU, which has less.
    ///
    /// # Errors
    /// As [`composed_ms`](Self::composed_ms).
    pub(super) fn best_threshold(&self, gpu: &mut RangesGpu) -> Result<(u64, f64), ExperimentError> {
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

    /// Milliseconds a query of a split, both sides at work at once.
    ///
    /// # Errors
    /// If the GPU fails, or answers wrongly.
    pub(super) fn driven_ms(&self, gpu: &mut RangesGpu, split: &Split) -> Result<f64, ExperimentError> {
        let queries = self.bench.queries(&split.gpu);
        let expected = self.expected(&split.gpu);
        let began = Instant::now();
        std::thread::scope(|scope| {
            let gpus = scope.spawn(|| {
                self.bench.on_gpu(gpu, &queries, &expected, How::published(self.strategy, self.threads, self.k))?;
                Ok::<f64, ExperimentError>(began.elapsed().as_secs_f64() * 1e3)
            });
            self.bench.on_cpu(split.cpu.iter().copied(), self.strategy, self.k)?;
            let cpu_ms = began.elapsed().as_secs_f64() * 1e3;
            let gpu_ms = gpus.join().map_err(|_| ExperimentError::Exec(tandem_core::search::ExecError::Panicked))??;
            Ok(cpu_ms.max(gpu_ms) / self.bench.queries.len() as f64)
        })
    }
}
