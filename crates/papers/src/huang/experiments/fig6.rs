//! Huang et al., figure 6: time per query of LBD against its threshold S, by threads per query.
//!
//! For each S the GPU's batches are measured; the CPU's time is the sum of its queries' times alone. Table 2 runs both at
//! once at the best S.

use super::bench::{Bench, PAPERS_P};
use super::cooperation::{Pair, Split, thresholds};
use crate::findings::{Chart, Curve};
use crate::huang::ranges::gpu::executor::Settings;
use crate::huang::ranges::strategy::Strategy;
use crate::{Context, Findings, Result};

const THREADS: [u32; 4] = [32, 64, 128, 256];
/// "Threshold S = 30000 results in the best performance ... in every case".
const PAPERS_BEST: f64 = 30_000.0;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open_for_gpu(context, findings)?;
    let mut gpu = bench.needed_gpu(findings)?;
    for strategy in Strategy::ALL {
        let alone = bench.on_cpu(bench.all(), strategy, context.k)?;
        let mut curves = Vec::new();
        for (colour, threads) in THREADS.into_iter().enumerate() {
            let settings = Settings::published(strategy, threads, context.k);
            let pair = Pair { bench: &bench, settings, alone: &alone };
            let mut points = Vec::new();
            for threshold in thresholds(&bench) {
                let ms = pair.composed_ms(&mut gpu, &Split::by_length(&bench, threshold))?;
                points.push((threshold as f64, ms));
            }
            let best = points.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
            let name = format!("{}, P {threads}", strategy.name());
            findings.compare(format!("{name}: best S"), "blocks", PAPERS_BEST, best.map(|(threshold, _)| threshold));
            findings.add(format!("{name}: time at the best S"), "ms", best.map(|(_, ms)| ms));
            if threads == PAPERS_P {
                for &(threshold, ms) in &points {
                    findings.add(format!("{name}: S {threshold}"), "ms", ms);
                }
            }
            curves.push(Curve::ours(format!("P {threads}"), colour, points));
        }
        let title = format!("{}: LBD by threshold (Huang et al., figure 6)", strategy.name());
        let labels = ["threshold S: queries of fewer blocks go to the GPU", "ms a query"];
        findings.chart(Chart::new(strategy.name().to_lowercase(), title, labels, curves).log_x().log_y());
    }
    findings.note(format!(
        "{} queries, k {}. The CPU's part is the sum of its queries' times alone (`huang-table2` runs both at once). The last \
         S leaves no query to the CPU.",
        bench.queries.len(),
        context.k
    ));
    Ok(())
}
