//! Huang et al., figure 3: time a query by its length in blocks, on CPU and GPU, for each strategy.
//!
//! Queries are put in bins by the blocks of their lists, each bin twice as wide as the one before. The GPU answers a bin's
//! queries together; the CPU one after another. The paper's curves survive only as its words: the CPU is quicker on long
//! queries, except for OR.

use std::collections::BTreeMap;

use super::bench::{Bench, How};
use crate::huang::experiments::{PAPERS_K, PAPERS_P};
use crate::huang::ranges::strategy::Strategy;
use crate::{Chart, Context, ExperimentError, Findings, Line};

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let bench = Bench::open(context, &mut findings)?;
    let mut gpu = bench.gpu_if_any(&mut findings)?;
    let mut bins: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for number in bench.all() {
        bins.entry(bench.blocks[number].ilog2()).or_default().push(number);
    }
    for (colour, strategy) in Strategy::ALL.into_iter().enumerate() {
        let mut lines = [Vec::new(), Vec::new()];
        for (&bin, numbers) in &bins {
            let middle = 1.5 * f64::from(bin).exp2();
            let name = |side: &str| {
                format!(
                    "{}, {} to {} blocks ({} queries), {side}",
                    strategy.name(),
                    1_u64 << bin,
                    2_u64 << bin,
                    numbers.len()
                )
            };
            let how = How::published(strategy, PAPERS_P, context.k);
            let cpu = bench.on_cpu(numbers.iter().copied(), strategy, context.k)?;
            findings.compare(name("CPU"), "ms", None, cpu.mean_ms());
            lines[0].push((middle, cpu.mean_ms()));
            if let Some(gpu) = &mut gpu {
                let queries = bench.queries(numbers);
                let batches = || bench.on_gpu(gpu, &queries, &cpu.hits, how);
                let gpu_ms = bench.median_ms(batches)? / numbers.len() as f64;
                findings.compare(name("GPU"), "ms", None, gpu_ms);
                lines[1].push((middle, gpu_ms));
            }
        }
        let [cpu, gpu] = lines;
        let sides = [("CPU, one thread", cpu), ("GPU", gpu)].into_iter().filter(|(_, points)| !points.is_empty());
        let lines = sides.enumerate().map(|(side, (name, points))| Line {
            name: name.to_owned(),
            is_papers: false,
            colour: 2 * colour + side,
            points,
        });
        findings.chart(Chart {
            stem: ["and", "or", "wand", "bmw"][colour].to_owned(),
            title: format!("{}: time by length (Huang et al., figure 3)", strategy.name()),
            x_label: String::from("blocks of 64 in a query's lists"),
            y_label: String::from("ms a query"),
            is_x_log: true,
            is_y_log: true,
            lines: lines.collect(),
        });
    }
    findings.note(format!(
        "P {PAPERS_P}, k {} (the paper's: {PAPERS_K}). The GPU answers all queries of a row in one go. The paper gives no \
         numbers: the CPU is quicker on long queries, except for OR.",
        context.k
    ));
    Ok(findings)
}
