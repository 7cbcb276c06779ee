//! Ding et al., sections 8.3 and 8.4: the cost of scores in OR on the CPU, and precomputed quantised scores.
//!
//! "Only about 40% of CPU time for OR was spent on computing scores", so that quantised scores "would not bring it close to GPU
//! performance". The paper did not implement them. Here the CPU side of table 2 runs three times: as it is, with a score of one byte
//! in place of a frequency, and without scores.

use std::sync::Arc;

use tandem_engine::index::Bm25;
use tandem_engine::query::Query;
use tandem_engine::search::{Executor, TopK};
use tandem_model::traffic::Mode;

use crate::codec::Pfor;
use crate::context::terms_of;
use crate::ding::daat::cursor::Cursor;
use crate::ding::daat::executor::{DaatExecutor, unite};
use crate::ding::daat::lists::CodedLists;
use crate::measure::fastest_us;
use crate::{Context, Findings, Input, Result};

const DOCS: u32 = 1_000_000;
const QUERIES: usize = 100;
const REAL_QUERIES: usize = 1000;
/// Runs, of which the fastest counts.
const REPEATS: usize = 5;
/// Percent of the time for scores in the paper.
const PAPERS_SHARE: f64 = 40.0;
/// Greatest quantised score.
const MOST: f32 = 255.0;

pub(crate) fn run(context: &Context<'_>, findings: &mut Findings) -> Result<()> {
    context.on_both((DOCS, QUERIES), REAL_QUERIES, findings, |input, _, findings| compare(context, input, findings))
}

fn compare(context: &Context<'_>, input: &Input, findings: &mut Findings) -> Result<()> {
    let (index, terms) = (&input.index, terms_of(&input.queries));
    let (codec, all) = (|| Box::new(Pfor::<128>), 0..index.num_docs());
    let plain = Arc::new(CodedLists::encode(index, &terms, codec(), all.clone())?);
    let quantised = CodedLists::encode_values(index, &terms, codec(), all, |docs, freqs| {
        let score = |(&doc, &freq): (&u32, &u32)| quantise(Bm25::score(1.0, freq, plain.norm(doc)));
        docs.iter().zip(freqs).map(score).collect()
    })?;
    let postings: f64 = terms.iter().map(|&term| f64::from(index.list(term).doc_freq())).sum();
    let bits = |lists: &CodedLists| 32.0 * lists.freq_words() as f64 / postings;

    let mut daat = DaatExecutor::new(Arc::clone(&plain));
    let mut hits = Vec::new();
    let scored_ms =
        mean_ms(&input.queries, |query| Ok(daat.search(query, Mode::Or, context.k, &mut hits).map(drop)?))?;
    let mut best = TopK::default();
    let mut united_ms = |lists: &CodedLists, share: fn(&mut Cursor<'_>, f32, f32) -> f32| {
        mean_ms(&input.queries, |query| {
            best.reset(context.k);
            unite(lists, &query.terms, &mut best, share);
            best.drain_into(&mut hits);
            Ok(())
        })
    };
    let unscored_ms = united_ms(&plain, |_, _, _| 1.0)?;
    let quantised_ms = united_ms(&quantised, |cursor, weight, _| {
        let place = cursor.place();
        weight * cursor.freq(place) as f32
    })?;
    findings.add("or: BM25 from frequencies", "ms", scored_ms);
    findings.add("or: quantised scores", "ms", quantised_ms);
    findings.add("or: no scores", "ms", unscored_ms);
    findings.compare("or: scores", "% of time", PAPERS_SHARE, 100.0 * (1.0 - unscored_ms / scored_ms));
    findings.add("or: saved by quantised scores", "%", 100.0 * (1.0 - quantised_ms / scored_ms));
    findings.compare("or: bits of a frequency", "bits", 4.5, bits(&plain));
    findings.compare("or: bits of a quantised score", "bits", 8.0, bits(&quantised));
    Ok(())
}

/// A score from 0 to 1 in a byte; a posting has at least 1.
fn quantise(score: f32) -> u32 {
    (score * MOST).ceil().clamp(1.0, MOST) as u32
}

/// Returns the mean milliseconds of queries, the fastest run of each.
fn mean_ms(queries: &[Query], mut work: impl FnMut(&Query) -> Result<()>) -> Result<f64> {
    let mut sum_us = 0.0;
    for query in queries {
        sum_us += fastest_us(REPEATS, || work(query))?;
    }
    Ok(sum_us / 1e3 / queries.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_of_all_sizes_fit_a_byte_in_their_order() {
        let values = [0.0, 0.001, 0.3, 0.9999, 1.0, 1.2].map(quantise);
        assert_eq!(values, [1, 1, 77, 255, 255, 255]);
    }
}
