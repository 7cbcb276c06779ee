//! Wei and JaJa, table 4: indexing times by number of CPU and GPU indexers.
//!
//! The indexing rate counts the time in which indexers work. The total rate adds preparing, collecting and waiting for parsers.
//! On machines with fewer cores than the paper's eight, fewer parsers feed the same indexers.

use super::bench::{Bench, MB, PAPERS_CORES, PAPERS_GPUS, mb_per_s};
use crate::wei::trie::TrieReport;
use crate::{Context, Findings, Result};

/// CPU indexers, GPUs, the paper's seconds (before, indexing, after, in all), and its MB/s (indexing, in all).
const PAPERS: [(usize, usize, [f64; 4], [f64; 2]); 4] = [
    (0, 2, [107.01, 19_313.6, 417.21, 19_858.69], [75.41, 73.34]),
    (1, 0, [93.44, 11_243.61, 416.66, 11_758.81], [129.53, 123.86]),
    (2, 0, [111.74, 6_357.67, 521.52, 7_019.87], [229.08, 207.47]),
    (2, 2, [104.15, 4_616.78, 464.04, 5_408.25], [315.46, 269.29]),
];
const PAPERS_MB: f64 = 19_313.6 * 75.41;
const PAPERS_TOKENS_PER_MB: f64 = 32_644_508_255.0 / PAPERS_MB;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    let bench = Bench::new(context, findings)?;
    let mut rates = [None; PAPERS.len()];
    for (place, (cpus, gpus, papers_s, papers_rates)) in PAPERS.into_iter().enumerate() {
        let parsers = bench.parsers_for(cpus);
        let name = match (cpus, gpus) {
            (0, gpus) => format!("{gpus} GPUs"),
            (cpus, 0) => format!("{cpus} CPU"),
            (cpus, gpus) => format!("{cpus} CPU + {gpus} GPUs"),
        };
        let report =
            if gpus == 0 || bench.gpus > 0 { Some(bench.index(parsers, cpus, gpus.min(bench.gpus))?) } else { None };
        let ours_mb = report.as_ref().map(|report| report.text_bytes() as f64 / MB);
        // Collections differ in size, so that seconds are per GB.
        let per_gb = |seconds: f64, mb: f64| seconds / mb * 1024.0;
        type Seconds = fn(&TrieReport) -> f64;
        let stages: [(&str, Seconds); 4] = [
            ("before", |report| report.sum(|run| run.preparing_s)),
            ("indexing", |report| report.sum(|run| run.indexing_s)),
            ("after", |report| report.sum(|run| run.collecting_s)),
            ("in all", |report| report.indexers_s),
        ];
        for ((stage, seconds), papers_s) in stages.into_iter().zip(papers_s) {
            let ours = report.as_ref().zip(ours_mb).map(|(report, mb)| per_gb(seconds(report), mb));
            findings.compare(format!("{name}: {stage}"), "s/GB", per_gb(papers_s, PAPERS_MB), ours);
        }
        let rate = |seconds: f64, report: &TrieReport| mb_per_s(report.text_bytes(), seconds);
        let indexing = report.as_ref().map(|report| rate(report.sum(|run| run.indexing_s), report));
        rates[place] = indexing;
        findings.compare(format!("{name}: indexing"), "MB/s", papers_rates[0], indexing);
        let in_all = report.as_ref().map(|report| rate(report.indexers_s, report));
        findings.compare(format!("{name}: in all"), "MB/s", papers_rates[1], in_all);
        let tokens = report.as_ref().map(|r| r.tokens() as f64 / r.sum(|run| run.indexing_s) / 1e6);
        let papers = papers_rates[0] * PAPERS_TOKENS_PER_MB / 1e6;
        findings.compare(format!("{name}: indexing"), "M tokens/s", papers, tokens);
    }
    let times = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a / b);
    findings.compare("2 CPU over 1", "x", 1.77, times(rates[2], rates[1]));
    findings.compare("2 CPU + 2 GPUs over 2 CPU", "x", 1.377, times(rates[3], rates[2]));
    let alone = rates[0].zip(rates[2]).map(|(gpus, cpus)| gpus + cpus);
    findings.compare(
        "2 CPU + 2 GPUs over the sum of each alone",
        "x",
        315.46 / (229.08 + 75.41),
        times(rates[3], alone),
    );
    findings.compare("2 GPUs: over the paper's", "x", 1.0, rates[0].map(|rate| rate / 75.41));
    findings.note(format!(
        "Parsers: {} with two CPU indexers (the paper: 6). GPUs: {} (the paper: {PAPERS_GPUS}). 1 MB is 2^20 bytes.",
        bench.parsers_for(2),
        bench.gpus
    ));
    if bench.cores() < PAPERS_CORES {
        findings.note("On fewer than eight cores, indexing times include waiting for a core.");
    }
    Ok(())
}
