//! Pruned disjunctions: what is decided before one of the algorithms runs, and the memory that they share.

use std::ops::Range;

use super::pivots::{ListBounds, PivotSearch, Positions, ShallowBlocks, sorted};
use super::windows::{WindowBounds, WindowScorer, WindowSearch, WindowTable};
use super::windows::{block_max_max_score, live_ranges, max_score};
use super::{choice, initial_threshold};
use crate::exec::TopK;
use crate::exec::cpu::algorithm::Algorithm;
use crate::exec::cpu::blocks::{Cursor, Term};
use crate::exec::cpu::scoring::{Slack, Threshold};
use crate::ids::DocId;
use crate::index::BlockBuffer;

/// Scratch memory of the pruned algorithms, and how they are to run.
#[derive(Debug)]
pub(crate) struct PrunedOr {
    pub(crate) algorithm: Algorithm,
    /// Whether thresholds start from the terms' k-th best scores.
    pub(crate) is_seeded: bool,
    buffer: BlockBuffer,
    /// At least one a term.
    cursors: Vec<Cursor>,
    scorer: WindowScorer,
    bounds: WindowBounds,
    table: WindowTable,
}

impl PrunedOr {
    /// For disjunctions by `algorithm`.
    pub(crate) fn new(algorithm: Algorithm, is_seeded: bool) -> Self {
        Self {
            algorithm,
            is_seeded,
            buffer: BlockBuffer::default(),
            cursors: Vec::new(),
            scorer: WindowScorer::default(),
            bounds: WindowBounds::default(),
            table: WindowTable::default(),
        }
    }

    /// The algorithm for the `k` best of these terms' documents: the one asked for, or a choice among them.
    pub(crate) fn choose(&self, terms: &[Term<'_>], k: usize, num_docs: usize) -> Algorithm {
        match self.algorithm {
            Algorithm::Auto => choice::choose(terms, k, num_docs),
            chosen => chosen,
        }
    }

    /// Runs `algorithm`, which is neither exhaustive nor automatic, and offers every document of `range` that can enter
    /// to `best`. Terms are in the query's order.
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
                // Most queries have few terms, and arrays of their number are handled the quicker.
                match terms.len() {
                    0..=8 => by_pivots::<8>(with_blocks, terms, docs, cursors, norms, threshold, best),
                    9..=16 => by_pivots::<16>(with_blocks, terms, docs, cursors, norms, threshold, best),
                    17..=32 => by_pivots::<32>(with_blocks, terms, docs, cursors, norms, threshold, best),
                    33..=64 => by_pivots::<64>(with_blocks, terms, docs, cursors, norms, threshold, best),
                    _ => sorted::search(with_blocks, terms, docs, cursors, norms, threshold, best),
                }
            }
            Algorithm::Maxscore | Algorithm::Bmm | Algorithm::Ranges => {
                let Self { scorer, bounds, table, .. } = self;
                scorer.reset(terms.len());
                let mut search = WindowSearch { terms, docs, num_docs, norms, scorer, bounds, threshold, best };
                match algorithm {
                    Algorithm::Maxscore => max_score::search(&mut search),
                    Algorithm::Bmm => block_max_max_score::search(&mut search, table),
                    _ => live_ranges::search(&mut search, table),
                }
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
