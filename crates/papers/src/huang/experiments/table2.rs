//! Huang et al., table 2: random halves (SD) against distribution by length (LBD) at its best threshold, by threads per query.
//!
//! CPU and GPU work at once.

use super::bench::Bench;
use super::cooperation::{Pair, Split};
use crate::huang::ranges::gpu::executor::Settings;
use crate::huang::ranges::strategy::Strategy;
use crate::{Context, Findings, Result};

const THREADS: [u32; 4] = [32, 64, 128, 256];
/// The paper's milliseconds by strategy: SD and LBD for each number of threads.
const PAPERS: [(Strategy, [(f64, f64); 4]); 4] = [
    (Strategy::And, [(5.36, 2.61), (4.2, 2.11), (4.03, 2.12), (5.22, 2.78)]),
    (Strategy::Or, [(23.2, 10.6), (17.54, 8.76), (16.87, 9.19), (20.8, 12.71)]),
    (Strategy::Wand, [(6.32, 3.33), (4.85, 2.69), (4.84, 2.77), (6.15, 3.6)]),
    (Strategy::Bmw, [(3.79, 1.74), (3.82, 1.44), (3.85, 1.55), (4.19, 1.77)]),
];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open_for_gpu(context, findings)?;
    let mut gpu = bench.needed_gpu(findings)?;
    let coin = Split::by_coin(&bench, context.seed);
    for (strategy, papers) in PAPERS {
        let alone = bench.on_cpu(bench.all(), strategy, context.k)?;
        for (threads, (papers_sd, papers_lbd)) in THREADS.into_iter().zip(papers) {
            let settings = Settings::published(strategy, threads, context.k);
            let pair = Pair { bench: &bench, settings, alone: &alone };
            let name = format!("{}, P {threads}", strategy.name());
            let sd_ms = pair.driven_ms(&mut gpu, &coin)?;
            let (threshold, composed_ms) = pair.best_threshold(&mut gpu)?;
            let length = Split::by_length(&bench, threshold);
            let lbd_ms = pair.driven_ms(&mut gpu, &length)?;
            findings.compare(format!("{name}: SD"), "ms", papers_sd, sd_ms);
            findings.compare(format!("{name}: LBD at its best S"), "ms", papers_lbd, lbd_ms);
            let saved = |sd: f64, lbd: f64| 100.0 * (1.0 - lbd / sd);
            findings.compare(format!("{name}: saved"), "%", saved(papers_sd, papers_lbd), saved(sd_ms, lbd_ms));
            findings.compare(format!("{name}: the best S"), "blocks", 30_000.0, threshold as f64);
            let to_gpu = 100.0 * length.gpu.len() as f64 / bench.queries.len() as f64;
            findings.add(format!("{name}: queries for the GPU there"), "%", to_gpu);
            findings.add(format!("{name}: LBD as composed of both sides alone"), "ms", composed_ms);
        }
    }
    findings.note(format!(
        "{} queries, k {}; one thread of the CPU and one GPU at work at once.",
        bench.queries.len(),
        context.k
    ));
    Ok(())
}
