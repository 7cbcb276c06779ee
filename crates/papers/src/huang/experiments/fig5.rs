//! Huang et al., figure 5: how the GPU's time is shared out among initialisation, scoring and merging, by threads a query.
//!
//! Each thread block reads its multiprocessor's clock where a stage ends; a stage's share is of the sum of all clocks.

use super::bench::Bench;
use crate::huang::experiments::{PAPERS_K, PAPERS_P};
use crate::huang::ranges::batch::Limits;
use crate::huang::ranges::range::Ranges;
use crate::huang::ranges::strategy::Strategy;
use crate::{Chart, Context, ExperimentError, Findings, Line};

const THREADS: [u32; 4] = [32, 64, 128, 256];
const STAGES: [&str; 3] = ["initialisation", "scoring", "merging"];

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let bench = Bench::open_for_gpu(context, &mut findings)?;
    let mut gpu = bench.needed_gpu(&mut findings)?;
    for (panel, strategy) in Strategy::ALL.into_iter().enumerate() {
        let mut lines = STAGES.map(|_| Vec::new());
        for threads in THREADS {
            let mut cycles = [0; STAGES.len()];
            for batch in gpu.cut(&bench.queries, Limits::default()) {
                let outcome = gpu.run(&bench.queries[batch], strategy, threads, Ranges::AsPublished, context.k)?;
                for report in outcome.reports {
                    cycles.iter_mut().zip(report.cycles).for_each(|(sum, cycles)| *sum += cycles);
                }
            }
            let total: u64 = cycles.iter().sum();
            for (stage, name) in STAGES.into_iter().enumerate() {
                let share = 100.0 * cycles[stage] as f64 / total as f64;
                findings.compare(format!("{}, P {threads}: {name}", strategy.name()), "%", None, share);
                lines[stage].push((f64::from(threads), share));
            }
        }
        let lines = STAGES.into_iter().zip(lines).enumerate().map(|(colour, (name, points))| Line {
            name: name.to_owned(),
            is_papers: false,
            colour,
            points,
        });
        findings.chart(Chart {
            stem: ["and", "or", "wand", "bmw"][panel].to_owned(),
            title: format!("{}: stages (Huang et al., figure 5)", strategy.name()),
            x_label: String::from("threads a query"),
            y_label: String::from("% of the time"),
            is_x_log: true,
            is_y_log: false,
            lines: lines.collect(),
        });
    }
    findings.note(format!(
        "{} queries, k {} (the paper's: 1000 queries, k {PAPERS_K}; P {PAPERS_P} where it compares). The paper gives no \
         numbers: scoring takes most of the time, and the others grow with P.",
        bench.queries.len(),
        context.k
    ));
    Ok(findings)
}
