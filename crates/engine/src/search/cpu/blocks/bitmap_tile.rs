//! Dense lists, a word of documents at a time, without decoding documents, gathering norms or scattering.
//!
//! A dense list has a bit for each document ([`Probe::words`]) in document order, like norms and sums. Only frequencies
//! are packed, one per posting. They are **expanded** to the places of their documents; the rest is a plain loop over
//! documents, in vectors:
//!
//! ```text
//! bits           1  0  1  1  0  0  1  0        a byte of the list's bits
//! frequencies    3  1  6  2                    the next four, a byte each
//! expanded       3  0  1  6  0  0  2  0        one shuffle, by a table with a row for each byte of bits
//! norms          n0 n1 n2 n3 n4 n5 n6 n7       loaded in place
//! sums          += weight * expanded / (expanded + norm)
//! ```
//!
//! An absent document adds 0, which changes no sum's bits. Eight documents, present or absent, take little more than
//! one vector division (5 cycles), as long as a single posting takes otherwise. So lists with a sixth of all documents,
//! the least with this form, gain, and nearly full lists gain sevenfold. They hold four in five postings of query logs.
//!
//! Documents are taken in tiles, so that frequencies, norms and sums of a tile stay in the L1 cache over all lists.

use std::ops::Range;

use crate::index::Probe;
use crate::search::cpu::scoring::accumulator::Accumulator;
use crate::search::cpu::simd::{Avx2, WORD_DOCS, WORD_FREQS};

/// Documents per tile. Their norms, sums and frequencies take 9 KiB of the L1 cache.
pub(crate) const TILE_DOCS: usize = 1024;
pub(crate) const TILE_WORDS: usize = TILE_DOCS / WORD_DOCS;

/// Consecutive documents, of at most [`TILE_WORDS`] words of bits.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    docs: Range<u32>,
}

pub(crate) type TileRoom = [u8; TILE_DOCS + WORD_FREQS];

impl Tile {
    /// The documents from `start`, which must be below `end`, to the end of its tile or `end`.
    pub(crate) fn new(start: u32, end: u32) -> Self {
        let tile_end = (start - start % WORD_DOCS as u32).saturating_add(TILE_DOCS as u32);
        Self { docs: start..end.min(tile_end) }
    }

    pub(crate) fn end(&self) -> u32 {
        self.docs.end
    }

    /// The document of the first bit, which may precede the tile's first document.
    pub(crate) fn first_doc(&self) -> u32 {
        self.docs.start - self.docs.start % WORD_DOCS as u32
    }

    pub(crate) fn num_words(&self) -> usize {
        ((self.docs.end - self.first_doc()) as usize).div_ceil(WORD_DOCS)
    }

    /// The tile's part of a list's bits, 0 past its last word.
    #[inline(always)]
    pub(crate) fn bits_of(&self, list: &[u64]) -> [u64; TILE_WORDS] {
        let (first, words) = (self.first_doc() as usize / WORD_DOCS, self.num_words());
        let mut bits = [0; TILE_WORDS];
        for (bits, &word) in bits.iter_mut().zip(&list[first..first + words]) {
            *bits = word;
        }
        bits[0] &= u64::MAX << (self.docs.start % WORD_DOCS as u32);
        bits[words - 1] &= u64::MAX >> (WORD_DOCS as u32 - 1 - (self.docs.end - 1) % WORD_DOCS as u32);
        bits
    }

