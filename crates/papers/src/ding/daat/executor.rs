//! The CPU side of Ding et al.: exhaustive search, document at a time, in lists packed by PForDelta.

use std::sync::Arc;

use tandem_engine::index::Bm25;
use tandem_engine::query::{Query, QueryTerm};
use tandem_engine::search::{ExecError, Execution, Executor, Hit, TopK, check};
use tandem_model::base::ids::DocId;
use tandem_model::base::machine::Class;
use tandem_model::traffic::Mode;

use super::cursor::{Advance, Cursor};
use super::lists::CodedLists;

/// Searches coded lists on the caller's core. All terms of queries must have coded lists.
#[derive(Debug)]
pub(crate) struct DaatExecutor {
    lists: Arc<CodedLists>,
    best: TopK,
}

impl DaatExecutor {
    pub(crate) fn new(lists: Arc<CodedLists>) -> Self {
        Self { lists, best: TopK::default() }
    }
}

impl Executor for DaatExecutor {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        format!("one core, a document at a time, lists in {}", self.lists.codec())
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        check(query, k)?;
        hits.clear();
        if mode != Mode::Or {
            self.best.reset(k);
            intersect(&self.lists, &query.terms, &mut self.best);
            self.best.drain_into(hits);
        }
        if mode == Mode::Or || (mode == Mode::AndOr && hits.len() < k) {
            self.best.reset(k);
            unite(&self.lists, &query.terms, &mut self.best, share);
            self.best.drain_into(hits);
        }
        Ok(Execution::default())
    }
}

/// Offers all documents that all lists have, by forward seeks from the shortest list. Terms are in ascending order of their lists' lengths.
fn intersect(lists: &CodedLists, terms: &[QueryTerm], best: &mut TopK) {
    let mut cursors: Vec<Cursor<'_>> = terms.iter().map(|term| lists.cursor(term.term)).collect();
    let weights: Vec<f32> = terms.iter().map(|term| lists.weight(term)).collect();
    let Some((shortest, others)) = cursors.split_first_mut() else { return };
    let mut target = 0;
    loop {
        let doc = shortest.seek(target, Advance::BySkips);
        if doc == DocId::END.0 {
            return;
        }
        let beyond = others.iter_mut().map(|cursor| cursor.seek(doc, Advance::BySkips)).find(|&found| found > doc);
        if let Some(beyond) = beyond {
            target = beyond;
            continue;
        }
        let norm = lists.norm(doc);
        let mut score = share(shortest, weights[0], norm);
        for (cursor, &weight) in others.iter_mut().zip(&weights[1..]) {
            score += share(cursor, weight, norm);
        }
        best.offer(doc, score);
        target = doc + 1;
    }
}

/// Offers all documents that any list has. Terms are in the query's order. `share` returns the part of the score that a posting adds, by
/// cursor, weight and norm.
pub(crate) fn unite(
    lists: &CodedLists,
    terms: &[QueryTerm],
    best: &mut TopK,
    mut share: impl FnMut(&mut Cursor<'_>, f32, f32) -> f32,
) {
    let mut cursors: Vec<(Cursor<'_>, f32)> =
        terms.iter().map(|term| (lists.cursor(term.term), lists.weight(term))).collect();
    let mut docs: Vec<u32> = cursors.iter_mut().map(|(cursor, _)| cursor.seek(0, Advance::BlockByBlock)).collect();
    loop {
        // Queries have few terms, so that a linear search is faster than a heap.
        let doc = docs.iter().copied().min().unwrap_or(DocId::END.0);
        if doc == DocId::END.0 {
            return;
        }
        let norm = lists.norm(doc);
        let mut score = 0.0;
        for ((cursor, weight), at) in cursors.iter_mut().zip(&mut docs) {
            if *at == doc {
                score += share(cursor, *weight, norm);
                *at = cursor.seek(doc + 1, Advance::BlockByBlock);
            }
        }
        best.offer(doc, score);
    }
}

/// The BM25 score of a posting.
fn share(cursor: &mut Cursor<'_>, weight: f32, norm: f32) -> f32 {
    let place = cursor.place();
    Bm25::score(weight, cursor.freq(place), norm)
}
