//! A forward position in a posting list, with the decoded data of its current block.
//!
//! Data is decoded for a whole block when first needed: documents when the cursor arrives, frequencies when a third one
//! is read, shares of scores when its postings are scanned.
//!
//! ```text
//! seek(900)      last documents  | ..127 | ..300 | ..655 | ..1203 | ..2001 |
//!                                    ^ here            gallop  ^ at least 900: decode, go on inside eight by eight
//! ```

use super::search::find_block;
use super::term::Term;
use crate::index::{BLOCK_LEN, Bm25};
use crate::search::cpu::scoring::block::score_block;
use crate::search::cpu::simd::{STEP, above, below};

/// The position past the last posting, above every document.
pub(crate) const END: u32 = i32::MAX as u32;
/// A block plus the numbers that one step may read beyond it.
const PADDED_LEN: usize = BLOCK_LEN + STEP;

/// A forward cursor over a list. Queries reuse its memory.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Cursor {
    /// Free places hold [`END`].
    docs: [u32; PADDED_LEN],
    freqs: [u32; PADDED_LEN],
    shares: [f32; PADDED_LEN],
    known: Decoded,
    /// The number of shares computed one by one.
    singles: u8,
    /// The decoded block, or [`NO_BLOCK`].
    block: usize,
    /// Lower bound of the first document past the block.
    next_doc: u32,
    /// The current posting of the block, 128 at its end.
    position: usize,
}

/// The decoded data of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decoded {
    Docs,
    Freqs,
    Shares,
}

const NO_BLOCK: usize = usize::MAX;
/// Up to this number shares are computed one by one. Then all frequencies are decoded.
const FEW_SINGLES: u8 = 2;

impl Default for Cursor {
    fn default() -> Self {
        Self {
            docs: [END; PADDED_LEN],
            freqs: [1; PADDED_LEN],
            shares: [0.0; PADDED_LEN],
            known: Decoded::Docs,
            singles: 0,
            block: NO_BLOCK,
            next_doc: 0,
            position: 0,
        }
    }
}

impl Cursor {
    pub(crate) fn reset(&mut self) {
        self.block = NO_BLOCK;
        self.next_doc = 0;
        self.position = BLOCK_LEN;
    }

    /// Moves forward to the first posting with a document of at least `target` and returns that document, or [`END`] if
    /// there is none.
    #[inline(always)]
    pub(crate) fn seek(&mut self, term: &Term<'_>, target: u32) -> u32 {
        if self.next_doc <= target {
            self.open(term, find_block(term.list.last_docs(), self.block.wrapping_add(1), target));
        }
        self.seek_inside(target)
    }

    /// Like [`seek`](Self::seek), but skips blocks with a bound of at most `needed` undecoded. Returns a lower bound of
    /// the next document in a better block. If it is below `limit`, the cursor is at that document.
    #[inline(always)]
    pub(crate) fn seek_above(&mut self, term: &Term<'_>, target: u32, limit: u32, needed: f32) -> u32 {
        if self.next_doc <= target {
            let block = find_block(term.list.last_docs(), self.block.wrapping_add(1), target);
            if !self.open_above(term, block, limit, needed) {
                return self.next_doc;
            }
        }
        self.seek_inside(target)
    }

    /// Opens the first block from `block` on with a bound above `needed`, if one begins below `limit`. Returns whether
    /// one does.
    #[inline(always)]
    fn open_above(&mut self, term: &Term<'_>, mut block: usize, limit: u32, needed: f32) -> bool {
        let last_docs = term.list.last_docs();
        while block < last_docs.len() && term.block_bound(block) <= needed {
            if last_docs[block] >= limit {
                // The cursor stays before the block, whose documents behind the limit are unknown.
                self.block = block.wrapping_sub(1);
                self.next_doc = limit;
                self.position = BLOCK_LEN;
                return false;
            }
            block += 1;
        }
        self.open(term, block);
        block < last_docs.len()
    }

    /// Moves to the first document of at least `target` in the decoded block. Returns it, or a lower bound of the next
    /// block's documents.
    #[inline(always)]
    fn seek_inside(&mut self, target: u32) -> u32 {
        loop {
            let Some(docs) = self.docs[self.position..].first_chunk::<STEP>() else { return END };
            let passed = below(docs, target).count_ones() as usize;
            self.position += passed;
            if passed < STEP {
                return self.least_doc();
            }
        }
    }

    /// Steps over the current posting and returns a lower bound of the next document.
    #[inline(always)]
    pub(crate) fn step(&mut self) -> u32 {
        self.position += 1;
        self.least_doc()
    }

    /// The current document, or at a block's end a lower bound of the next one.
    #[inline(always)]
    pub(crate) fn least_doc(&self) -> u32 {
        self.docs[self.position].min(self.next_doc)
    }

    #[inline(never)]
    fn open(&mut self, term: &Term<'_>, block: usize) {
        let last_docs = term.list.last_docs();
        self.block = block;
        self.position = 0;
        self.known = Decoded::Docs;
        self.singles = 0;
        let len = match self.docs.first_chunk_mut() {
            Some(docs) if block < last_docs.len() => term.list.decode_docs(block, docs),
            _ => 0,
        };
        self.docs[len..].fill(END);
        self.next_doc = if block + 1 < last_docs.len() { last_docs[block] + 1 } else { END };
    }

