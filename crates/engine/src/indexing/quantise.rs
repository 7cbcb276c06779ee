//! Impacts of eight bits: an index whose postings hold score contributions instead of frequencies.
//!
//! ```text
//! impact(t, d) = share(t, d) / largest share of any posting · 255, rounded to the nearest (halves up), at least 1
//! score(d)     = Σ impact(t, d) · count of t in the query
//! ```
//!
//! A share is the [`Bm25::score`] for a query that names the term once, with the index's parameters. The impact
//! includes the idf and the document's length, so searching needs neither. Scores are whole numbers, so every executor
//! finds the same documents in any order of addition. The ranking differs from BM25's: postings that differ by less
//! than a step score alike, and small shares weigh up to a step more. Rankings of impacts should be compared with
//! rankings of impacts.
//!
//! Source: Anh, de Kretser and Moffat, "Vector-Space Ranking with Effective Early Termination", SIGIR 2001.

use std::path::Path;

use rayon::prelude::*;
use tandem_base::base::ids::{DocId, TermId};

use super::error::BuildError;
use super::ranges::rewrite;
use crate::index::{BLOCK_LEN, Bm25, Index, IndexError, IndexWriter, MAX_IMPACT};

/// Writes `index` into folder `dir` with impacts instead of frequencies, on as many threads as rayon has. Fails if the
/// index already holds impacts, or the file system fails. A previous index stays then.
pub fn quantise(index: &Index, dir: &Path) -> Result<(), BuildError> {
    if index.is_quantised() {
        return Err(IndexError::Collection("the index holds impacts already".to_owned()).into());
    }
    let norms = index.built_with().norms(index.doc_lengths(), index.average_length());
    let largest_of = |term: u32| {
        let mut largest = 0.0_f32;
        for_each_block(index, TermId(term), &norms, |_, shares| {
            largest = shares.iter().copied().fold(largest, f32::max);
        });
        largest
    };
    let largest = (0..index.num_terms()).into_par_iter().map(largest_of).reduce(|| 0.0, f32::max);

    let external_ids = (0..index.num_docs()).map(|doc| index.external_id(DocId(doc)).into_owned()).collect();
    let lengths = index.doc_lengths().to_vec();
    let mut writer = IndexWriter::create(dir, lengths, external_ids, Bm25::IMPACTS, index.tokenizer_name())?;
    rewrite(index, &mut writer, &|_| (), &|term, docs, impacts| {
        for_each_block(index, term, &norms, |block_docs, shares| {
            docs.extend_from_slice(block_docs);
            impacts.extend(shares.iter().map(|&share| impact(share, largest)));
        });
    })?;
    Ok(writer.finish()?)
}

fn impact(share: f32, largest: f32) -> u32 {
    let impact = (f64::from(share) / f64::from(largest) * f64::from(MAX_IMPACT)).round();
    (impact as u32).clamp(1, MAX_IMPACT)
}

/// Passes the term's documents and their score contributions for a query that names the term once to `visit`, block by
/// block.
fn for_each_block(index: &Index, term: TermId, norms: &[f32], mut visit: impl FnMut(&[u32], &[f32])) {
    let list = index.list(term);
    let weight = index.built_with().weight(index.num_docs(), list.doc_freq(), 1);
    let (mut docs, mut freqs, mut shares) = ([0; BLOCK_LEN], [0; BLOCK_LEN], [0.0; BLOCK_LEN]);
    for block in 0..list.num_blocks() {
        let len = list.decode_docs(block, &mut docs);
        list.decode_freqs(block, &mut freqs);
        for ((share, &doc), &freq) in shares.iter_mut().zip(&docs[..len]).zip(&freqs) {
            *share = Bm25::score(weight, freq, norms[doc as usize]);
        }
        visit(&docs[..len], &shares[..len]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impacts_are_rounded_shares_and_lists_stay() {
        let lists =
            [("common", (0..700).map(|doc| (doc, 1 + doc % 9)).collect::<Vec<_>>()), ("rare", vec![(3, 2), (650, 7)])];
        let index = Index::from_lists(&lists).unwrap();
        let dir = tempfile::tempdir().unwrap();
        quantise(&index, dir.path()).unwrap();
        let quantised = Index::open(dir.path()).unwrap();
        assert!(quantised.is_quantised() && !index.is_quantised());

        let shares = |term: &str| -> Vec<(u32, f32)> {
            let list = index.list(index.term(term).unwrap());
            let weight = index.built_with().weight(index.num_docs(), list.doc_freq(), 1);
            let norm = |doc: u32| index.built_with().norm(index.doc_lengths()[doc as usize], index.average_length());
            list.postings().map(|(doc, freq)| (doc, Bm25::score(weight, freq, norm(doc)))).collect()
        };
        let largest =
            ["common", "rare"].iter().flat_map(|term| shares(term)).map(|(_, share)| share).fold(0.0, f32::max);
        for term in ["common", "rare"] {
            let list = quantised.list(quantised.term(term).unwrap());
            for ((doc, impact), (expected_doc, share)) in list.postings().zip(shares(term)) {
                assert_eq!(doc, expected_doc);
                let exact = f64::from(share) / f64::from(largest) * 255.0;
                assert!((f64::from(impact) - exact).abs() <= 0.5 || impact == 1, "{term} {doc}: {impact} for {exact}");
            }
        }
        assert!(quantise(&quantised, dir.path()).is_err());
    }
}
