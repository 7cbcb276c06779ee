//! Huang et al., figure 3: time per query by its length in blocks, on CPU and GPU, for each strategy.
//!
//! Queries are binned by the blocks of their lists; each bin is twice as wide as the one before. The CPU answers the queries of a bin one
//! after another, the GPU together, repeated until they fill a batch. The text of the paper gives an order only: the CPU is faster on long
//! queries, except for OR.

use std::collections::BTreeMap;

use super::bench::{Bench, PAPERS_K, PAPERS_P};
use crate::findings::{Chart, Curve};
use crate::huang::ranges::gpu::executor::Settings;
use crate::huang::ranges::strategy::Strategy;
use crate::{Context, Findings, Result};

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open(context, findings)?;
    let mut gpu = bench.gpu_if_any(findings)?;
    let mut bins: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for number in bench.all() {
        bins.entry(bench.blocks[number].ilog2()).or_default().push(number);
    }
    for (colour, strategy) in Strategy::ALL.into_iter().enumerate() {
        let (mut on_cpu, mut on_gpu) = (Vec::new(), Vec::new());
        for (&bin, numbers) in &bins {
            let middle = 1.5 * f64::from(bin).exp2();
            let (low, high, count) = (1_u64 << bin, 2_u64 << bin, numbers.len());
            let name = |side: &str| format!("{}, {low} to {high} blocks ({count} queries), {side}", strategy.name());
            let cpu = bench.on_cpu(numbers.iter().copied(), strategy, context.k)?;
            findings.add(name("CPU"), "ms", cpu.mean_ms());
            on_cpu.push((middle, cpu.mean_ms()));
            if let Some(gpu) = &mut gpu {
                let filled = bench.filled(numbers);
                let queries = bench.queries(&filled);
                let expected: Vec<_> = cpu.hits.iter().cycle().take(filled.len()).cloned().collect();
                let settings = Settings::published(strategy, PAPERS_P, context.k);
                let batches = || bench.on_gpu(gpu, &queries, &expected, settings);
                let gpu_ms = bench.median_ms(batches)? / filled.len() as f64;
                findings.add(name("GPU"), "ms", gpu_ms);
                on_gpu.push((middle, gpu_ms));
            }
        }
        let curves = [Curve::ours("CPU, one thread", 2 * colour, on_cpu), Curve::ours("GPU", 2 * colour + 1, on_gpu)];
        let title = format!("{}: time by length (Huang et al., figure 3)", strategy.name());
        let labels = ["blocks of 64 in a query's lists", "ms a query"];
        findings.chart(Chart::new(strategy.name().to_lowercase(), title, labels, curves).log_x().log_y());
    }
    findings.note(format!(
        "P {PAPERS_P}, k {} (the paper's: {PAPERS_K}). The GPU answers the queries of a row together, repeated up to a batch.",
        context.k
    ));
    Ok(())
}
