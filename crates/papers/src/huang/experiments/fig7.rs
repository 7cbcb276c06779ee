//! Huang et al., figure 7: one thread of the CPU, one GPU, both by random halves (SD) and by length (LBD), and four GPUs, side
//! by side at P 64.
//!
//! Without a GPU the CPU's row stands alone. Four GPUs are computed from one's batches, as in table 3.

use super::bench::{Bench, How, OnCpu};
use super::cooperation::{Pair, Split};
use super::table3::DealtTimes;
use crate::huang::experiments::{PAPERS, PAPERS_P, Papers};
use crate::huang::ranges::gpu::RangesGpu;
use crate::huang::ranges::strategy::Strategy;
use crate::{Context, ExperimentError, Findings};

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let bench = Bench::open(context, &mut findings)?;
    let mut gpu = bench.gpu_if_any(&mut findings)?;
    for Papers { strategy, cpu, gpu: papers_gpu, sd, lbd, four_gpus } in PAPERS {
        let alone = bench.on_cpu(bench.all(), strategy, context.k)?;
        let cpu_ms = alone.mean_ms();
        findings.compare(format!("{}: CPU, one thread", strategy.name()), "ms", cpu, cpu_ms);
        if let Some(gpu) = &mut gpu {
            let rows = on_a_gpu(&bench, gpu, context, strategy, &alone)?;
            let names = ["GPU", "CPU and GPU, SD", "CPU and GPU, LBD", "four GPUs, computed from one's batches"];
            for ((name, ours), papers) in names.into_iter().zip(rows).zip([papers_gpu, sd, lbd, four_gpus]) {
                findings.compare(format!("{}: {name}", strategy.name()), "ms", papers, ours);
                let saved = |ms: f64, cpu: f64| 100.0 * (ms / cpu - 1.0);
                let name = format!("{}: {name}, against the CPU", strategy.name());
                findings.compare(name, "%", saved(papers, cpu), saved(ours, cpu_ms));
            }
        }
    }
    findings.note(format!("{} queries, P {PAPERS_P}, k {}.", bench.queries.len(), context.k));
    Ok(findings)
}

/// Milliseconds a query: the GPU, SD, LBD at its best threshold, four GPUs.
fn on_a_gpu(
    bench: &Bench,
    gpu: &mut RangesGpu,
    context: &Context<'_>,
    strategy: Strategy,
    alone: &OnCpu,
) -> Result<[f64; 4], ExperimentError> {
    let pair = Pair { bench, strategy, threads: PAPERS_P, k: context.k, alone };
    let batches = || bench.on_gpu(gpu, &bench.queries, &alone.hits, How::published(strategy, PAPERS_P, context.k));
    let gpu_ms = bench.median_ms(batches)? / bench.queries.len() as f64;
    let sd_ms = pair.driven_ms(gpu, &Split::by_coin(bench, context.seed))?;
    let (threshold, _) = pair.best_threshold(gpu)?;
    let lbd_ms = pair.driven_ms(gpu, &Split::by_length(bench, threshold))?;
    let times = DealtTimes::measure(bench, std::slice::from_mut(gpu), alone, strategy, PAPERS_P, context.k)?;
    Ok([gpu_ms, sd_ms, lbd_ms, times.four_computed_ms])
}
