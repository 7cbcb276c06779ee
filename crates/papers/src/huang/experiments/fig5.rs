//! Huang et al., figure 5: shares of initialisation, scoring and merging in GPU time, by threads per query.
//!
//! Each thread block reads the clock of its multiprocessor at the end of a stage. Shares are of the sum of all clocks.

use super::bench::{Bench, PAPERS_K, PAPERS_P};
use crate::findings::{Chart, Curve};
use crate::huang::ranges::batch::Limits;
use crate::huang::ranges::gpu::executor::Settings;
use crate::huang::ranges::strategy::Strategy;
use crate::{Context, Findings, Result};

const THREADS: [u32; 4] = [32, 64, 128, 256];
const STAGES: [&str; 3] = ["initialisation", "scoring", "merging"];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open_for_gpu(context, findings)?;
    let mut gpu = bench.needed_gpu(findings)?;
    for strategy in Strategy::ALL {
        let mut curves = STAGES.map(|_| Vec::new());
        for threads in THREADS {
            let mut cycles = [0; STAGES.len()];
            for batch in gpu.cut(&bench.queries, Limits::default()) {
                let outcome = gpu.run(&bench.queries[batch], Settings::published(strategy, threads, context.k))?;
                for report in outcome.reports {
                    cycles.iter_mut().zip(report.cycles).for_each(|(sum, cycles)| *sum += cycles);
                }
            }
            let total: u64 = cycles.iter().sum();
            for ((name, cycles), points) in STAGES.into_iter().zip(cycles).zip(&mut curves) {
                let share = 100.0 * cycles as f64 / total as f64;
                findings.add(format!("{}, P {threads}: {name}", strategy.name()), "%", share);
                points.push((f64::from(threads), share));
            }
        }
        let curves = STAGES.into_iter().zip(curves).enumerate();
        let curves = curves.map(|(colour, (name, points))| Curve::ours(name, colour, points));
        let title = format!("{}: stages (Huang et al., figure 5)", strategy.name());
        findings.chart(
            Chart::new(strategy.name().to_lowercase(), title, ["threads a query", "% of the time"], curves).log_x(),
        );
    }
    findings.note(format!(
        "{} queries, k {} (the paper's: 1000 queries, k {PAPERS_K}; P {PAPERS_P} in its comparisons).",
        bench.queries.len(),
        context.k
    ));
    Ok(())
}
