//! Ding et al., figure 3: bytes a docID of each codec.
//!
//! The lists are those of the queries' terms, each once; their compressed documents, without frequencies, are summed
//! up. The paper's bars survive only as its words: Rice best; PForDelta with one width a list much worse without
//! recursion, and slightly better than PForDelta with a width a block with one level; more levels hardly matter. The
//! latter is `pfor` here; `new-pfd`, which the same group published the same year, keeps its exceptions shorter.
//!
//! Gaps of synthetic lists are drawn independently. Real ones come in bursts, so that widths that change along the list
//! gain more: lists of a real collection stand beside them where there is one.

use rayon::prelude::*;

use super::lists::{GOV2_DOCS, terms};
use crate::codec::{Column, PForDelta, all_codecs};
use crate::{Chart, Context, ExperimentError, Findings, Input, Line, RealLog};

/// Codecs that the paper draws besides its own PForDelta; the table has all.
const DRAWN: [&str; 2] = ["rice", "pfor"];
/// Queries whose lists are compressed.
const QUERIES: usize = 200;
/// Of a real log, whose lists are shorter.
const REAL_QUERIES: usize = 5000;

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let input = context.input(GOV2_DOCS, QUERIES)?;
    findings.provenance("input", &input.name);
    compare(&input, "", &mut findings)?;
    if let Some(input) = context.real_input(RealLog::Web, REAL_QUERIES, &mut findings)? {
        compare(&input, "real lists", &mut findings)?;
    }
    findings.note(
        "The paper gives no numbers in its text: Rice best, recursion needed once, one level slightly below PForDelta \
         with a width a block (`pfor` here).",
    );
    Ok(findings)
}

/// Sizes of all codecs on the lists of an input; `of` is the section of what is found.
fn compare(input: &Input, of: &str, findings: &mut Findings) -> Result<(), ExperimentError> {
    findings.section(of);
    let terms = terms(input);
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

    let mut lines: Vec<Line> = Vec::new();
    let mut levels = Vec::new();
    let mut per_block = None;
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
        if codec.name() == "pfor" {
            per_block = Some(bytes);
        }
    }
    if let (Some(per_block), Some((_, one_level))) = (per_block, levels.get(1)) {
        let less = 100.0 * (1.0 - one_level / per_block);
        findings.compare("one level of recursion, below a width a block", "%", None, less);
    }
    lines.insert(0, Line { name: "pfor-delta".to_owned(), is_papers: false, colour: 0, points: levels });
    let (stem, lists) = if of.is_empty() { ("bytes", "") } else { ("bytes-real", ", real lists") };
    findings.chart(Chart {
        stem: stem.to_owned(),
        title: format!("Compressed size{lists} (Ding et al., figure 3)"),
        x_label: String::from("levels of recursion"),
        y_label: String::from("bytes a docID"),
        is_x_log: false,
        is_y_log: false,
        lines,
    });
    findings.compare("lists", "", None, terms.len() as f64);
    findings.compare("docIDs in them", "", None, postings as f64);
    Ok(())
}