    #[inline(always)]
    pub(crate) fn share(&mut self, term: &Term<'_>, norms: &[f32]) -> f32 {
        if self.known == Decoded::Shares {
            return self.shares[self.position];
        }
        let freq = if self.known == Decoded::Docs && self.singles < FEW_SINGLES {
            self.singles += 1;
            term.list.freq_at(self.block, self.position)
        } else {
            self.decode_freqs(term);
            self.freqs[self.position]
        };
        Bm25::score(term.weight, freq, norms[self.docs[self.position] as usize])
    }

    fn decode_freqs(&mut self, term: &Term<'_>) {
        if self.known == Decoded::Docs
            && let Some(freqs) = self.freqs.first_chunk_mut()
        {
            term.list.decode_freqs(self.block, freqs);
            self.known = Decoded::Freqs;
        }
    }

    #[inline(always)]
    fn score(&mut self, term: &Term<'_>, norms: &[f32]) {
        if self.known != Decoded::Shares {
            self.score_all(term, norms);
        }
    }

    #[inline(never)]
    fn score_all(&mut self, term: &Term<'_>, norms: &[f32]) {
        self.decode_freqs(term);
        let len = term.list.block_len(self.block);
        score_block(&self.docs[..len], &self.freqs[..len], term.weight, norms, &mut self.shares[..len]);
        self.known = Decoded::Shares;
    }

    /// Document and share of the next posting from here on with a share above `needed` and a document below `limit`.
    /// The cursor moves behind it. On `None` the cursor is at or behind `limit`.
    #[inline(always)]
    pub(crate) fn next_above(
        &mut self,
        term: &Term<'_>,
        norms: &[f32],
        limit: u32,
        needed: f32,
        skips_blocks: bool,
    ) -> Option<(u32, f32)> {
        loop {
            self.score(term, norms);
            loop {
                let at = self.position;
                let (Some(docs), Some(shares)) =
                    (self.docs[at..].first_chunk::<STEP>(), self.shares[at..].first_chunk::<STEP>())
                else {
                    break;
                };
                let inside = below(docs, limit);
                let hits = inside & above(shares, needed);
                if hits != 0 {
                    let hit = at + hits.trailing_zeros() as usize;
                    self.position = hit + 1;
                    return Some((self.docs[hit], self.shares[hit]));
                }
                self.position += inside.count_ones() as usize;
                if inside.count_ones() < STEP as u32 {
                    break;
                }
            }
            if self.least_doc() >= limit {
                return None;
            }
            // The block ended before the limit.
            if !skips_blocks {
                self.open(term, self.block + 1);
            } else if !self.open_above(term, self.block + 1, limit, needed) {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::index::Index;
    use crate::search::cpu::blocks::term::ImpactBounds;

    proptest! {
        #[test]
        fn a_cursor_finds_what_a_walk_over_all_postings_finds(
            gaps in prop::collection::vec((1..60_u32, 1..5_u32), 1..700),
            steps in prop::collection::vec((0..900_u32, 0..5_u8), 1..60),
            needed in 0.0..2.5_f32,
        ) {
            let mut doc = 0;
            let postings: Vec<(u32, u32)> = gaps.iter().map(|&(gap, tf)| { doc += gap; (doc, tf) }).collect();
            let index = Index::from_lists(&[("a", postings.clone())]).unwrap();
            let norms = index.built_with().norms(index.doc_lengths(), index.average_length());
            let bounds = ImpactBounds::new(&index, index.built_with());
            let term = Term::new(index.list(index.term("a").unwrap()), 3.0, bounds);
            let share = |at: usize| Bm25::score(3.0, postings[at].1, norms[postings[at].0 as usize]);
            let mut cursor = Cursor::default();
            cursor.reset();
            let mut target = 0;
            for (ahead, what) in steps {
                target += ahead;
                let at = postings.partition_point(|posting| posting.0 < target);
                let limit = target + ahead / 2 + 1;
                if what < 3 {
                    let found = cursor.seek(&term, target);
                    prop_assert_eq!(found, postings.get(at).map_or(END, |posting| posting.0));
                    if found < END {
                        prop_assert_eq!(cursor.share(&term, &norms), share(at));
                    }
                    continue;
                }
                let skips_blocks = what == 4;
                let found = if skips_blocks {
                    cursor.seek_above(&term, target, limit, needed)
                } else {
                    cursor.seek(&term, target)
                };
                let mut hits = Vec::new();
                while found < limit && let Some(hit) = cursor.next_above(&term, &norms, limit, needed, skips_blocks) {
                    hits.push(hit);
                }
                let inside = (at..postings.len()).take_while(|&at| postings[at].0 < limit);
                let expected: Vec<(u32, f32)> =
                    inside.map(|at| (postings[at].0, share(at))).filter(|hit| hit.1 > needed).collect();
                prop_assert_eq!(hits, expected);
                prop_assert!(found >= limit || cursor.least_doc() >= limit);
                target = limit;
            }
        }
    }
}
