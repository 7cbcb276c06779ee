//! Wei and JaJa, table 6: indexing rate from files to the dictionary on disk, for three collections.

use super::bench::{Bench, DOCS, FILES, PAPERS_CPU_INDEXERS, mb_per_s};
use super::collections::{CollectionPart, Kind};
use crate::wei::trie::TrieReport;
use crate::{Context, Findings, Result};

/// A column: the collection, whether GPUs index, the paper's total time in seconds, its MB/s and its tokens.
pub(crate) const PAPERS: [(Kind, bool, f64, f64, f64); 4] = [
    (Kind::ClueWeb, true, 5_541.62, 262.76, 32_644_508_255.0),
    (Kind::ClueWeb, false, 7_126.77, 204.32, 32_644_508_255.0),
    (Kind::Wikipedia, true, 1_033.34, 78.29, 9_375_229_726.0),
    (Kind::Congress, true, 2_495.29, 208.06, 16_865_180_093.0),
];
/// The paper's seconds by column: sampling, combining the dictionary, writing it.
const PAPERS_SHARES: [[f64; 3]; 4] =
    [[59.53, 2.46, 59.21], [57.53, 2.54, 54.92], [7.27, 0.26, 0.57], [29.01, 0.21, 0.80]];

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    for ((kind, has_gpus, papers_s, papers_rate, papers_tokens), papers_shares) in PAPERS.into_iter().zip(PAPERS_SHARES)
    {
        let name = format!("{}{}", kind.name(), if has_gpus { "" } else { " without GPUs" });
        let measured = measure(context, findings, kind, has_gpus)?;
        let share =
            |of: fn(&TrieReport) -> f64| measured.as_ref().map(|(report, _)| 100.0 * of(report) / report.total_s());
        let ours = [share(|r| r.sampling_s), share(|r| r.combining_s), share(|r| r.writing_s)];
        for ((what, papers_part), ours) in ["sampling", "combining", "writing"].into_iter().zip(papers_shares).zip(ours)
        {
            findings.compare(format!("{name}: {what}"), "% of total", 100.0 * papers_part / papers_s, ours);
        }
        let merging = measured.as_ref().map(|(report, merging_s)| 100.0 * merging_s / report.total_s());
        findings.add(format!("{name}: merging the lists"), "% of total", merging);
        let rate = measured.as_ref().map(|(report, _)| mb_per_s(report.text_bytes(), report.total_s()));
        findings.compare(format!("{name}: from end to end"), "MB/s", papers_rate, rate);
        let tokens = measured.as_ref().map(|(report, _)| report.tokens() as f64 / report.total_s() / 1e6);
        findings.compare(format!("{name}: from end to end"), "M tokens/s", papers_tokens / papers_s / 1e6, tokens);
    }
    findings.note(
        "The paper's total time ends when the dictionary is written; its lists are one file per run. It says that merging them \
         takes less than a tenth of the total, without naming a collection.",
    );
    Ok(())
}

/// Builds an index of a collection; `None` if it needs a GPU and there is none.
pub(crate) fn measure(
    context: &Context<'_>,
    findings: &mut Findings,
    kind: Kind,
    has_gpus: bool,
) -> Result<Option<(TrieReport, f64)>> {
    let docs = context.docs.unwrap_or(DOCS);
    let bench = Bench::of(context, findings, &[CollectionPart { kind, vocabulary: 0, docs, files: FILES }])?;
    if has_gpus && bench.gpus == 0 {
        return Ok(None);
    }
    let gpus = if has_gpus { bench.gpus } else { 0 };
    bench.build(bench.parsers_for(PAPERS_CPU_INDEXERS), PAPERS_CPU_INDEXERS, gpus).map(Some)
}
