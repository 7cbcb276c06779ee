//! Tatikonda et al., figure 6: delay against arrival rate for queries of four and of six terms.

use super::bench::{Bench, Method};
use super::fig5::{FEW_SHARES, METHODS, delay_chart, delays};
use crate::findings::Curve;
use crate::{Context, ExperimentError, Findings, Result};

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::open(context, findings)?;
    let workers = bench.eight();
    let mut steps = context.steps("arrival rates", 2 * METHODS.len());
    let mut curves = Vec::new();
    for num_terms in [4, 6] {
        let queries = bench.queries_of_length(num_terms);
        if queries.is_empty() {
            return Err(ExperimentError::Input(format!(
                "no query of {num_terms} terms, and none can be made of this log"
            )));
        }
        let load = bench.load(queries)?;
        let name = format!("{num_terms} terms, {workers} workers");
        let full_qps = bench.saturate(Method::Inter, workers, &load)?.throughput_qps;
        findings.add(format!("{name}: INTER sustains"), "q/s", full_qps);
        let mut inter_ms = None;
        for method in METHODS {
            let delays = delays(&bench, &load, method, workers, full_qps, &FEW_SHARES)?;
            let quietest = delays.first().map(|(_, delay)| *delay);
            inter_ms = inter_ms.or(quietest);
            let times = inter_ms.zip(quietest).map(|(inter, quietest)| inter / quietest);
            findings.add(format!("{name}: {method}: delay at an eighth of that rate"), "ms", quietest);
            findings.add(format!("{name}: {method}: below INTER's"), "x", times);
            curves.push(Curve::ours(format!("{method}, {num_terms} terms"), curves.len(), delays));
            steps.done();
        }
    }
    findings.chart(delay_chart("Delay of 4 and 6 terms (Tatikonda et al., figure 6)", curves));
    Ok(())
}
