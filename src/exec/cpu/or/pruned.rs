//! Pruned disjunctions: what is decided before one of the algorithms runs, and the memory that they share.

use std::ops::Range;

use super::pivots::{ListBounds, PivotSearch, Positions, ShallowBlocks};
use super::windows::{WindowScorer, WindowSearch, WindowTable, block_max_max_score, live_ranges, max_score};
use super::{choice, initial_threshold};
use crate::exec::TopK;
use crate::exec::cpu::algorithm::Algorithm;
use crate::exec::cpu::blocks::{Cursor, ImpactBounds, Term};
use crate::exec::cpu::scoring::Threshold;
use crate::ids::DocId;
use crate::index::{BlockBuffer, Index, PostingList};
use crate::query::{Query, QueryTerm};

/// Scratch memory of the pruned algorithms, and how they are to run.
#[derive(Debug)]
pub(crate) struct PrunedOr {
    pub(crate) algorithm: Algorithm,
    /// Whether thresholds start from the terms' k-th best scores.
    pub(crate) is_seeded: bool,
    pub(crate) bounds: ImpactBounds,
    /// One a term.
    cursors: Box<[Cursor; Query::MAX_TERMS]>,
    scorer: WindowScorer,
    table: WindowTable,
}

/// What a disjunction works on.
#[derive(Debug)]
pub(crate) struct Disjunction<'a> {
    pub(crate) index: &'a Index,
    /// In the query's order.
    pub(crate) terms: &'a [QueryTerm],
    /// One a term.
    pub(crate) weights: &'a [f32],
    pub(crate) norms: &'a [f32],
    /// The documents to look at.
    pub(crate) docs: Range<DocId>,
}

impl PrunedOr {
    /// For an index and BM25 parameters for which `bounds` holds.
    pub(crate) fn new(bounds: ImpactBounds, algorithm: Algorithm, is_seeded: bool) -> Self {
        let cursors = Box::new(std::array::from_fn(|_| Cursor::default()));
        let (scorer, table) = (WindowScorer::default(), WindowTable::default());
        Self { algorithm, is_seeded, bounds, cursors, scorer, table }
    }

    /// The algorithm for this disjunction: the one asked for, or a choice among them.
    pub(crate) fn choose(&self, query: &Disjunction<'_>, k: usize) -> Algorithm {
        match self.algorithm {
            Algorithm::Auto => choice::choose(query.terms, k, query.norms.len()),
            chosen => chosen,
        }
    }

    /// Runs `algorithm`, which is neither exhaustive nor automatic, and offers every document that can enter to `best`.
    pub(crate) fn search(
        &mut self,
        algorithm: Algorithm,
        query: &Disjunction<'_>,
        buffers: &mut [BlockBuffer; Query::MAX_TERMS],
        best: &mut TopK,
    ) {
        // Most queries have few terms, and arrays of their number are handled the quicker.
        match query.terms.len() {
            0..=8 => self.search_with::<8>(algorithm, query, buffers, best),
            9..=16 => self.search_with::<16>(algorithm, query, buffers, best),
            17..=32 => self.search_with::<32>(algorithm, query, buffers, best),
            _ => self.search_with::<{ Query::MAX_TERMS }>(algorithm, query, buffers, best),
        }
    }

    /// As [`PrunedOr::search`], for at most `TERMS` terms.
    fn search_with<const TERMS: usize>(
        &mut self,
        algorithm: Algorithm,
        query: &Disjunction<'_>,
        buffers: &mut [BlockBuffer; Query::MAX_TERMS],
        best: &mut TopK,
    ) {
        let Self { is_seeded, bounds, cursors, scorer, table, .. } = self;
        let Disjunction { index, weights, norms, docs, .. } = query;
        let num_terms = query.terms.len();
        // Arrays, not vectors: a query allocates nothing.
        let terms: [Term<'_>; TERMS] = std::array::from_fn(|i| match query.terms.get(i) {
            Some(term) => Term::new(index.list(term.term), weights[i], *bounds),
            None => Term::new(PostingList::EMPTY, 0.0, *bounds),
        });
        let terms = &terms[..num_terms];
        let last_doc = DocId(docs.end.0.min(index.num_docs()));
        if docs.start >= last_doc {
            return;
        }
        let seed = if *is_seeded { initial_threshold::estimate(terms, best.k(), norms, &mut buffers[0]) } else { 0.0 };
        let is_in_order = matches!(algorithm, Algorithm::Wand | Algorithm::Bmw);
        let mut threshold = Threshold::new(seed.max(best.threshold()), is_in_order);
        let docs = docs.start.0..last_doc.0;
        match algorithm {
            Algorithm::Wand | Algorithm::Bmw => {
                let cursors = &mut cursors[..num_terms];
                cursors.iter_mut().for_each(Cursor::reset);
                let positions = Positions::<TERMS>::new(terms, docs.start);
                let threshold = &mut threshold;
                if algorithm == Algorithm::Wand {
                    PivotSearch { terms, cursors, positions, norms, blocks: ListBounds, threshold, best }.run(docs.end);
                } else {
                    let blocks = ShallowBlocks::default();
                    PivotSearch { terms, cursors, positions, norms, blocks, threshold, best }.run(docs.end);
                }
            }
            Algorithm::Maxscore | Algorithm::Bmm | Algorithm::Ranges => {
                scorer.reset(num_terms);
                let (num_docs, threshold) = (index.num_docs(), &mut threshold);
                let mut search = WindowSearch { terms, docs, num_docs, norms, scorer, threshold, best };
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
