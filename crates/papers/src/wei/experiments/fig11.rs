//! Wei and JaJa, figure 11: indexing rate file by file.
//!
//! Rates fall as trees grow deeper, ever more slowly. They fall again where the collection changes, because the sample that
//! split the slots contains little of the later text. The last fifth of the files has another vocabulary. The GPUs' share of the
//! tokens shows how the split fits each part.

use super::bench::{Bench, DOCS, MB};
use super::collections::{CollectionPart, Kind};
use crate::findings::{Chart, Curve};
use crate::wei::trie::{RunReport, TrieReport};
use crate::{Context, Findings, Result};

const FILES: u32 = 30;
/// Files at the end with another vocabulary.
const CHANGED: u32 = 6;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let docs = context.docs.unwrap_or(DOCS);
    let changed_docs = docs / FILES * CHANGED;
    let parts = [
        CollectionPart { kind: Kind::ClueWeb, vocabulary: 0, docs: docs - changed_docs, files: FILES - CHANGED },
        CollectionPart { kind: Kind::Wikipedia, vocabulary: 1, docs: changed_docs, files: CHANGED },
    ];
    let bench = Bench::of(context, findings, &parts)?;
    let mut curves = Vec::new();
    for (colour, (cpus, gpus)) in [(1, 0), (2, 0), (2, 2)].into_iter().enumerate() {
        if gpus > 0 && bench.gpus == 0 {
            continue;
        }
        let report = bench.index(bench.parsers_for(cpus), cpus, gpus.min(bench.gpus))?;
        let name = if gpus == 0 { format!("{cpus} CPU") } else { format!("{cpus} CPU + {} GPUs", bench.gpus) };
        add_rates(&name, &report, bench.files.len(), findings);
        curves.push(curve(name.clone(), 2 * colour, &report, |run| run.text_bytes as f64 / MB / run.indexing_s));
        let tokens = |run: &RunReport| run.tokens as f64 / 1e6 / run.indexing_s;
        curves.push(curve(format!("{name}, M tokens/s"), 2 * colour + 1, &report, tokens));
    }
    let title = "Rate of indexing along the collection (Wei and JaJa, figure 11)";
    findings.chart(Chart::new("files", title, ["file", "indexing (MB/s, or M tokens/s)"], curves).log_y());
    findings.note(
        "Text without \
         tags has five times as many tokens per byte as pages, so that MB/s fall by that factor; M tokens/s show the rest.",
    );
    Ok(())
}

fn curve(name: String, colour: usize, report: &TrieReport, rate: impl Fn(&RunReport) -> f64) -> Curve {
    let points = report.runs.iter().enumerate().map(|(file, run)| (file as f64, rate(run)));
    Curve::ours(name, colour, points.collect())
}

/// Adds the rates of the first tenth, a later quarter and the last half before the change, and after it.
fn add_rates(name: &str, report: &TrieReport, files: usize, findings: &mut Findings) {
    let runs = &report.runs;
    let change = (files * (FILES - CHANGED) as usize / FILES as usize).min(runs.len());
    if change < 4 || change == runs.len() {
        return;
    }
    let tenth = (change / 10).max(1);
    let is_gpu: Vec<bool> = report.parts.iter().map(|part| part.is_gpu).collect();
    for (what, runs) in [
        ("the first files", &runs[..tenth]),
        ("a quarter on", &runs[change / 4..change / 2]),
        ("before the change", &runs[change / 2..change]),
        ("after it", &runs[change..]),
    ] {
        let tokens: u64 = runs.iter().map(|run| run.tokens).sum();
        let rate = tokens as f64 / 1e6 / runs.iter().map(|run| run.indexing_s).sum::<f64>();
        findings.add(format!("{name}: {what}"), "M tokens/s", rate);
        if is_gpu.contains(&true) {
            let of_gpus = |run: &RunReport| {
                run.part_tokens
                    .iter()
                    .zip(&is_gpu)
                    .filter(|(_, is_gpu)| **is_gpu)
                    .map(|(tokens, _)| tokens)
                    .sum::<u64>()
            };
            let share = 100.0 * runs.iter().map(of_gpus).sum::<u64>() as f64 / tokens.max(1) as f64;
            findings.add(format!("{name}: {what}, tokens on GPUs"), "%", share);
        }
    }
}
