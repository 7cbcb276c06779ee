//! WAND: top-k disjunction, document at a time, that skips by the terms' bounds.
//!
//! Cursors are kept in the order of their documents. Adding their terms' bounds in that order, the first document at which the
//! sum exceeds the floor is the **pivot**: no document before it can enter, since only the terms up to there could contribute.
//!
//! ```text
//!               bound   sum     floor 6.0
//! rare     @12    3.1    3.1
//! common   @47    1.9    5.0
//! medium   @90    4.0    9.0  > floor: the pivot is document 90
//! the      @91    0.3           rare and common jump to 90, one at a time, and the order is mended
//! ```
//!
//! When the first cursor stands at the pivot, the document is scored. Cursors that stand at one document are in the query's
//! order, so that shares are added in it.
//!
//! Source: Broder, Carmel, Herscovici, Soffer and Zien, "Efficient Query Evaluation using a Two-Level Retrieval Process",
//! CIKM 2003.

use super::cursor::Cursor;
use super::floor::Floor;
use super::term::Term;
use crate::exec::TopK;
use crate::ids::DocId;
use crate::index::Bm25;
use crate::query::Query;

/// Offers every document before `end` that can enter to `best`, in ascending order; terms and cursors are in the query's order.
pub(super) fn search(
    terms: &[Term<'_>],
    cursors: &mut [Cursor<'_>],
    end: DocId,
    norms: &[f32],
    floor: &mut Floor,
    best: &mut TopK,
) {
    let mut order = Order::new(terms, cursors);
    while let Some((pivot, doc)) = order.find_pivot(floor) {
        if doc >= end {
            return;
        }
        if order.doc(0) == doc {
            let stop = order.end_of(pivot, doc);
            let norm = norms[doc.index()];
            let score = order
                .terms(stop)
                .fold(0.0, |score, term| score + Bm25::score(terms[term].weight, cursors[term].freq(), norm));
            floor.offer(doc.0, score, best);
            order.advance_all(stop, cursors);
        } else {
            order.advance_one(pivot, doc, cursors);
        }
    }
}

/// The cursors in ascending order of their documents, those at one document in the query's order.
#[derive(Debug)]
pub(super) struct Order {
    /// Document and term in one number, the document above, so that one comparison orders both.
    keys: [u64; Query::MAX_TERMS],
    /// Cursors that are not at their lists' ends.
    len: usize,
    /// The terms' bounds, by term: close together, as finding the pivot reads nothing else.
    bounds: [f32; Query::MAX_TERMS],
}

const TERM_BITS: u32 = 8;

impl Order {
    /// The order of these terms' cursors.
    pub(super) fn new(terms: &[Term<'_>], cursors: &[Cursor<'_>]) -> Self {
        let mut order = Self { keys: [0; Query::MAX_TERMS], len: cursors.len(), bounds: [0.0; Query::MAX_TERMS] };
        for (bound, term) in order.bounds.iter_mut().zip(terms) {
            *bound = term.bound;
        }
        for (term, (key, cursor)) in order.keys.iter_mut().zip(cursors).enumerate() {
            *key = Self::key(cursor.doc(), term);
        }
        order.keys[..order.len].sort_unstable();
        order.drop_finished();
        order
    }

    fn key(doc: DocId, term: usize) -> u64 {
        u64::from(doc.0) << TERM_BITS | term as u64
    }

    /// The document of the cursor at `place`.
    #[inline]
    pub(super) fn doc(&self, place: usize) -> DocId {
        DocId((self.keys[place] >> TERM_BITS) as u32)
    }

    /// The document of the cursor at `place`; [`DocId::END`] if there is none.
    #[inline]
    pub(super) fn doc_or_end(&self, place: usize) -> DocId {
        if place < self.len { self.doc(place) } else { DocId::END }
    }

    /// The terms of the cursors before place `stop`.
    #[inline]
    pub(super) fn terms(&self, stop: usize) -> impl Iterator<Item = usize> + '_ {
        self.keys[..stop].iter().map(|key| (key & ((1 << TERM_BITS) - 1)) as usize)
    }

    /// The first place at which the sum of bounds exceeds the floor, and its document; `None` if no document is left
    /// that can enter.
    #[inline]
    pub(super) fn find_pivot(&self, floor: &Floor) -> Option<(usize, DocId)> {
        let mut sum = 0.0;
        for (place, term) in self.terms(self.len).enumerate() {
            sum += self.bounds[term % Query::MAX_TERMS];
            if sum > floor.pruning() {
                return Some((place, self.doc(place)));
            }
        }
        None
    }

    /// One past the last cursor that stands at `doc`, the document of the cursor at `pivot`.
    #[inline]
    pub(super) fn end_of(&self, pivot: usize, doc: DocId) -> usize {
        let mut stop = pivot + 1;
        while stop < self.len && self.doc(stop) == doc {
            stop += 1;
        }
        stop
    }

    /// Moves the cursors before place `stop` to their next documents.
    #[inline]
    pub(super) fn advance_all(&mut self, stop: usize, cursors: &mut [Cursor<'_>]) {
        for place in (0..stop).rev() {
            let term = self.term(place);
            self.settle(place, Self::key(cursors[term].next(), term));
        }
        self.drop_finished();
    }

    /// Moves one cursor that stands before `doc`, the pivot's, to it or past it: that of the rarest list, which skips the most.
    #[inline]
    pub(super) fn advance_one(&mut self, pivot: usize, doc: DocId, cursors: &mut [Cursor<'_>]) {
        let mut chosen = 0;
        let mut place = 1;
        while place < pivot && self.doc(place) < doc {
            if self.term(place) < self.term(chosen) {
                chosen = place;
            }
            place += 1;
        }
        self.move_to(chosen, doc, cursors);
    }

    /// Moves the cursor at `place` to the first document of at least `target`.
    #[inline]
    pub(super) fn move_to(&mut self, place: usize, target: DocId, cursors: &mut [Cursor<'_>]) {
        let term = self.term(place);
        self.settle(place, Self::key(cursors[term].next_geq(target), term));
        self.drop_finished();
    }

    /// The term of the cursor at `place`.
    #[inline]
    pub(super) fn term(&self, place: usize) -> usize {
        (self.keys[place] & ((1 << TERM_BITS) - 1)) as usize
    }

    /// Gives the cursor at `place` a greater key and moves it to where that belongs.
    #[inline]
    fn settle(&mut self, mut place: usize, key: u64) {
        while place + 1 < self.len && self.keys[place + 1] < key {
            self.keys[place] = self.keys[place + 1];
            place += 1;
        }
        self.keys[place] = key;
    }

    /// Cursors at their lists' ends are last in order: forgets them.
    #[inline]
    fn drop_finished(&mut self) {
        while self.len > 0 && self.doc(self.len - 1) == DocId::END {
            self.len -= 1;
        }
    }
}
