//! Huang et al., figure 6: time a query of LBD against its threshold S, by threads a query.
//!
//! For each S the GPU's batches are measured; the CPU's time is the sum of what each query took it alone. Table 2 drives
//! both at once at the best S.

use super::bench::Bench;
use super::cooperation::{Pair, Split, thresholds};
use crate::huang::experiments::PAPERS_P;
use crate::huang::ranges::strategy::Strategy;
use crate::{Chart, Context, ExperimentError, Findings, Line};

const THREADS: [u32; 4] = [32, 64, 128, 256];
/// "Threshold S = 30000 results in the best performance ... in every case".
const PAPERS_BEST: f64 = 30_000.0;

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let bench = Bench::open_for_gpu(context, &mut findings)?;
    let mut gpu = bench.needed_gpu(&mut findings)?;
    for (panel, strategy) in Strategy::ALL.into_iter().enumerate() {
        let alone = bench.on_cpu(bench.all(), strategy, context.k)?;
        let mut lines = Vec::new();
        for (colour, threads) in THREADS.into_iter().enumerate() {
            let pair = Pair { bench: &bench, strategy, threads, k: context.k, alone: &alone };
            let mut points = Vec::new();
            for threshold in thresholds(&bench) {
                let ms = pair.composed_ms(&mut gpu, &Split::by_length(&bench, threshold))?;
                points.push((threshold as f64, ms));
            }
            let best = points.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
            let name = format!("{}, P {threads}", strategy.name());
            findings.compare(format!("{name}: best S"), "blocks", PAPERS_BEST, best.map(|(threshold, _)| threshold));
            findings.compare(format!("{name}: time at the best S"), "ms", None, best.map(|(_, ms)| ms));
            if threads == PAPERS_P {
                for &(threshold, ms) in &points {
                    findings.compare(format!("{name}: S {threshold}"), "ms", None, ms);
                }
            }
            lines.push(Line { name: format!("P {threads}"), is_papers: false, colour, points });
        }
        findings.chart(Chart {
            stem: ["and", "or", "wand", "bmw"][panel].to_owned(),
            title: format!("{}: LBD by threshold (Huang et al., figure 6)", strategy.name()),
            x_label: String::from("threshold S: queries of fewer blocks go to the GPU"),
            y_label: String::from("ms a query"),
            is_x_log: true,
            is_y_log: true,
            lines,
        });
    }
    findings.note(format!(
        "{} queries, k {}. The CPU's part is the sum of its queries' times alone (`huang-table2` drives both at once). The \
         last S leaves the CPU nothing.",
        bench.queries.len(),
        context.k
    ));
    Ok(findings)
}
