//! Tatikonda et al., figure 6: delay against arrival rate for queries of four and of six terms.

use super::bench::{Bench, Engine, Method};
use super::fig5::{FEW_SHARES, WAYS, delay_chart, delays};
use crate::findings::Curve;
use crate::{Context, ExperimentError, Findings, Result};

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open(context, findings)?;
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
                findings.add(format!("{name}: {way} sustains"), "q/s", full_qps);
                inter = Some((full_qps, None));
            }
            let Some((full_qps, inter_ms)) = &mut inter else { continue };
            let delays = delays(&bench, &load, way, workers, *full_qps, &FEW_SHARES)?;
            let quietest = delays.first().map(|(_, delay)| *delay);
            let times = inter_ms.or(quietest).zip(quietest).map(|(inter, quietest)| inter / quietest);
            *inter_ms = inter_ms.or(quietest);
            findings.add(format!("{name}: {way}: delay at an eighth of that rate"), "ms", quietest);
            findings.add(format!("{name}: {way}: below INTER's"), "x", times);
            let curves = &mut charts[way.engine as usize];
            curves.push(Curve::ours(format!("{way}, {num_terms} terms"), curves.len(), delays));
            steps.done();
        }
    }
    for ((engine, curves), suffix) in Engine::ALL.into_iter().zip(charts).zip(["", "-tandem"]) {
        if !curves.is_empty() {
            let title = format!("Delay of 4 and 6 terms, {} (Tatikonda et al., figure 6)", engine.name());
            findings.chart(delay_chart(suffix, title, curves));
        }
    }
    Ok(())
}
