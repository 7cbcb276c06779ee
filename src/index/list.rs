//! Posting lists and their blocks.

use bytemuck::{Pod, Zeroable};

use super::codec::{packed_words, unpack_docs, unpack_freqs};
use super::{BLOCK_LEN, Probe};
use crate::ids::DocId;

/// Where a term's headers and payload are, and its statistics. 24 bytes, as stored.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct TermEntry {
    /// First word of the list's payload, in 32-bit words from the payload's start; a multiple of 4 when the
    /// list has a full block.
    pub payload_word: u64,
    /// The list's first header; the list has `doc_freq` / 128 headers, rounded up.
    pub first_block: u32,
    /// Documents that contain the term.
    pub doc_freq: u32,
    /// The largest `max_impact` of its blocks.
    pub max_impact: f32,
    /// Zero.
    pub reserved: u32,
}

/// What a search must know of a block before decoding it. 16 bytes, as stored and as the GPU reads it.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct BlockHeader {
    /// The last document in the block.
    pub last_doc: u32,
    /// Where the block's payload begins, in 32-bit words from the list's payload start.
    pub word_offset: u32,
    /// Bits of each packed gap minus one (document ids), 0 to 32.
    pub doc_bits: u8,
    /// Bits of each packed frequency minus one, 0 to 32.
    pub freq_bits: u8,
    /// Postings in the block minus one: 127 in a full block.
    pub len_minus_one: u8,
    /// Zero.
    pub reserved: u8,
    /// Upper bound of `tf / (tf + norm(document))` over the block, BM25 at the parameters the index was built
    /// with; a posting's score is that times the term's weight.
    pub max_impact: f32,
}

impl BlockHeader {
    /// Postings in the block.
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(self.len_minus_one) + 1
    }

    /// Never: a block holds at least one posting.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// 32-bit words that the packed gaps take; the frequencies follow.
    #[must_use]
    pub fn doc_words(&self) -> usize {
        packed_words(self.len(), self.doc_bits)
    }

    /// 32-bit words of the whole block.
    #[must_use]
    pub fn words(&self) -> usize {
        self.doc_words() + packed_words(self.len(), self.freq_bits)
    }
}

/// A term's postings, borrowed from an index.
///
/// A list of fewer than [`BLOCK_LEN`] postings is one block, whose last document isn't stored: its bound is above every
/// document, so that a search inside it may find nothing and must then go on to the list's end.
#[derive(Clone, Copy, Debug)]
pub struct PostingList<'a> {
    pub(super) doc_freq: u32,
    pub(super) max_impact: f32,
    pub(super) last_docs: &'a [u32],
    pub(super) headers: &'a [BlockHeader],
    pub(super) payload: &'a [u32],
}

/// What stands for the last document of a short list: above every document.
pub(super) const ANY_DOC: [u32; 1] = [DocId::END.0 - 1];

/// Decoded postings of one block: documents and frequencies, valid up to the block's length.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct BlockBuffer {
    /// Document ids, ascending.
    pub docs: [u32; BLOCK_LEN],
    /// Frequencies, at least 1.
    pub freqs: [u32; BLOCK_LEN],
}

impl Default for BlockBuffer {
    fn default() -> Self {
        Self { docs: [0; BLOCK_LEN], freqs: [0; BLOCK_LEN] }
    }
}

impl<'a> PostingList<'a> {
    /// The list without a posting.
    pub const EMPTY: Self = Self { doc_freq: 0, max_impact: 0.0, last_docs: &[], headers: &[], payload: &[] };

    /// Documents that contain the term.
    #[must_use]
    #[inline]
    pub fn doc_freq(&self) -> u32 {
        self.doc_freq
    }

    /// Upper bound of `tf / (tf + norm(document))` over the list; a posting's score is that times the term's weight.
    #[must_use]
    #[inline]
    pub fn max_impact(&self) -> f32 {
        self.max_impact
    }

    /// Blocks in the list; all but the last hold [`BLOCK_LEN`] postings.
    #[must_use]
    #[inline]
    pub fn num_blocks(&self) -> usize {
        self.last_docs.len()
    }

    /// Postings in block `block`.
    #[must_use]
    #[inline]
    pub fn block_len(&self, block: usize) -> usize {
        (self.doc_freq as usize - block * BLOCK_LEN).min(BLOCK_LEN)
    }

    /// The last document of block `block`, or, in a list of fewer than [`BLOCK_LEN`] postings, a number above it.
    ///
    /// # Panics
    /// If the list has no such block.
    #[must_use]
    #[inline]
    pub fn last_doc(&self, block: usize) -> u32 {
        self.last_docs[block]
    }

    /// [`last_doc`](Self::last_doc) of all blocks, ascending.
    #[must_use]
    #[inline]
    pub fn last_docs(&self) -> &'a [u32] {
        self.last_docs
    }

    /// Upper bound of `tf / (tf + norm(document))` over block `block`.
    ///
    /// # Panics
    /// If the list has no such block.
    #[must_use]
    #[inline]
    pub fn block_max_impact(&self, block: usize) -> f32 {
        self.headers[block].max_impact
    }

    /// A lower bound of the `k`-th best impact in the list, 0 where none is known: what seeds a threshold.
    #[must_use]
    #[inline]
    pub fn kth_impact(&self, _k: usize) -> f32 {
        0.0
    }

    /// The list's direct form, if it has one.
    #[must_use]
    #[inline]
    pub fn probe(&self) -> Option<Probe<'a>> {
        None
    }

    /// Decodes the documents of block `block` into `docs` and returns how many there are.
    ///
    /// # Panics
    /// If the list has no such block.
    #[inline]
    pub fn decode_docs(&self, block: usize, docs: &mut [u32; BLOCK_LEN]) -> usize {
        let header = &self.headers[block];
        let previous = block.checked_sub(1).map(|before| self.headers[before].last_doc);
        let start = header.word_offset as usize;
        let words = &self.payload[start..start + header.doc_words()];
        unpack_docs(previous, words, header.doc_bits, header.len(), docs);
        header.len()
    }

    /// Decodes the frequencies of block `block` into `freqs` and returns how many there are.
    ///
    /// # Panics
    /// If the list has no such block.
    #[inline]
    pub fn decode_freqs(&self, block: usize, freqs: &mut [u32; BLOCK_LEN]) -> usize {
        let header = &self.headers[block];
        let start = header.word_offset as usize;
        let words = &self.payload[start + header.doc_words()..start + header.words()];
        unpack_freqs(words, header.freq_bits, header.len(), freqs);
        header.len()
    }

    /// The frequency of posting `position` of block `block`, without decoding the others.
    ///
    /// # Panics
    /// If the list has no such posting.
    #[must_use]
    #[inline]
    pub fn freq_at(&self, block: usize, position: usize) -> u32 {
        let mut freqs = [0; BLOCK_LEN];
        self.decode_freqs(block, &mut freqs);
        freqs[position]
    }

    /// All postings as `(document, frequency)`, for tests and tools; searching decodes block by block.
    pub fn postings(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let mut buffer = BlockBuffer::default();
        (0..self.num_blocks()).flat_map(move |block| {
            let len = self.decode_docs(block, &mut buffer.docs);
            self.decode_freqs(block, &mut buffer.freqs);
            (0..len).map(|i| (buffer.docs[i], buffer.freqs[i])).collect::<Vec<_>>()
        })
    }
}
