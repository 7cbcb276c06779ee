//! Tatikonda et al., figure 6: delay against arrival rate for queries of four and of six terms.

use super::bench::{Bench, Engine, Method};
use super::fig5::{FEW_SHARES, WAYS, delay_chart, delays, line};
use crate::{Context, ExperimentError, Findings};

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let bench = Bench::new(context)?;
    let mut findings = Findings::default();
    bench.describe(&mut findings);
    let workers = bench.eight();
    let ways = bench.ways(&WAYS);
    let mut steps = context.steps("arrival rates", 2 * ways.len());
    let mut charts = [Vec::new(), Vec::new()];
    for num_terms in [4, 6] {
        let queries = bench.queries_of_length(num_terms);
        if queries.is_empty() {
            return Err(ExperimentError::Input(format!(
                "no query of {num_terms} terms, and none can be made of this log"
            )));
        }
        let load = bench.load(queries)?;
        let name = format!("{num_terms} terms, {workers} workers");
        let mut inter: Option<(f64, Option<f64>)> = None;
        for &way in &ways {
            if way.method == Method::Inter {
                let full_qps = bench.saturate(way, workers, &load)?.throughput_qps;
                findings.compare(format!("{name}: {way} sustains"), "q/s", None, full_qps);
                inter = Some((full_qps, None));
            }
            let Some((full_qps, inter_ms)) = &mut inter else { continue };
            let delays = delays(&bench, &load, way, workers, *full_qps, &FEW_SHARES)?;
            let quietest = delays.first().map(|(_, delay)| *delay);
            let times = inter_ms.or(quietest).zip(quietest).map(|(inter, quietest)| inter / quietest);
            *inter_ms = inter_ms.or(quietest);
            findings.compare(format!("{name}: {way}: delay at an eighth of that rate"), "ms", None, quietest);
            findings.compare(format!("{name}: {way}: below INTER's"), "x", None, times);
            let lines = &mut charts[way.engine as usize];
            lines.push(line(format!("{way}, {num_terms} terms"), lines.len(), delays));
            steps.done();
        }
    }
    let engines = [(Engine::Published, "delay", "as published"), (Engine::Tandem, "delay-tandem", "Tandem's")];
    for (engine, stem, of) in engines {
        let lines = std::mem::take(&mut charts[engine as usize]);
        if !lines.is_empty() {
            let title = format!("Delay of 4 and 6 terms, {of} (Tatikonda et al., figure 6)");
            findings.chart(delay_chart(stem, title, lines));
        }
    }
    findings.note(
        "The paper's figure has no numbers in its text: unsaturated, FGQP is below INTER and DOCP-UI between; all \
         saturate earlier with six terms; DOCP-UI before the others.",
    );
    Ok(findings)
}
