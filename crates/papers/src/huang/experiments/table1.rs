//! Huang et al., table 1: time per query of each strategy, by threads per query and by k, on the GPU and on one CPU thread.

use super::bench::Bench;
use crate::huang::ranges::gpu::executor::Settings;
use crate::huang::ranges::range::Ranges;
use crate::huang::ranges::strategy::Strategy;
use crate::{Context, Findings, Result};

const THREADS: [u32; 6] = [32, 64, 128, 256, 320, 512];
const KS: [usize; 3] = [1, 10, 20];
/// Duration of a measurement on the CPU, in measurements on the GPU.
const CPU_SECONDS: f64 = 20.0;
/// Threads per query for ranges of equal work.
const EVEN_THREADS: [u32; 4] = [64, 128, 256, 512];
/// The paper's milliseconds by strategy: top 1, 10 and 20 for each number of threads, then for the CPU.
#[rustfmt::skip]
const PAPERS: [(Strategy, [[f64; 3]; 7]); 4] = [
    (Strategy::And, [[8.07, 8.08, 8.14], [5.78, 5.81, 5.86], [6.06, 6.08, 6.13], [7.53, 7.56, 7.61],
        [9.33, 9.35, 9.39], [12.24, 12.28, 12.36], [12.70, 12.82, 12.93]]),
    (Strategy::Or, [[45.57, 45.88, 45.97], [30.26, 30.32, 30.37], [29.48, 29.53, 29.57], [34.38, 34.42, 34.49],
        [39.86, 39.91, 39.95], [49.02, 49.08, 49.21], [65.77, 66.08, 66.15]]),
    (Strategy::Wand, [[8.29, 10.22, 11.18], [5.97, 7.45, 8.23], [6.19, 7.86, 8.73], [7.55, 8.97, 9.65],
        [9.24, 11.71, 13.03], [12.05, 15.23, 16.93], [15.11, 15.25, 15.34]]),
    (Strategy::Bmw, [[3.54, 4.90, 6.49], [2.69, 4.47, 5.21], [2.96, 4.47, 5.21], [4.14, 6.51, 7.60],
        [4.91, 7.51, 8.71], [6.17, 9.14, 10.53], [8.82, 8.96, 9.03]]),
];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open(context, findings)?;
    let mut gpu = bench.gpu_if_any(findings)?;
    let mut fewest = bench.queries.len();
    for (strategy, papers) in PAPERS {
        let (mut answered, mut expected) = (bench.queries.len(), Vec::new());
        for (column, k) in KS.into_iter().enumerate() {
            let cpu = bench.on_cpu_for(answered, CPU_SECONDS * context.seconds, strategy, k)?;
            answered = cpu.ms.len();
            fewest = fewest.min(answered);
            let name = format!("{}, top {k}: CPU, one thread", strategy.name());
            findings.compare(name, "ms", papers[THREADS.len()][column], cpu.mean_ms());
            // The hits of the largest k begin with those of every smaller k.
            expected = cpu.hits;
        }
        let Some(gpu) = &mut gpu else { continue };
        // Both columns are means of the same queries: those that the CPU answered in its time.
        let filled = bench.filled(&(0..answered).collect::<Vec<_>>());
        let (same, their_hits) =
            (bench.queries(&filled), filled.iter().map(|&n| expected[n].clone()).collect::<Vec<_>>());
        let queries = filled.len() as f64;
        let mut best_ms = f64::INFINITY;
        for (row, threads) in THREADS.into_iter().enumerate() {
            for (column, k) in KS.into_iter().enumerate() {
                let batches = || bench.on_gpu(gpu, &same, &their_hits, Settings::published(strategy, threads, k));
                let ms = bench.median_ms(batches)? / queries;
                let name = format!("{}, top {k}: GPU, P {threads}", strategy.name());
                findings.compare(name, "ms", papers[row][column], ms);
                if k == KS[1] {
                    best_ms = best_ms.min(ms);
                }
            }
        }
        let name = strategy.name();
        findings.add(format!("{name}, top {}: queries of both", KS[1]), "", answered as f64);
        let papers_best = papers[..THREADS.len()].iter().map(|row| row[1]).fold(f64::INFINITY, f64::min);
        findings.compare(format!("{name}, top {}: GPU, the best P", KS[1]), "ms", papers_best, best_ms);
        for threads in EVEN_THREADS {
            let settings = Settings { ranges: Ranges::EqualWork, ..Settings::published(strategy, threads, KS[1]) };
            let ms = bench.median_ms(|| bench.on_gpu(gpu, &same, &their_hits, settings))? / queries;
            let name = format!("{}, top {}: GPU, P {threads}, ranges of equal work", strategy.name(), KS[1]);
            findings.add(name, "ms", ms);
        }
    }
    findings.note(format!(
        "{} queries, of which the CPU answered at least the first {fewest}; the GPU's means are of the same queries, repeated up to a \
         batch. The paper's top 10 and top 20 of BMW are equal at P 64 and P 128 to the last digit, although its top 1 \
         differ: one of the two columns may be an error.",
        bench.queries.len()
    ));
    Ok(())
}
