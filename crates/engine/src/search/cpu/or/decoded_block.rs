//! A window of documents, and the block of a list that was decoded last in it.

use std::ops::Range;

use tandem_base::base::ids::DocId;

use super::candidates::WindowCandidates;
use crate::index::{BLOCK_LEN, BlockBuffer, Bm25, PostingList};
use crate::search::cpu::blocks::search::{find_block, first_geq};
use crate::search::cpu::blocks::term::{SearchScope, Term};
use crate::search::cpu::scoring::block::score_block;

/// Up to this number of candidates per block are looked up one by one. More are looked up without an unpredictable
/// branch.
const FEW_CANDIDATES: usize = 3;

#[derive(Clone, Copy)]
pub(crate) struct Window<'a> {
    /// The query, with the documents of the window: at most [`window_docs`](super::scorer::window_docs).
    pub(crate) scope: SearchScope<'a>,
    /// Upper bound of each term's share, 0 if the list has no posting inside.
    pub(crate) bounds: &'a [f32],
    /// The first block of each list with a last document of at least `start`.
    pub(crate) first_blocks: &'a [u32],
    /// Documents with a term before this one were settled by an earlier pass and are skipped.
    pub(crate) first_term: usize,
    /// Terms from here on are looked up, even if they are essential.
    pub(crate) end_of_essential: usize,
}

#[derive(Debug)]
pub(crate) struct DecodedBlock {
    pub(crate) buffer: BlockBuffer,
    /// The block's number, or [`NO_BLOCK`].
    block: usize,
    len: usize,
    has_freqs: bool,
    /// The postings' shares of scores, if `has_shares`.
    pub(crate) shares: [f32; BLOCK_LEN],
    has_shares: bool,
}

const NO_BLOCK: usize = usize::MAX;

impl Default for DecodedBlock {
    fn default() -> Self {
        Self {
            buffer: BlockBuffer::default(),
            block: NO_BLOCK,
            len: 0,
            has_freqs: false,
            shares: [0.0; BLOCK_LEN],
            has_shares: false,
        }
    }
}

impl DecodedBlock {
    pub(crate) fn reset(&mut self) {
        self.block = NO_BLOCK;
    }

    /// Decodes and scores the next block from `block` on that has postings inside the window and a bound above
    /// `needed`. Returns the range of these postings, or `None`. `block` moves past the block.
    #[inline(always)]
    pub(crate) fn next_run(
        &mut self,
        term: &Term<'_>,
        SearchScope { start, end, norms, .. }: SearchScope<'_>,
        needed: f32,
        block: &mut usize,
    ) -> Option<Range<usize>> {
        let last_docs = term.list.last_docs();
        while let Some(&last_doc) = last_docs.get(*block) {
            let current = *block;
            // The next block begins past this one's end and may be outside the window.
            *block = if last_doc < end - 1 { current + 1 } else { usize::MAX };
            if term.block_bound(current) <= needed {
                continue;
            }
            self.decode(&term.list, current);
            let docs = &self.buffer.docs;
            let begin = if docs[0] < start { first_geq(docs, start) } else { 0 };
            let stop = if last_doc < end { self.len } else { first_geq(docs, end).min(self.len) };
            if begin < stop {
                self.score(term, norms);
                return Some(begin..stop);
            }
        }
        None
    }

    /// Adds the share of a non-essential term to all candidates, block by block from `first_block` on, and keeps those
    /// with a sum above `needed`.
    #[inline(always)]
    pub(crate) fn look_up<const MOST: usize>(
        &mut self,
        term: &Term<'_>,
        first_block: u32,
        norms: &[f32],
        candidates: &mut WindowCandidates<MOST>,
        needed: f32,
    ) {
        let last_docs = term.list.last_docs();
        let (mut next, mut kept) = (0, 0);
        let mut block = first_block as usize;
        while let Some(&doc) = candidates.docs().get(next) {
            block = find_block(last_docs, block, doc);
            let last_doc = last_docs.get(block).copied().unwrap_or(u32::MAX);
            let behind = next + candidates.docs()[next..].partition_point(|&doc| doc <= last_doc);
            // A candidate in this block needs `needed - bound` to be lifted above `needed`.
            let bound = if block < last_docs.len() { term.block_bound(block) } else { 0.0 };
            let alive = kept..candidates.sieve_as_they_are(next..behind, kept, needed - bound);
            next = behind;
            if alive.is_empty() || block == last_docs.len() {
                kept = alive.end;
                continue;
            }
            self.decode(&term.list, block);
            if alive.len() <= FEW_CANDIDATES {
                // Most are not in the list, so few frequencies are needed.
                for (doc, share) in candidates.shares_mut(alive.clone()) {
                    let position = first_geq(&self.buffer.docs, doc);
                    *share = if self.buffer.docs[position] == doc {
                        Bm25::score(term.weight, term.list.freq_at(block, position), norms[doc as usize])
                    } else {
                        0.0
                    };
                }
            } else {
                self.decode_freqs(&term.list);
                for (doc, share) in candidates.shares_mut(alive.clone()) {
                    let position = first_geq(&self.buffer.docs, doc);
                    let freq = if self.buffer.docs[position] == doc { self.buffer.freqs[position] } else { 0 };
                    *share = share_or_zero(term.weight, freq, norms[doc as usize]);
                }
            }
            kept = candidates.sieve(alive, kept, needed);
        }
        candidates.truncate(kept);
    }

    #[inline(always)]
    pub(crate) fn contains(&mut self, term: &Term<'_>, doc: u32) -> bool {
        if let Some(probe) = term.probe {
            return probe.contains(doc);
        }
        let last_docs = term.list.last_docs();
        // Documents tend to ascend.
        let is_ahead = |block: usize| last_docs.get(block.wrapping_sub(1)).is_some_and(|&before| before < doc);
        let block = find_block(last_docs, if is_ahead(self.block) { self.block } else { 0 }, doc);
        if block == last_docs.len() {
            return false;
        }
        self.decode(&term.list, block);
        self.buffer.docs[first_geq(&self.buffer.docs, doc)] == doc
    }

    #[inline(always)]
    fn decode(&mut self, list: &PostingList<'_>, block: usize) {
        if self.block != block {
            self.len = list.decode_docs(block, &mut self.buffer.docs);
            // Searching takes all 128 places in order; free places of the last block count as past the end.
            self.buffer.docs[self.len..].fill(DocId::END.0);
            self.block = block;
            self.has_freqs = false;
            self.has_shares = false;
        }
    }

    #[inline(always)]
    fn score(&mut self, term: &Term<'_>, norms: &[f32]) {
        if !self.has_shares {
            self.decode_freqs(&term.list);
            let (docs, freqs) = (&self.buffer.docs[..self.len], &self.buffer.freqs[..self.len]);
            score_block(docs, freqs, term.weight, norms, &mut self.shares[..self.len]);
            self.has_shares = true;
        }
    }

    #[inline(always)]
    fn decode_freqs(&mut self, list: &PostingList<'_>) {
        if !self.has_freqs {
            list.decode_freqs(self.block, &mut self.buffer.freqs);
            self.has_freqs = true;
        }
    }
}

/// A posting's share, or 0 for a frequency of 0, which means no posting.
#[inline(always)]
pub(crate) fn share_or_zero(weight: f32, freq: u32, norm: f32) -> f32 {
    // A norm of 0 would give 0 / 0. The least positive number changes no other quotient, because adding it to 1 or more
    // has no effect.
    Bm25::score(weight, freq, norm.max(f32::MIN_POSITIVE))
}
