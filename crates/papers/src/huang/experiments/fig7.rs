//! Huang et al., figure 7: one thread of the CPU, one GPU, both by random halves (SD) and by length (LBD), and four GPUs, at
//! P 64.
//!
//! Without a GPU only the CPU's row is measured. Four GPUs are computed from the batches of one, as in table 3.

use super::bench::{Bench, OnCpu, PAPERS_P};
use super::cooperation::{Pair, Split};
use super::table3::DealtTimes;
use crate::huang::ranges::gpu::executor::{RangesGpu, Settings};
use crate::huang::ranges::strategy::Strategy;
use crate::{Context, Findings, Result};

/// The paper's milliseconds per query, top 10: one thread of the CPU, then the configurations with GPUs.
const PAPERS: [(Strategy, f64, [f64; 4]); 4] = [
    (Strategy::And, 12.82, [5.81, 4.2, 2.11, 1.51]),
    (Strategy::Or, 66.08, [30.32, 17.54, 8.76, 5.67]),
    (Strategy::Wand, 15.25, [7.45, 4.85, 2.69, 1.75]),
    (Strategy::Bmw, 8.96, [4.47, 3.82, 1.44, 0.94]),
];
const ON_GPUS: [&str; 4] = ["GPU", "CPU and GPU, SD", "CPU and GPU, LBD", "four GPUs, computed from one's batches"];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open(context, findings)?;
    let mut gpu = bench.gpu_if_any(findings)?;
    for (strategy, papers_cpu, papers) in PAPERS {
        let alone = bench.on_cpu(bench.all(), strategy, context.k)?;
        let cpu_ms = alone.mean_ms();
        findings.compare(format!("{}: CPU, one thread", strategy.name()), "ms", papers_cpu, cpu_ms);
        if let Some(gpu) = &mut gpu {
            let times_ms = on_gpus(&bench, gpu, context, strategy, &alone)?;
            for ((name, ms), papers) in ON_GPUS.into_iter().zip(times_ms).zip(papers) {
                let name = format!("{}: {name}", strategy.name());
                findings.compare(name.clone(), "ms", papers, ms);
                let saved = |ms: f64, cpu: f64| 100.0 * (ms / cpu - 1.0);
                let name = format!("{name}, against the CPU");
                findings.compare(name, "%", saved(papers, papers_cpu), saved(ms, cpu_ms));
            }
        }
    }
    findings.note(format!("{} queries, P {PAPERS_P}, k {}.", bench.queries.len(), context.k));
    Ok(())
}

/// Measures milliseconds per query in the order of [`ON_GPUS`]; LBD uses its best threshold.
fn on_gpus(
    bench: &Bench,
    gpu: &mut RangesGpu,
    context: &Context<'_>,
    strategy: Strategy,
    alone: &OnCpu,
) -> Result<[f64; 4]> {
    let settings = Settings::published(strategy, PAPERS_P, context.k);
    let pair = Pair { bench, settings, alone };
    let batches = || bench.on_gpu(gpu, &bench.queries, &alone.hits, settings);
    let gpu_ms = bench.median_ms(batches)? / bench.queries.len() as f64;
    let sd_ms = pair.driven_ms(gpu, &Split::by_coin(bench, context.seed))?;
    let (threshold, _) = pair.best_threshold(gpu)?;
    let lbd_ms = pair.driven_ms(gpu, &Split::by_length(bench, threshold))?;
    let times = DealtTimes::measure(bench, std::slice::from_mut(gpu), alone, settings)?;
    Ok([gpu_ms, sd_ms, lbd_ms, times.four_computed_ms])
}