    /// The norms of the documents of word `word`, unspecified past the last document of the collection.
    #[inline(always)]
    pub(crate) fn norms<'n>(
        &self,
        word: usize,
        norms: &'n [f32],
        room: &'n mut [f32; WORD_DOCS],
    ) -> &'n [f32; WORD_DOCS] {
        let norms = &norms[self.first_doc() as usize + word * WORD_DOCS..];
        norms.first_chunk().unwrap_or_else(move || {
            room[..norms.len()].copy_from_slice(norms);
            room
        })
    }

    /// Adds the shares of a list's postings in the tile to the sums of its words. Documents past the tile get nothing.
    #[inline(always)]
    pub(crate) fn add<S: Accumulator>(
        &self,
        avx2: Option<Avx2>,
        probe: &Probe<'_>,
        weight: f32,
        norms: &[f32],
        room: &mut TileRoom,
        sums: &mut [[S; WORD_DOCS]],
    ) {
        let mut postings = TilePostings::new(self, probe, room);
        postings.add_large(self, weight, norms, sums);
        let factor = S::factor(weight);
        let mut norms_room = [0.0; WORD_DOCS];
        for (word, sums) in sums[..self.num_words()].iter_mut().enumerate() {
            let norms = self.norms(word, norms, &mut norms_room);
            postings.add_word(avx2, word, factor, norms, sums);
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TilePostings<'a> {
    /// Bits of the documents, from the tile's first one on.
    bits: [u64; TILE_WORDS],
    first: usize,
    count: usize,
    freqs: &'a [u8],
    probe: &'a Probe<'a>,
    /// The number of postings added so far.
    next: usize,
}

impl<'a> TilePostings<'a> {
    #[inline(always)]
    pub(crate) fn new(tile: &Tile, probe: &'a Probe<'a>, room: &'a mut TileRoom) -> Self {
        let bits = tile.bits_of(probe.words());
        let count = bits.iter().map(|word| word.count_ones() as usize).sum();
        let first = probe.rank(tile.docs.start);
        Self { bits, first, count, freqs: probe.freqs(first, count, room), probe, next: 0 }
    }

    /// Adds the shares of the postings of word `word`, except large ones. Words must be taken in order.
    #[inline(always)]
    pub(crate) fn add_word<S: Accumulator>(
        &mut self,
        avx2: Option<Avx2>,
        word: usize,
        factor: S,
        norms: &[f32; WORD_DOCS],
        sums: &mut [S; WORD_DOCS],
    ) {
        let bits = self.bits[word];
        // Only a damaged index has more bits than frequencies.
        if let Some(freqs) = self.freqs.get(self.next..).and_then(|freqs| freqs.first_chunk()) {
            S::add_word(avx2, bits, freqs, factor, norms, sums);
        }
        self.next += bits.count_ones() as usize;
    }

    #[inline(always)]
    pub(crate) fn pass_word(&mut self, word: usize) {
        self.next += self.bits[word].count_ones() as usize;
    }

    /// Adds the shares of the few postings whose frequencies are too large for a byte.
    #[inline(always)]
    pub(crate) fn add_large<S: Accumulator>(
        &self,
        tile: &Tile,
        weight: f32,
        norms: &[f32],
        sums: &mut [[S; WORD_DOCS]],
    ) {
        // The current word, and the number of postings before it.
        let (mut word, mut before) = (0, self.first);
        for (posting, freq) in self.probe.large(self.first, self.count) {
            while before + self.bits[word].count_ones() as usize <= posting {
                before += self.bits[word].count_ones() as usize;
                word += 1;
            }
            let bits = (before..posting).fold(self.bits[word], |bits, _| bits & (bits - 1));
            let place = bits.trailing_zeros() as usize % WORD_DOCS;
            let doc = tile.first_doc() as usize + word * WORD_DOCS + place;
            sums[word][place] += S::share(weight, freq, norms[doc]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_hold_the_bits_of_their_documents() {
        let list = [u64::MAX; 40];
        for (start, end) in [(0, 1), (0, 64), (63, 65), (100, 1200), (1000, 2100), (5, 2560), (1024, 2048)] {
            let mut next = start;
            while next < end {
                let tile = Tile::new(next, end);
                let bits = tile.bits_of(&list);
                for doc in next..tile.end() {
                    let place = (doc - tile.first_doc()) as usize;
                    assert!(bits[place / WORD_DOCS] >> (place % WORD_DOCS) & 1 == 1, "{start} {end} {doc}");
                }
                assert_eq!(bits.iter().map(|word| word.count_ones()).sum::<u32>(), tile.end() - next);
                assert!(tile.end() > next && tile.num_words() <= TILE_WORDS);
                next = tile.end();
            }
        }
    }
}
