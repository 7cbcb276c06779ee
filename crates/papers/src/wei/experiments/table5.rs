//! Wei and JaJa, table 5: tokens, terms and characters of CPU and GPU indexers.
//!
//! The paper's table has the CPU's tokens in the GPU's column: its text and the split say that GPUs process about 80 % as many
//! tokens as CPUs.

use super::bench::{Bench, PAPERS_CPU_INDEXERS};
use crate::wei::trie::{PartReport, TrieReport};
use crate::{Context, Findings, Result};

/// A quantity, the paper's millions on CPUs and on GPUs, and ours.
type CountRow = (&'static str, f64, f64, fn(&PartReport) -> u64);

const ROWS: [CountRow; 3] = [
    ("tokens", 18_179.424_205, 14_465.084_050, |part| part.tokens),
    ("terms", 24.244_017, 60.555_458, |part| part.terms),
    ("characters", 239.433_858, 513.640_554, |part| part.characters),
];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::new(context, findings)?;
    let report = match bench.gpus {
        0 => None,
        gpus => Some(bench.index(bench.parsers_for(PAPERS_CPU_INDEXERS), PAPERS_CPU_INDEXERS, gpus)?),
    };
    let sum = |report: &TrieReport, is_gpu: bool, of: fn(&PartReport) -> u64| {
        report.parts.iter().filter(|part| part.is_gpu == is_gpu).map(of).sum::<u64>() as f64
    };
    for (what, cpu, gpu, of) in ROWS {
        let ours = report.as_ref().map(|report| (sum(report, false, of), sum(report, true, of)));
        findings.compare(format!("{what}, CPU indexers"), "millions", cpu, ours.map(|(cpu, _)| cpu / 1e6));
        findings.compare(format!("{what}, GPU indexers"), "millions", gpu, ours.map(|(_, gpu)| gpu / 1e6));
        findings.compare(format!("{what}, GPU over CPU"), "x", gpu / cpu, ours.map(|(cpu, gpu)| gpu / cpu));
    }
    findings.note("The paper's table swaps the two numbers of tokens; here they are as in its text.");
    Ok(())
}
