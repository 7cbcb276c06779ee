//! Block-max WAND: top-k disjunction, document at a time, that skips blocks unable to bring a document into the result.
//!
//! The pivot is found by the terms' bounds, as in [`wand`](super::wand). Before a posting is decoded, the bounds of the blocks in
//! which the pivot would lie are added: if they stay at or below the floor, no document up to the nearest of these blocks' ends
//! can enter, nor can one before the next cursor's document:
//!
//! ```text
//! rare     |##3.1##|  0.4  |  2.0  |      floor 3.5, pivot in the second blocks: 0.4 + 1.9 <= 3.5
//! common   |  2.2  |  1.9  |##4.0##|      one cursor jumps past the nearer of both blocks' ends
//! ```
//!
//! A term's block pointer for this is **shallow**: it moves over the blocks' last documents and decodes nothing, ahead of the
//! cursor's own block.
//!
//! Source: Ding and Suel, "Faster Top-k Document Retrieval Using Block-Max Indexes", SIGIR 2011.

use super::block_search::find_block;
use super::cursor::Cursor;
use super::floor::Floor;
use super::term::Term;
use super::wand::Order;
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
    let mut shallow = [Shallow::END; Query::MAX_TERMS];
    for (shallow, term) in shallow.iter_mut().zip(terms) {
        *shallow = Shallow::at(term, 0);
    }
    while let Some((pivot, doc)) = order.find_pivot(floor) {
        if doc >= end {
            return;
        }
        let stop = order.end_of(pivot, doc);
        let mut bound = 0.0;
        let mut target = order.doc_or_end(stop);
        for term in order.terms(stop) {
            let block = &mut shallow[term];
            block.move_to(&terms[term], doc);
            bound += block.bound;
            target = target.min(block.next_doc);
        }
        if bound <= floor.pruning() {
            // No document before the target can enter. The rarest list skips the most.
            let rarest = (0..stop).min_by_key(|&place| order.term(place)).unwrap_or(0);
            order.move_to(rarest, target, cursors);
        } else if order.doc(0) == doc {
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

/// A block of a list, known by its end and bound only.
#[derive(Clone, Copy, Debug)]
struct Shallow {
    block: usize,
    /// The first document past the block; [`DocId::END`] past the last block.
    next_doc: DocId,
    /// The best share that a document in the block can get; 0 past the last block.
    bound: f32,
}

impl Shallow {
    /// Past the last block.
    const END: Self = Self { block: usize::MAX, next_doc: DocId::END, bound: 0.0 };

    /// Block `block` of the term's list.
    #[inline]
    fn at(term: &Term<'_>, block: usize) -> Self {
        match term.list.last_docs().get(block) {
            Some(&last_doc) => Self { block, next_doc: DocId(last_doc + 1), bound: term.block_bound(block) },
            None => Self::END,
        }
    }

    /// Moves to the block in which `doc` would lie.
    #[inline]
    fn move_to(&mut self, term: &Term<'_>, doc: DocId) {
        if self.next_doc <= doc {
            *self = Self::at(term, find_block(term.list.last_docs(), self.block, doc.0));
        }
    }
}
