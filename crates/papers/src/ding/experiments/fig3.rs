//! Ding et al., figure 3: bytes per docID of each codec.
//!
//! The documents of the distinct lists of the queries are compressed without frequencies. The text of the paper gives an
//! order only. Rice is best. PForDelta with one width per list is much worse without recursion, and with one level slightly
//! better than PForDelta with one width per block, which is `pfor` here. More levels hardly matter. `new-pfd`, which the
//! same group published the same year, keeps its exceptions shorter.
//!
//! Gaps of synthetic lists are independent. Real gaps come in bursts, so that widths per block gain more. A second section
//! therefore measures lists of a real collection if there is one.

use rayon::prelude::*;

use crate::codec::{Column, PForDelta, all_codecs};
use crate::context::{GOV2_DOCS, terms_of};
use crate::findings::{Chart, Curve};
use crate::{Context, Findings, Input, Result};

/// Codecs of the paper's figure next to PForDelta with one width per list. The table has all codecs.
const DRAWN: [&str; 2] = ["rice", "pfor"];
const QUERIES: usize = 200;
/// Queries of a real log, whose lists are shorter.
const REAL_QUERIES: usize = 5000;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    context.on_both((GOV2_DOCS, QUERIES), REAL_QUERIES, findings, compare)
}

/// Adds the sizes of all codecs on the lists of an input.
fn compare(input: &Input, section: &str, findings: &mut Findings) -> Result<()> {
    let terms = terms_of(&input.queries);
    let codecs = all_codecs();
    let sizes: Result<Vec<Vec<u64>>> = terms
        .par_iter()
        .map(|&term| {
            let docs = input.index.list(term).docs();
            codecs.iter().map(|codec| Ok(4 * codec.encode_list(Column::Docs, &docs)?.len() as u64)).collect()
        })
        .collect();
    let sizes = sizes?;
    let postings: u64 = terms.iter().map(|&term| u64::from(input.index.list(term).doc_freq())).sum();
    let mut curves: Vec<Curve> = Vec::new();
    let mut levels = Vec::new();
    let mut per_block = None;
    for (number, codec) in codecs.iter().enumerate() {
        let bytes = sizes.iter().map(|list| list[number]).sum::<u64>() as f64 / postings as f64;
        findings.add(codec.name(), "bytes/docID", bytes);
        if let Some(level) = codec.name().strip_prefix("pfor-delta-").and_then(|level| level.parse::<f64>().ok()) {
            levels.push((level, bytes));
        } else if DRAWN.contains(&codec.name()) {
            let points = vec![(0.0, bytes), (f64::from(PForDelta::MAX_LEVELS), bytes)];
            curves.push(Curve::ours(codec.name(), curves.len() + 1, points));
        }
        if codec.name() == "pfor" {
            per_block = Some(bytes);
        }
    }
    if let (Some(per_block), Some((_, one_level))) = (per_block, levels.get(1)) {
        let less = 100.0 * (1.0 - one_level / per_block);
        findings.add("one level of recursion, below a width a block", "%", less);
    }
    curves.insert(0, Curve::ours("pfor-delta", 0, levels));
    let (stem, lists) = if section.is_empty() { ("bytes", "") } else { ("bytes-real", ", real lists") };
    let title = format!("Compressed size{lists} (Ding et al., figure 3)");
    findings.chart(Chart::new(stem, title, ["levels of recursion", "bytes a docID"], curves));
    findings.add("lists", "", terms.len() as f64);
    findings.add("docIDs in them", "", postings as f64);
    Ok(())
}
