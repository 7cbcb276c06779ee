//! Documents shared by lists: the results and the work of a conjunction.
//!
//! One block from the middle of the shortest list is decoded. Its documents are looked up in each other list: by a bit in
//! a direct form, by a scan of a short list, else in the [`Sketch`]:
//!
//! ```text
//! rare                 7   90  412  413  983        of a list of 40 documents, 5 are sampled
//! medium (sketch)      ·    1    ·    1    1        three pass
//! common (dense)            1         1    ·        two of these: about 40 · 2/5 documents are found
//! ```
//!
//! A sketch only has false positives, at a rate that follows from how full it is; the estimate subtracts them.

use tandem_base::traffic::IndexFeatures;

use super::sketch::may_contain;
use super::{Bounded, Sketch, postings};
use crate::index::{BLOCK_LEN, PostingList};

/// Documents of the shortest list that are looked up in lists with a direct form, for [`IndexFeatures::sieved`].
const SIEVED_DOCS: usize = 16;
/// Lists after the first in which the sample is sought; further lists of a query are assumed to be independent.
const SOUGHT_LISTS: usize = 8;
/// Weight of the independence assumption in the shared documents, as a number of sampled documents.
const PRIOR_DOCS: f64 = 0.5;

/// Documents of the shortest list; those that a list lacks are dropped.
struct Sample {
    docs: [u32; BLOCK_LEN],
    len: usize,
}

/// Fills in the features from direct forms and the sketch of `terms`, rarest first, in a collection of `num_docs`.
pub(super) fn fill_shared(features: &mut IndexFeatures, terms: &[Bounded<'_>], sketch: &Sketch, num_docs: u32) {
    let Some((shortest, others)) = terms.split_first() else { return };
    let share_of = |term: &Bounded<'_>| f64::from(term.list.doc_freq()) / f64::from(num_docs);
    let dense = || terms.iter().filter(|term| term.list.probe().is_some());
    features.dense_terms = dense().count() as f64;
    features.dense_postings = postings(dense());
    features.expected_union =
        f64::from(num_docs) * (1.0 - terms.iter().map(|term| 1.0 - share_of(term)).product::<f64>());

    let mut docs = [0; BLOCK_LEN];
    let len = shortest.list.decode_docs(sampled_block(&shortest.list), &mut docs);
    let shortest_len = f64::from(shortest.list.doc_freq());
    features.sieved = shortest_len * share_in_dense(&docs[..len], others);
    let mut candidates = features.sieved;
    for term in others.iter().filter(|term| term.list.probe().is_none()) {
        features.sieved_blocks += blocks_hit(term, candidates);
        candidates *= share_of(term);
    }

    let mut sample = Sample::of(docs, len, sketch);
    let (sought, rest) = others.split_at(others.len().min(SOUGHT_LISTS));
    // The share of the documents in all lists so far that is in the next list too, by the sample.
    let mut kept = shortest_len;
    for term in sought {
        features.sought_blocks += if term.list.probe().is_some() { 0.0 } else { blocks_hit(term, kept) };
        let had = sample.len as f64;
        let mistakes = sample.sift(term, sketch);
        let has = sample.len as f64;
        let members = ((has - had * mistakes) / (1.0 - mistakes)).max(0.0);
        kept *= (members + PRIOR_DOCS * share_of(term)) / (had + PRIOR_DOCS);
    }
    features.expected_found = rest.iter().fold(kept, |kept, term| kept * share_of(term));
}

pub(super) fn sampled_block(list: &PostingList<'_>) -> usize {
    list.num_blocks() / 2
}

impl Sample {
    /// The documents of `docs[..len]` within the sketch's range.
    fn of(docs: [u32; BLOCK_LEN], len: usize, sketch: &Sketch) -> Self {
        let known = sketch.docs();
        let mut sample = Self { docs, len };
        sample.keep(|doc| known.contains(&doc));
        sample
    }

    /// Keeps the documents that are in the list of `term`. Returns the rate of false positives among them.
    fn sift(&mut self, term: &Bounded<'_>, sketch: &Sketch) -> f64 {
        if let Some(probe) = term.list.probe() {
            self.keep(|doc| probe.contains(doc));
            return 0.0;
        }
        let Some(number) = term.number else {
            // The scan of a short list relies on the ascending order of both.
            let mut its_docs = [0; BLOCK_LEN];
            let its_len = term.list.decode_docs(0, &mut its_docs);
            let mut next = 0;
            self.keep(|doc| {
                while next < its_len && its_docs[next] < doc {
                    next += 1;
                }
                next < its_len && its_docs[next] == doc
            });
            return 0.0;
        };
        let filter = sketch.filter(number);
        if filter.is_empty() {
            self.len = 0;
            return 0.0;
        }
        self.keep(|doc| may_contain(filter, doc));
        MISTAKES
    }

    /// Keeps the documents for which `is_in` holds, in order, without a branch on any of them.
    #[inline(always)]
    fn keep(&mut self, mut is_in: impl FnMut(u32) -> bool) {
        let mut kept = 0;
        for i in 0..self.len {
            let doc = self.docs[i];
            self.docs[kept] = doc;
            kept += usize::from(is_in(doc));
        }
        self.len = kept;
    }
}

/// False positive rate of a filter with eight bits per posting, where a document sets two bits of a word.
const MISTAKES: f64 = 0.06;

/// Estimated blocks of a list that hold at least one of this many documents.
fn blocks_hit(term: &Bounded<'_>, documents: f64) -> f64 {
    let blocks = term.list.num_blocks() as f64;
    blocks * (1.0 - (-documents / blocks).exp())
}

/// The share of a list's sampled documents that are in all other lists with a direct form. One document counts as half
/// found, so that the share is never 0.
fn share_in_dense(docs: &[u32], others: &[Bounded<'_>]) -> f64 {
    if !others.iter().any(|term| term.list.probe().is_some()) {
        return 1.0;
    }
    let len = docs.len();
    let sampled = len.min(SIEVED_DOCS);
    let mut kept: [u32; SIEVED_DOCS] = std::array::from_fn(|sample| docs[(sample * len / sampled).min(len - 1)]);
    let mut num_kept = sampled;
    for probe in others.iter().filter_map(|term| term.list.probe()) {
        let mut still = 0;
        for i in 0..num_kept {
            kept[still] = kept[i];
            still += usize::from(probe.contains(kept[i]));
        }
        num_kept = still;
    }
    (num_kept as f64 + 0.5) / (sampled as f64 + 1.0)
}
