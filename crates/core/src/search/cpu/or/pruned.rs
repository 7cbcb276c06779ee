//! Entry of the pruned disjunctions: choice of the algorithm, initial threshold, and shared memory.
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

use std::ops::Range;

use super::initial_threshold;
use super::pivots::{ListBounds, PivotSearch, Positions, ShallowBlocks, sorted};
use super::windows::{WindowBounds, WindowScorer, WindowSearch};
use crate::base::ids::DocId;
use crate::index::BlockBuffer;
use crate::search::TopK;
use crate::search::cpu::algorithm::Algorithm;
use crate::search::cpu::blocks::{Cursor, Term};
use crate::search::cpu::scoring::{Slack, Threshold};

/// Scratch memory and settings of the pruned algorithms.
#[derive(Debug)]
pub(crate) struct PrunedOr {
    pub(crate) algorithm: Algorithm,
    /// Whether thresholds start from the terms' k-th best scores.
    pub(crate) is_seeded: bool,
    buffer: BlockBuffer,
    /// At least one per term.
    cursors: Vec<Cursor>,
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
            cursors: Vec::new(),
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

    /// Runs `algorithm`, which must be a pruned one, and offers every document of `range` that can enter to `best`.
    /// Terms are in the query's order.
    pub(crate) fn search(
        &mut self,
        algorithm: Algorithm,
        terms: &[Term<'_>],
        range: Range<DocId>,
        norms: &[f32],
        best: &mut TopK,
    ) {
        let num_docs = norms.len() as u32;
        let docs = range.start.0..range.end.0.min(num_docs);
        if docs.is_empty() {
            return;
        }
        let seed = match self.is_seeded {
            true => initial_threshold::estimate(terms, best.k(), norms, &mut self.buffer),
            false => 0.0,
        };
        let is_in_order = matches!(algorithm, Algorithm::Wand | Algorithm::Bmw);
        let mut threshold = Threshold::new(seed.max(best.threshold()), Slack::of(terms.len()), is_in_order);
        let threshold = &mut threshold;
        match algorithm {
            Algorithm::Wand | Algorithm::Bmw => {
                if self.cursors.len() < terms.len() {
                    self.cursors.resize_with(terms.len(), Cursor::default);
                }
                let cursors = &mut self.cursors[..terms.len()];
                cursors.iter_mut().for_each(Cursor::reset);
                let with_blocks = algorithm == Algorithm::Bmw;
                // Most queries have few terms, and small arrays are quicker.
                match terms.len() {
                    0..=8 => by_pivots::<8>(with_blocks, terms, docs, cursors, norms, threshold, best),
                    9..=16 => by_pivots::<16>(with_blocks, terms, docs, cursors, norms, threshold, best),
                    17..=32 => by_pivots::<32>(with_blocks, terms, docs, cursors, norms, threshold, best),
                    33..=64 => by_pivots::<64>(with_blocks, terms, docs, cursors, norms, threshold, best),
                    _ => sorted::search(with_blocks, terms, docs, cursors, norms, threshold, best),
                }
            }
            Algorithm::Maxscore => {
                let Self { scorer, bounds, .. } = self;
                scorer.reset(terms.len());
                WindowSearch { terms, docs, num_docs, norms, scorer, bounds, threshold, best }.run();
            }
            Algorithm::Exhaustive | Algorithm::Auto => unreachable!("{algorithm} is no pruned algorithm"),
        }
    }
}

/// WAND, or Block-Max WAND, for at most `TERMS` terms.
fn by_pivots<const TERMS: usize>(
    with_blocks: bool,
    terms: &[Term<'_>],
    docs: Range<u32>,
    cursors: &mut [Cursor],
    norms: &[f32],
    threshold: &mut Threshold,
    best: &mut TopK,
) {
    let positions = Positions::<TERMS>::new(terms, docs.start);
    if with_blocks {
        let blocks = ShallowBlocks::default();
        PivotSearch { terms, cursors, positions, norms, blocks, threshold, best }.run(docs.end);
    } else {
        PivotSearch { terms, cursors, positions, norms, blocks: ListBounds, threshold, best }.run(docs.end);
    }
}
