//! Choice between the exhaustive algorithm and MaxScore, and MaxScore's initial threshold and memory.
//!
//! [`Algorithm::Auto`] chooses by k and the lengths of the query's lists:
//!
//! | postings | algorithm | reason |
//! | --- | --- | --- |
//! | at most 4 per result | exhaustive | a large part of the documents enters, so pruning skips nothing |
//! | at most one per 2^12 documents | exhaustive | MaxScore visits every window, exhaustive jumps over gaps |
//! | more | MaxScore | rare terms lead, and the rest is scored in bulk |
//!
//! The first limit was measured on 261,407 articles of the 2014 English Wikipedia with TREC efficiency queries at k of
//! 10, 100 and 1000 (`benches/pruning.rs`). MaxScore was the best single choice in the mean at each k.

use super::max_score::{WindowBounds, WindowSearch};
use super::scorer::WindowScorer;
use crate::index::{BLOCK_LEN, BlockBuffer, Bm25};
use crate::search::TopK;
use crate::search::cpu::algorithm::Algorithm;
use crate::search::cpu::blocks::term::{SearchScope, Term};
use crate::search::cpu::scoring::threshold::{Slack, Threshold};

#[derive(Debug)]
pub(crate) struct PrunedOr {
    pub(crate) algorithm: Algorithm,
    /// Whether thresholds start from the terms' k-th best scores.
    pub(crate) is_seeded: bool,
    buffer: BlockBuffer,
    scorer: WindowScorer,
    bounds: WindowBounds,
}

/// Below this number of postings per result, exhaustive scoring is quicker.
const POSTINGS_PER_RESULT: u64 = 4;
/// Below one posting per this number of documents, most windows of MaxScore (at most 2^16 documents) hold a handful of
/// postings. On five million synthetic documents exhaustive scoring was quicker up to twice the number.
const DOCS_PER_POSTING: u64 = 1 << 12;

impl PrunedOr {
    pub(crate) fn new(algorithm: Algorithm, is_seeded: bool) -> Self {
        Self {
            algorithm,
            is_seeded,
            buffer: BlockBuffer::default(),
            scorer: WindowScorer::default(),
            bounds: WindowBounds::default(),
        }
    }

    /// The configured algorithm, or the automatic choice for the `k` best documents of these terms.
    pub(crate) fn choose(&self, terms: &[Term<'_>], k: usize, num_docs: usize) -> Algorithm {
        if self.algorithm != Algorithm::Auto {
            return self.algorithm;
        }
        let postings: u64 = terms.iter().map(|term| u64::from(term.list.doc_freq())).sum();
        let few = (POSTINGS_PER_RESULT * k as u64).max(num_docs as u64 / DOCS_PER_POSTING);
        if postings < few { Algorithm::Exhaustive } else { Algorithm::Maxscore }
    }

    /// Runs MaxScore and offers every document of `scope` that can enter to `best`.
    pub(crate) fn search(&mut self, mut scope: SearchScope<'_>, best: &mut TopK) {
        let SearchScope { terms, norms, .. } = scope;
        scope.end = scope.end.min(norms.len() as u32);
        if scope.start >= scope.end {
            return;
        }
        let seed = match self.is_seeded {
            true => initial_threshold(terms, best.k(), norms, &mut self.buffer),
            false => 0.0,
        };
        let threshold = &mut Threshold::new(seed.max(best.threshold()), Slack::of(terms.len()));
        let Self { scorer, bounds, .. } = self;
        scorer.reset(terms.len());
        WindowSearch { scope, scorer, bounds, threshold, best }.run();
    }
}

/// A score that at least `k` documents reach, or 0 if none is known.
///
/// If one term alone gives k documents some score, the query's k-th best score is at least that: other terms only add,
/// and adding non-negative numbers never lowers a rounded sum. The index stores lower bounds of the k-th best impact of
/// longer lists for a few k; a list of one block is decoded instead.
///
/// Source: Petri, Moffat, Mackenzie, Culpepper and Beck, "Accelerated Query Processing via Similarity Score
/// Prediction", SIGIR 2019; PISA's `kth_threshold`.
fn initial_threshold(terms: &[Term<'_>], k: usize, norms: &[f32], buffer: &mut BlockBuffer) -> f32 {
    let mut seed = 0.0_f32;
    for term in terms {
        if (term.list.doc_freq() as usize) < k || term.bound <= seed {
            continue;
        }
        let stored = term.kth_score(k);
        if stored > 0.0 {
            seed = seed.max(stored);
        } else if term.list.num_blocks() == 1 {
            seed = seed.max(kth_score_of_block(term, k, norms, buffer));
        }
    }
    seed
}

fn kth_score_of_block(term: &Term<'_>, k: usize, norms: &[f32], buffer: &mut BlockBuffer) -> f32 {
    let len = term.list.decode_docs(0, &mut buffer.docs);
    term.list.decode_freqs(0, &mut buffer.freqs);
    let mut scores = [0.0_f32; BLOCK_LEN];
    for ((score, &doc), &freq) in scores.iter_mut().zip(&buffer.docs[..len]).zip(&buffer.freqs) {
        *score = Bm25::score(term.weight, freq, norms[doc as usize]);
    }
    let (_, kth, _) = scores[..len].select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    *kth
}
