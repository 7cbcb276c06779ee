//! Posting lists in NewPFD blocks of 64, each with its least and greatest document and its best score.
//!
//! The words of a block begin at its `offset` among those of the list:
//!
//! | word | meaning |
//! | --- | --- |
//! | 0 | words `w` that the documents take |
//! | 1 .. | NewPFD of the documents: 0 for the least one, then gaps minus 1 |
//! | 1 + `w` .. | NewPFD of the frequencies minus 1 |
//!
//! The documents of a block are sums from its least one, so that blocks are decoded independently.

use bytemuck::{Pod, Zeroable};
use tandem_engine::index::Bm25;

use crate::codec::{CodecError, decode_new_pfd, encode_new_pfd};

/// Postings per block; the last block of a list may have fewer.
pub(crate) const RANGE_BLOCK_LEN: usize = 64;

/// Properties of an encoded block: `RangeBlock` in kernels/huang/huang.cuh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RangeBlock {
    pub(crate) least: u32,
    pub(crate) greatest: u32,
    /// Place of its words among those of the list.
    pub(crate) offset: u32,
    /// Upper bound of a posting's score over the term's weight, in single precision.
    pub(crate) max_impact: f32,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct RangeList {
    pub(crate) doc_freq: u32,
    /// Largest `max_impact` of its blocks.
    pub(crate) max_impact: f32,
    /// Blocks, all of 64 postings but the last.
    pub(crate) blocks: Vec<RangeBlock>,
    pub(crate) words: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct Decoded {
    pub(crate) docs: [u32; RANGE_BLOCK_LEN],
    /// Frequencies, if they were decoded.
    pub(crate) freqs: [u32; RANGE_BLOCK_LEN],
    pub(crate) len: usize,
}

impl Default for Decoded {
    fn default() -> Self {
        Self { docs: [0; RANGE_BLOCK_LEN], freqs: [0; RANGE_BLOCK_LEN], len: 0 }
    }
}

impl RangeList {
    /// Encodes postings: ascending documents, and frequencies of at least 1. `norm` returns BM25's norm of a document.
    /// Panics if their numbers differ.
    pub(crate) fn encode(docs: &[u32], freqs: &[u32], norm: impl Fn(u32) -> f32) -> Self {
        assert_eq!(docs.len(), freqs.len(), "a frequency for each document");
        let mut list = Self { doc_freq: docs.len() as u32, ..Self::default() };
        let mut numbers = Vec::with_capacity(RANGE_BLOCK_LEN);
        for (docs, freqs) in docs.chunks(RANGE_BLOCK_LEN).zip(freqs.chunks(RANGE_BLOCK_LEN)) {
            let offset = list.words.len();
            let max_impact = Bm25::max_impact(docs.iter().zip(freqs).map(|(&doc, &freq)| (freq, norm(doc))));
            let (least, greatest) = (docs[0], docs[docs.len() - 1]);
            list.blocks.push(RangeBlock { least, greatest, offset: offset as u32, max_impact });
            list.max_impact = list.max_impact.max(max_impact);
            list.words.push(0);
            numbers.clear();
            numbers.push(0);
            numbers.extend(docs.windows(2).map(|pair| pair[1] - pair[0] - 1));
            encode_new_pfd(&numbers, &mut list.words);
            list.words[offset] = (list.words.len() - offset - 1) as u32;
            numbers.clear();
            numbers.extend(freqs.iter().map(|freq| freq - 1));
            encode_new_pfd(&numbers, &mut list.words);
        }
        list
    }

    /// Returns the number of postings of a block.
    #[inline]
    pub(crate) fn block_len(&self, block: usize) -> usize {
        (self.doc_freq as usize - block * RANGE_BLOCK_LEN).min(RANGE_BLOCK_LEN)
    }

    /// Returns the bytes of its blocks' heads and words.
    pub(crate) fn bytes(&self) -> u64 {
        (size_of_val(self.blocks.as_slice()) + size_of_val(self.words.as_slice())) as u64
    }

    #[inline]
    pub(crate) fn decode_docs(&self, block: usize, decoded: &mut Decoded) -> Result<(), CodecError> {
        let RangeBlock { least, offset, .. } = self.blocks[block];
        decoded.len = self.block_len(block);
        let docs = &mut decoded.docs[..decoded.len];
        decode_new_pfd(&self.words[offset as usize + 1..], docs)?;
        let mut doc = least;
        docs[0] = doc;
        for number in &mut docs[1..] {
            doc = doc.wrapping_add(*number).wrapping_add(1);
            *number = doc;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn decode_freqs(&self, block: usize, decoded: &mut Decoded) -> Result<(), CodecError> {
        let offset = self.blocks[block].offset as usize;
        let start = offset + 1 + self.words[offset] as usize;
        let freqs = &mut decoded.freqs[..self.block_len(block)];
        decode_new_pfd(&self.words[start..], freqs)?;
        freqs.iter_mut().for_each(|freq| *freq = freq.wrapping_add(1));
        Ok(())
    }
}
