//! Pruned disjunctions: what is decided before one of the algorithms runs, and the memory that they share.

use std::ops::Range;

use super::algorithm::Algorithm;
use super::auto;
use super::bounds::ImpactBounds;
use super::bulk::{self, BulkScorer};
use super::cursor::Cursor;
use super::floor::Floor;
use super::term::Term;
use super::window_table::WindowTable;
use super::{block_max_max_score, block_max_wand, max_score, ranges, seed, wand};
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
    bulk: BulkScorer,
    table: WindowTable,
}

/// Most queries have no more terms than this: they make so many cursors only.
const FEW_TERMS: usize = 8;

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
        Self { algorithm, is_seeded, bounds, bulk: BulkScorer::default(), table: WindowTable::default() }
    }

    /// The algorithm for this disjunction: the one asked for, or a choice among them.
    pub(super) fn choose(&self, query: &Disjunction<'_>, k: usize) -> Algorithm {
        match self.algorithm {
            Algorithm::Auto => auto::choose(query.terms, k, query.index.num_docs()),
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
        if query.terms.len() <= FEW_TERMS {
            self.search_with::<FEW_TERMS>(algorithm, query, buffers, best);
        } else {
            self.search_with::<{ Query::MAX_TERMS }>(algorithm, query, buffers, best);
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
        let Self { is_seeded, bounds, bulk, table, .. } = self;
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
        let mut floor = Floor::new(seed.max(best.threshold()), algorithm != Algorithm::Ranges);
        let docs = docs.start.0..last_doc.0;
        let window_docs = bulk::window_docs(essential_postings(terms, &floor), index.num_docs() as usize);
        match algorithm {
            Algorithm::Wand | Algorithm::Bmw => {
                let buffers = buffers.first_chunk_mut::<TERMS>().expect("a buffer for each cursor");
                let mut lists = terms.iter();
                let mut cursors = buffers.each_mut().map(|buffer| {
                    let list = lists.next().map_or(PostingList::EMPTY, |term| term.list);
                    Cursor::new(list, DocId(docs.start), buffer)
                });
                let run = if algorithm == Algorithm::Wand { wand::search } else { block_max_wand::search };
                run(terms, &mut cursors[..num_terms], last_doc, norms, &mut floor, best);
            }
            Algorithm::Maxscore => {
                bulk.reset(num_terms);
                max_score::search(terms, docs, window_docs, norms, bulk, &mut floor, best);
            }
            Algorithm::Bmm | Algorithm::Ranges => {
                bulk.reset(num_terms);
                table.fill(terms, docs, window_docs);
                let run = if algorithm == Algorithm::Bmm { block_max_max_score::search } else { ranges::search };
                run(terms, table, norms, bulk, &mut floor, best);
            }
            Algorithm::Exhaustive | Algorithm::Auto => unreachable!("{algorithm} is no pruned algorithm"),
        }
    }
}

/// Postings in the lists that are essential at this floor, by the bounds of whole lists.
fn essential_postings(terms: &[Term<'_>], floor: &Floor) -> usize {
    let mut sum = 0.0;
    // From the most frequent term on: those whose bounds together don't exceed the floor are not essential.
    let essential = terms.iter().rev().skip_while(|term| {
        sum += term.bound;
        sum <= floor.pruning()
    });
    essential.map(|term| term.list.doc_freq() as usize).sum()
}
