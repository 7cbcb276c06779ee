//! Block-max WAND: top-k disjunction, document at a time, that skips blocks unable to bring a document into the result.
//!
//! Pivots are found and settled as in `wand.rs`, by the bounds of whole lists. The bounds of blocks are used before
//! anything is decoded:
//!
//! - A block of the leading list is skipped if its bound and the others' bounds do not exceed the threshold.
//! - A document of the lead is looked up in the other lists only if the bounds of their blocks allow it to enter.
//! - Without a lead, if the bounds of the blocks around the pivot do not exceed the threshold, no document up to the
//!   nearest end of these blocks can enter:
//!
//! ```text
//! rare     |##3.1##|  0.4  |  2.0  |      threshold 3.5, pivot in the second blocks: 0.4 + 1.9 <= 3.5
//! common   |  2.2  |  1.9  |##4.0##|      all members move past the nearer end of both blocks
//! ```
//!
//! The block pointer of a term is **shallow**: it moves ahead of the cursor over the last documents of blocks and
//! decodes nothing. A member that moves past a block's end keeps its cursor; only the lower bound of its next document
//! rises.
//!
//! Source: Ding and Suel, "Faster Top-k Document Retrieval Using Block-Max Indexes", SIGIR 2011.

use super::pivot::{Pivot, bound_of_sum};
use super::wand::{BlockBounds, PivotSearch, set_bits};
use crate::search::cpu::blocks::cursor::END;
use crate::search::cpu::blocks::search::find_block;
use crate::search::cpu::blocks::term::Term;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShallowBlock {
    block: u32,
    /// Upper bound of a share in the block, 0 past the last block.
    bound: f32,
    /// First document past the block, or [`END`] past the last block.
    pub(crate) next_doc: u32,
}

impl ShallowBlock {
    /// Moves to the block for `doc`, which must not decrease between calls, and returns its bound.
    #[inline(always)]
    pub(crate) fn bound_at(&mut self, term: &Term<'_>, doc: u32) -> f32 {
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
