//! Wei and JaJa, figure 11: the rate of indexing, file by file.
//!
//! Rates fall as trees grow deeper, ever more slowly; and fall once more where the collection changes, for slots were split by
//! a sample in which the later text has little part. The last fifth of the files is of another vocabulary.

use super::bench::{Bench, DOCS, MB};
use super::collections::{Kind, Part};
use crate::wei::trie::{RunReport, TrieReport};
use crate::{Chart, Context, ExperimentError, Findings, Line};

/// Files of the collection, and of those the last ones that are of another.
const FILES: u32 = 30;
const CHANGED: u32 = 6;

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let docs = context.docs.unwrap_or(DOCS);
    let changed_docs = docs / FILES * CHANGED;
    let parts = [
        Part { kind: Kind::ClueWeb, vocabulary: 0, docs: docs - changed_docs, files: FILES - CHANGED },
        Part { kind: Kind::Wikipedia, vocabulary: 1, docs: changed_docs, files: CHANGED },
    ];
    let bench = Bench::of(context, &mut findings, &parts)?;
    let mut lines = Vec::new();
    for (colour, (cpus, gpus)) in [(1, 0), (2, 0), (2, 2)].into_iter().enumerate() {
        if gpus > 0 && bench.gpus == 0 {
            continue;
        }
        let report = bench.index(bench.parsers_beside(cpus), cpus, gpus.min(bench.gpus))?;
        let name = if gpus == 0 { format!("{cpus} CPU") } else { format!("{cpus} CPU + {} GPUs", bench.gpus) };
        describe(&name, &report, bench.files.len(), &mut findings);
        lines.push(line(name.clone(), 2 * colour, &report, |run| run.text_bytes as f64 / MB / run.indexing_s));
        let tokens = |run: &RunReport| run.tokens as f64 / 1e6 / run.indexing_s;
        lines.push(line(format!("{name}, M tokens/s"), 2 * colour + 1, &report, tokens));
    }
    findings.chart(Chart {
        stem: String::from("files"),
        title: String::from("Rate of indexing along the collection (Wei and JaJa, figure 11)"),
        x_label: String::from("file"),
        y_label: String::from("indexing (MB/s, or M tokens/s)"),
        is_x_log: false,
        is_y_log: true,
        lines,
    });
    findings.note(
        "The paper draws this without numbers: a steep fall, then nearly flat, and a drop at file 1,200 of 1,492. Text without \
         tags has five times as many tokens a byte as pages, so that MB/s fall there by that much; M tokens/s tell the rest.",
    );
    Ok(findings)
}

fn line(name: String, colour: usize, report: &TrieReport, rate: impl Fn(&RunReport) -> f64) -> Line {
    let points = report.runs.iter().enumerate().map(|(file, run)| (file as f64, rate(run))).collect();
    Line { name, is_papers: false, colour, points }
}

/// Says in numbers what the figure shows.
fn describe(name: &str, report: &TrieReport, files: usize, findings: &mut Findings) {
    let rate = |runs: &[RunReport]| {
        let tokens: u64 = runs.iter().map(|run| run.tokens).sum();
        tokens as f64 / 1e6 / runs.iter().map(|run| run.indexing_s).sum::<f64>()
    };
    let runs = &report.runs;
    // Of each part the first tenth, and the last half before the change.
    let change = (files * (FILES - CHANGED) as usize / FILES as usize).min(runs.len());
    if change < 4 || change == runs.len() {
        return;
    }
    let tenth = (change / 10).max(1);
    findings.compare(format!("{name}: the first files"), "M tokens/s", None, rate(&runs[..tenth]));
    findings.compare(format!("{name}: a quarter on"), "M tokens/s", None, rate(&runs[change / 4..change / 2]));
    findings.compare(format!("{name}: before the change"), "M tokens/s", None, rate(&runs[change / 2..change]));
    findings.compare(format!("{name}: after it"), "M tokens/s", None, rate(&runs[change..]));
}
