//! Wei and JaJa, figure 12: against two indexers on clusters.
//!
//! Ivory (Lin et al. 2009) ran on 99 nodes with two cores each, on the same collection; the other one (McCreadie et al. 2009) on
//! 8 nodes with 24 cores, on GOV2. The paper draws their rates and names none; what is told in numbers is its own.

use super::bench::mb_per_s;
use super::collections::Kind;
use super::table6::{PAPERS, measure};
use crate::{Context, ExperimentError, Findings};

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let mut cores = 0;
    for (kind, has_gpus, _, papers_rate, _) in PAPERS.into_iter().filter(|(kind, ..)| *kind == Kind::ClueWeb) {
        let measured = measure(context, &mut findings, kind, has_gpus)?;
        let rate = measured.as_ref().map(|(report, _)| mb_per_s(report.text_bytes(), report.total_s()));
        let name = if has_gpus { "one machine, CPUs and GPUs" } else { "one machine, CPUs" };
        findings.compare(name, "MB/s", papers_rate, rate);
        cores = context.cores.min(super::bench::PAPERS_CORES);
        findings.compare(format!("{name}: a core"), "MB/s", papers_rate / 8.0, rate.map(|rate| rate / cores as f64));
    }
    findings.compare("Ivory, 99 machines: cores", "", 198.0, None);
    findings.compare("single-pass MapReduce, 8 machines: cores", "", 24.0, None);
    findings.compare("one machine: cores", "", 8.0, cores as f64);
    findings.note(
        "There is no cluster here, and the paper tells the clusters' rates in a drawing alone: it says that both are below its \
         own, with and without GPUs.",
    );
    Ok(findings)
}
