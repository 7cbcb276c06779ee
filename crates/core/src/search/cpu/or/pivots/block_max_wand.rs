//! Block-max WAND: top-k disjunction, document at a time, that skips blocks unable to bring a document into the result.
//!
//! Pivots are found and settled as in `wand.rs`, by the bounds of whole lists. The bounds of blocks come in
//! before anything is decoded:
//!
//! - a block of the leading list is passed over where its own bound and the others' don't exceed the threshold;
//! - a document that the lead's share leaves a chance is looked up in the others only if the bounds of their blocks,
//!   too, leave it one;
//! - where no member leads, and the bounds of the blocks around the pivot don't exceed the threshold, no document up to
//!   the nearest of these blocks' ends can enter:
//!
//! ```text
//! rare     |##3.1##|  0.4  |  2.0  |      threshold 3.5, pivot in the second blocks: 0.4 + 1.9 <= 3.5
//! common   |  2.2  |  1.9  |##4.0##|      all members go past the nearer of both blocks' ends
//! ```
//!
//! A term's block pointer for this is **shallow**: it moves over the blocks' last documents and decodes nothing,
//! ahead of the cursor's own block. A member that goes past a block's end doesn't move its cursor: its next
//! posting is just not below.
//!
//! Source: Ding and Suel, "Faster Top-k Document Retrieval Using Block-Max Indexes", SIGIR 2011.

use super::pivot::{Pivot, bound_of_sum};
use super::wand::{BlockBounds, PivotSearch, set_bits};
use crate::search::cpu::blocks::{END, Term, find_block};

/// The block of a list in which a document would lie.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ShallowBlock {
    block: u32,
    /// The best share that a document in the block can get; 0 past the last block.
    bound: f32,
    /// The first document past the block; [`END`] past the last block.
    pub(super) next_doc: u32,
}

impl ShallowBlock {
    /// Moves to the block for `doc`, which is not below the last one asked for; tells its bound.
    #[inline(always)]
    pub(super) fn bound_at(&mut self, term: &Term<'_>, doc: u32) -> f32 {
        if self.next_doc <= doc {
            let last_docs = term.list.last_docs();
            let block = find_block(last_docs, self.block as usize, doc);
            self.block = block as u32;
            self.bound = if block < last_docs.len() { term.block_bound(block) } else { 0.0 };
            self.next_doc = if block + 1 < last_docs.len() { last_docs[block] + 1 } else { END };
        }
        self.bound
    }
}

/// Those of all lists.
#[derive(Debug)]
pub(crate) struct ShallowBlocks<const N: usize>([ShallowBlock; N]);

impl<const N: usize> Default for ShallowBlocks<N> {
    fn default() -> Self {
        Self([ShallowBlock::default(); N])
    }
}

impl<const N: usize> BlockBounds<N> for ShallowBlocks<N> {
    const ARE_USED: bool = true;

    #[inline(always)]
    fn bound(&mut self, lane: usize, term: &Term<'_>, doc: u32) -> f32 {
        self.0[lane].bound_at(term, doc)
    }

    #[inline(always)]
    fn settle(search: &mut PivotSearch<'_, N, Self>, mut pivot: Pivot) {
        let mut bounds = [0.0; N];
        let mut sum = 0.0;
        for lane in set_bits(pivot.members) {
            bounds[lane] = search.blocks.bound(lane, &search.terms[lane], pivot.doc);
            sum += bounds[lane];
            pivot.limit = pivot.limit.min(search.blocks.0[lane].next_doc);
        }
        pivot.sum = bound_of_sum(sum);
        if pivot.sum > search.threshold.pruning() {
            match pivot.required(&bounds, search.threshold.pruning()) {
                Some(lead) => search.settle_run(lead, &pivot, &bounds),
                None => {
                    search.settle_pivot(&pivot, &bounds);
                    pivot.limit = pivot.doc + 1;
                }
            }
        }
        search.positions.lift(pivot.members, pivot.limit);
    }
}
