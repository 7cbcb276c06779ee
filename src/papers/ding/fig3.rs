//! Ding et al., figure 3: bytes a docID of each codec.
//!
//! The lists are those of the queries' terms, each once; their compressed documents, without frequencies, are summed
//! up. The paper's bars survive only as its words: Rice best; PForDelta with one width a list much worse without
//! recursion, and slightly better than per-block PForDelta with one level; more levels hardly matter.

use rayon::prelude::*;

use super::lists::{GOV2_DOCS, terms};
use crate::papers::codec::{Column, PForDelta, all_codecs};
use crate::papers::{Chart, Context, ExperimentError, Findings, Line};

/// Codecs that the paper draws besides its own PForDelta; the table has all.
const DRAWN: [&str; 2] = ["rice", "new-pfd"];
/// Queries whose lists are compressed.
const QUERIES: usize = 200;

pub(in crate::papers) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let input = context.input(GOV2_DOCS, QUERIES)?;
    let terms = terms(&input);
    let codecs = all_codecs();
    let sizes: Result<Vec<Vec<u64>>, ExperimentError> = terms
        .par_iter()
        .map(|&term| {
            let docs = input.index.list(term).docs();
            codecs.iter().map(|codec| Ok(4 * codec.encode_list(Column::Docs, &docs)?.len() as u64)).collect()
        })
        .collect();
    let sizes = sizes?;
    let postings: u64 = terms.iter().map(|&term| u64::from(input.index.list(term).doc_freq())).sum();
    let bytes_a_doc = |codec: usize| sizes.iter().map(|list| list[codec]).sum::<u64>() as f64 / postings as f64;

    let mut findings = Findings::default();
    findings.provenance("input", &input.name);
    let mut lines: Vec<Line> = Vec::new();
    let mut levels = Vec::new();
    let (first, last) = (0.0, f64::from(PForDelta::MAX_LEVELS));
    for (number, codec) in codecs.iter().enumerate() {
        let bytes = bytes_a_doc(number);
        findings.compare(codec.name(), "bytes/docID", None, bytes);
        if let Some(level) = codec.name().strip_prefix("pfor-delta-").and_then(|level| level.parse::<f64>().ok()) {
            levels.push((level, bytes));
        } else if DRAWN.contains(&codec.name()) {
            let points = vec![(first, bytes), (last, bytes)];
            lines.push(Line { name: codec.name().to_owned(), is_papers: false, colour: lines.len() + 1, points });
        }
    }
    lines.insert(0, Line { name: "pfor-delta".to_owned(), is_papers: false, colour: 0, points: levels });
    findings.chart(Chart {
        stem: "bytes",
        title: String::from("Compressed size (Ding et al., figure 3)"),
        x_label: String::from("levels of recursion"),
        y_label: String::from("bytes a docID"),
        is_x_log: false,
        is_y_log: false,
        lines,
    });
    findings.note(format!(
        "{} lists, {postings} docIDs. The paper gives no numbers in its text: Rice best, recursion needed once, one \
         level slightly below per-block PForDelta.",
        terms.len()
    ));
    Ok(findings)
}
