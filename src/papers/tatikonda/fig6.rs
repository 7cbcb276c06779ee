//! Tatikonda et al., figure 6: delay against arrival rate for queries of four and of six terms.

use super::bench::{Bench, Method};
use super::fig5::{FEW_SHARES, METHODS, delay_chart, delays, line};
use crate::papers::{Context, ExperimentError, Findings};

pub(in crate::papers) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let bench = Bench::new(context)?;
    let mut findings = Findings::default();
    bench.describe(&mut findings);
    let workers = bench.eight();
    let mut lines = Vec::new();
    for num_terms in [4, 6] {
        let queries = bench.queries_of_length(num_terms);
        if queries.is_empty() {
            return Err(ExperimentError::Input(format!(
                "no query of {num_terms} terms, and none can be made of this log"
            )));
        }
        let load = bench.load(queries)?;
        let full_qps = bench.saturate(Method::Inter, workers, &load)?.throughput_qps;
        let name = format!("{num_terms} terms, {workers} workers");
        findings.compare(format!("{name}: INTER sustains"), "q/s", None, full_qps);
        let mut quietest_inter = None;
        for method in METHODS {
            let delays = delays(&bench, &load, method, workers, full_qps, &FEW_SHARES)?;
            let quietest = delays.first().map(|(_, delay)| *delay);
            let inter = *quietest_inter.get_or_insert(quietest);
            let times = inter.zip(quietest).map(|(inter, quietest)| inter / quietest);
            findings.compare(format!("{name}: {method}: delay at an eighth of that rate"), "ms", None, quietest);
            findings.compare(format!("{name}: {method}: below INTER's"), "x", None, times);
            lines.push(line(format!("{method}, {num_terms} terms"), lines.len(), delays));
        }
    }
    findings.chart(delay_chart("delay", "Delay of 4 and 6 terms (Tatikonda et al., figure 6)".to_owned(), lines));
    findings.note(
        "The paper's figure has no numbers in its text: unsaturated, FGQP is below INTER and DOCP-UI between; all \
         saturate earlier with six terms; DOCP-UI before the others.",
    );
    Ok(findings)
}
