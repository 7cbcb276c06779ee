//! The blocks of a list one after another, decoded and scored as a whole, read window by window.

use tandem_base::base::ids::DocId;

use super::search::{find_block, first_geq};
use super::term::Term;
use crate::index::{BLOCK_LEN, PostingList};
use crate::search::cpu::scoring::accumulator::Accumulator;

#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(crate) struct ScoredBlock<S> {
    docs: [u32; BLOCK_LEN],
    shares: [S; BLOCK_LEN],
    block: usize,
    len: usize,
    /// The first posting that no window has read.
    position: usize,
}

impl<S: Accumulator> Default for ScoredBlock<S> {
    fn default() -> Self {
        Self { docs: [0; BLOCK_LEN], shares: [S::default(); BLOCK_LEN], block: 0, len: 0, position: 0 }
    }
}

impl<S: Accumulator> ScoredBlock<S> {
    /// The first document that no window has read, or [`DocId::END`] past the list's end.
    #[inline(always)]
    pub(crate) fn doc(&self) -> u32 {
        // Only at the list's end is the position past the last posting.
        if self.position < self.len { self.docs[self.position % BLOCK_LEN] } else { DocId::END.0 }
    }

    /// Opens the list at its first document of at least `start`.
    #[inline(always)]
    pub(crate) fn start(&mut self, term: &Term<'_>, start: u32, freqs: &mut [u32; BLOCK_LEN], norms: &[f32]) {
        let block = find_block(term.list.last_docs(), 0, start);
        self.open(block, term, freqs, norms);
        if self.doc() < start {
            self.position = first_geq(&self.docs, start);
            // A short list may have no such document.
            if self.docs[self.position] < start {
                self.position = self.len;
            }
        }
    }

    #[inline(always)]
    fn open(&mut self, block: usize, term: &Term<'_>, freqs: &mut [u32; BLOCK_LEN], norms: &[f32]) {
        let list: PostingList<'_> = term.list;
        (self.block, self.position) = (block, 0);
        if block >= list.num_blocks() {
            self.len = 0;
            return;
        }
        self.len = list.decode_docs(block, &mut self.docs);
        // Searching takes all 128 places in order; free places of the last block count as past the end.
        self.docs[self.len..].fill(DocId::END.0);
        list.decode_freqs(block, freqs);
        S::write_shares(&self.docs[..self.len], &freqs[..self.len], term.weight, norms, &mut self.shares[..self.len]);
    }

    /// Passes the unread documents of the block below `end`, at least one, and their shares to `visit`. Opens the next
    /// block after the last document.
    #[inline(always)]
    pub(crate) fn take_below<R>(
        &mut self,
        end: u32,
        term: &Term<'_>,
        freqs: &mut [u32; BLOCK_LEN],
        norms: &[f32],
        visit: impl FnOnce(&[u32], &[S]) -> R,
    ) -> R {
        let stop = if self.docs[self.len - 1] < end { self.len } else { first_geq(&self.docs, end) };
        let visited = self.position..stop;
        self.position = stop;
        let result = visit(&self.docs[visited.clone()], &self.shares[visited]);
        if self.position == self.len {
            self.open(self.block + 1, term, freqs, norms);
        }
        result
    }
}
