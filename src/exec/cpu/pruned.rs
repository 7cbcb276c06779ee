//! Pruned disjunctions: what is decided before one of the algorithms runs, and the memory that they share.

use std::ops::Range;

use super::algorithm::Algorithm;
use super::auto;
use super::block_max_wand::Blocks;
use super::bounds::ImpactBounds;
use super::bulk::BulkScorer;
use super::cursor::Cursor;
use super::floor::Floor;
use super::max_score::WindowSearch;
use super::positions::Positions;
use super::term::Term;
use super::wand::{ListsOnly, Search};
use super::window_table::WindowTable;
use super::{block_max_max_score, max_score, ranges, seed};
use crate::exec::TopK;
use crate::ids::DocId;
use crate::index::{BlockBuffer, Index, PostingList};
use crate::query::{Query, QueryTerm};

/// Scratch memory of the pruned algorithms, and how they are to run.
#[derive(Debug)]
pub(super) struct Pruned {
    pub(super) algorithm: Algorithm,
    /// Whether thresholds start from the terms' k-th best scores.
    pub(super) is_seeded: bool,
    pub(super) bounds: ImpactBounds,
    /// One a term.
    cursors: Box<[Cursor; Query::MAX_TERMS]>,
    bulk: BulkScorer,
    table: WindowTable,
}

/// What a disjunction works on.
#[derive(Debug)]
pub(super) struct Disjunction<'a> {
    pub(super) index: &'a Index,
    /// In the query's order.
    pub(super) terms: &'a [QueryTerm],
    /// One a term.
    pub(super) weights: &'a [f32],
    pub(super) norms: &'a [f32],
    /// The documents to look at.
    pub(super) docs: Range<DocId>,
}

impl Pruned {
    /// For an index and BM25 parameters for which `bounds` holds.
    pub(super) fn new(bounds: ImpactBounds, algorithm: Algorithm, is_seeded: bool) -> Self {
        let cursors = Box::new(std::array::from_fn(|_| Cursor::default()));
        let (bulk, table) = (BulkScorer::default(), WindowTable::default());
        Self { algorithm, is_seeded, bounds, cursors, bulk, table }
    }

    /// The algorithm for this disjunction: the one asked for, or a choice among them.
    pub(super) fn choose(&self, query: &Disjunction<'_>, k: usize) -> Algorithm {
        match self.algorithm {
            Algorithm::Auto => auto::choose(query.terms, k, query.norms.len()),
            chosen => chosen,
        }
    }

    /// Runs `algorithm`, which is neither exhaustive nor automatic, and offers every document that can enter to `best`.
    pub(super) fn search(
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

    /// As [`Pruned::search`], for at most `TERMS` terms.
    fn search_with<const TERMS: usize>(
        &mut self,
        algorithm: Algorithm,
        query: &Disjunction<'_>,
        buffers: &mut [BlockBuffer; Query::MAX_TERMS],
        best: &mut TopK,
    ) {
        let Self { is_seeded, bounds, cursors, bulk, table, .. } = self;
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
        let seed = if *is_seeded { seed::threshold(terms, best.k(), norms, &mut buffers[0]) } else { 0.0 };
        let is_in_order = matches!(algorithm, Algorithm::Wand | Algorithm::Bmw);
        let mut floor = Floor::new(seed.max(best.threshold()), is_in_order);
        let docs = docs.start.0..last_doc.0;
        match algorithm {
            Algorithm::Wand | Algorithm::Bmw => {
                let cursors = &mut cursors[..num_terms];
                cursors.iter_mut().for_each(Cursor::reset);
                let positions = Positions::<TERMS>::new(terms, docs.start);
                let floor = &mut floor;
                if algorithm == Algorithm::Wand {
                    Search { terms, cursors, positions, norms, blocks: ListsOnly, floor, best }.run(docs.end);
                } else {
                    let blocks = Blocks::default();
                    Search { terms, cursors, positions, norms, blocks, floor, best }.run(docs.end);
                }
            }
            Algorithm::Maxscore | Algorithm::Bmm | Algorithm::Ranges => {
                bulk.reset(num_terms);
                let (num_docs, floor) = (index.num_docs(), &mut floor);
                let mut search = WindowSearch { terms, docs, num_docs, norms, bulk, floor, best };
                match algorithm {
                    Algorithm::Maxscore => max_score::search(&mut search),
                    Algorithm::Bmm => block_max_max_score::search(&mut search, table),
                    _ => ranges::search(&mut search, table),
                }
            }
            Algorithm::Exhaustive | Algorithm::Auto => unreachable!("{algorithm} is no pruned algorithm"),
        }
    }
}
