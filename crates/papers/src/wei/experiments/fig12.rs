//! Wei and JaJa, figure 12: comparison with two indexers on clusters.
//!
//! Ivory (Lin et al. 2009) ran on 99 nodes with two cores each, on the same collection. McCreadie et al. (2009) ran on 8 nodes
//! with 24 cores, on GOV2. The paper draws the rates of both and gives numbers for its own indexer only.

use super::bench::{PAPERS_CORES, mb_per_s};
use super::collections::Kind;
use super::table6::{PAPERS, measure};
use crate::{Context, Findings, Result};

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let cores = context.cores.min(PAPERS_CORES) as f64;
    for (kind, has_gpus, _, papers_rate, _) in PAPERS.into_iter().filter(|(kind, ..)| *kind == Kind::ClueWeb) {
        let measured = measure(context, findings, kind, has_gpus)?;
        let rate = measured.as_ref().map(|(report, _)| mb_per_s(report.text_bytes(), report.total_s()));
        let name = if has_gpus { "one machine, CPUs and GPUs" } else { "one machine, CPUs" };
        findings.compare(name, "MB/s", papers_rate, rate);
        findings.compare(format!("{name}: a core"), "MB/s", papers_rate / 8.0, rate.map(|rate| rate / cores));
    }
    findings.compare("Ivory, 99 machines: cores", "", 198.0, None);
    findings.compare("single-pass MapReduce, 8 machines: cores", "", 24.0, None);
    findings.compare("one machine: cores", "", 8.0, cores);
    findings.note("No cluster is measured here. The paper gives the clusters' rates in a drawing only.");
    Ok(())
}
