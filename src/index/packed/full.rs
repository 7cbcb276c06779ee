//! Full blocks: 128 postings in **rows** of 16 bytes.
//!
//! Gaps minus one and frequencies minus one are packed in four vertical lanes by [`BitPacker4x`]: value *i* is in lane
//! *i* mod 4 of the rows, at bit `(i / 4) * width` of that lane's stream of words; so a width of *w* takes *w* rows.
//! Where documents are so dense that it is shorter, bit *j* of the documents' rows stands for document `base + 1 + j`
//! instead. Frequencies follow the documents; exceptions lie elsewhere, see [`Code`].
//! Source: Lemire and Boytsov, "Decoding billions of integers per second through vectorization", 2015.

use bitpacking::{BitPacker, BitPacker4x};

use super::bits::{BitWriter, low_mask};
use super::patch::Code;
use crate::index::BLOCK_LEN;
use crate::index::codec::{sum_gaps, unpack, unpack_docs, unpack_freqs};

/// 32-bit words of a row.
pub(in crate::index) const ROW_WORDS: usize = 4;
/// Documents of a row of a bitset.
const ROW_DOCS: u32 = 128;
/// Bits that exceptions must save to pay for the time to add them, which among documents takes a second pass.
const LEAST_SAVING_DOCS: usize = 40;
const LEAST_SAVING_FREQS: usize = 24;
/// Bits that a bitset must save: it is slower to decode than packed gaps.
const LEAST_SAVING_BITSET: usize = 64;

/// Where a full block's parts are.
#[derive(Clone, Copy, Debug)]
pub(in crate::index) struct FullBlock<'a> {
    /// The last document of the block before; `u32::MAX` before the first.
    pub(in crate::index) base: u32,
    pub(in crate::index) last_doc: u32,
    pub(in crate::index) doc_code: Code,
    pub(in crate::index) freq_code: Code,
    /// From the block's first row on.
    pub(in crate::index) words: &'a [u32],
    /// From the block's exceptions on: those of the documents, then those of the frequencies.
    pub(in crate::index) exceptions: &'a [u8],
}

/// Rows of the documents of a block of the given range.
#[inline]
pub(in crate::index) fn doc_rows(code: Code, base: u32, last_doc: u32) -> usize {
    if code == Code::BITSET { last_doc.wrapping_sub(base).div_ceil(ROW_DOCS) as usize } else { code.width() as usize }
}

/// Appends a block to `rows` and its exceptions to `exceptions`; returns the codes of documents and frequencies.
pub(in crate::index) fn encode(
    base: u32,
    docs: &[u32; BLOCK_LEN],
    freqs: &[u32; BLOCK_LEN],
    rows: &mut Vec<u32>,
    exceptions: &mut Vec<u8>,
) -> (Code, Code) {
    let mut values = [0; BLOCK_LEN];
    values[0] = docs[0].wrapping_sub(base).wrapping_sub(1);
    for (value, pair) in values[1..].iter_mut().zip(docs.windows(2)) {
        *value = pair[1] - pair[0] - 1;
    }
    let (mut doc_code, doc_bits) = Code::choose(&values, LEAST_SAVING_DOCS);
    let last_doc = docs[BLOCK_LEN - 1];
    let bitset_rows = doc_rows(Code::BITSET, base, last_doc);
    if bitset_rows * BLOCK_LEN + LEAST_SAVING_BITSET <= doc_bits {
        doc_code = Code::BITSET;
        let words = grow(rows, bitset_rows);
        for doc in docs {
            let bit = doc.wrapping_sub(base).wrapping_sub(1);
            words[bit as usize / 32] |= 1 << (bit % 32);
        }
    } else {
        pack(&values, doc_code, rows);
    }
    let mut writer = BitWriter::new(exceptions);
    doc_code.write_exceptions(&values, &mut writer);

    for (value, &freq) in values.iter_mut().zip(freqs) {
        *value = freq.wrapping_sub(1);
    }
    let (freq_code, _) = Code::choose(&values, LEAST_SAVING_FREQS);
    pack(&values, freq_code, rows);
    freq_code.write_exceptions(&values, &mut writer);
    writer.finish();
    (doc_code, freq_code)
}

fn pack(values: &[u32; BLOCK_LEN], code: Code, rows: &mut Vec<u32>) {
    let low = values.map(|value| code.low(value));
    let words = grow(rows, code.width() as usize);
    BitPacker4x::new().compress(&low, bytemuck::cast_slice_mut(words), code.width() as u8);
}

/// Adds zeroed rows and lends them.
fn grow(rows: &mut Vec<u32>, count: usize) -> &mut [u32] {
    let start = rows.len();
    rows.resize(start + count * ROW_WORDS, 0);
    &mut rows[start..]
}

impl FullBlock<'_> {
    /// Decodes the documents.
    ///
    /// # Panics
    /// If `words` is short.
    #[inline]
    pub(in crate::index) fn decode_docs(&self, docs: &mut [u32; BLOCK_LEN]) {
        if self.doc_code == Code::BITSET {
            return self.decode_bitset(docs);
        }
        let width = self.doc_code.width();
        let words = &self.words[..ROW_WORDS * width as usize];
        if !self.doc_code.has_exceptions() {
            return unpack_docs(words, width as u8, self.base, docs);
        }
        unpack(words, width as u8, docs);
        for (position, more) in self.doc_code.exceptions(self.exceptions, 0) {
            docs[position] = docs[position].wrapping_add(more);
        }
        sum_gaps(self.base, docs);
    }

    fn decode_bitset(&self, docs: &mut [u32; BLOCK_LEN]) {
        let rows = doc_rows(Code::BITSET, self.base, self.last_doc);
        // Eight places are written for each byte, so there is room for seven more than are kept.
        let mut places = [0; BLOCK_LEN + 8];
        let mut count = 0;
        let mut first = self.base.wrapping_add(1);
        for &byte in bytemuck::cast_slice::<u32, u8>(&self.words[..rows * ROW_WORDS]) {
            let set = &BITS_SET[usize::from(byte)];
            for (place, &bit) in places[count..count + 8].iter_mut().zip(&set.places) {
                *place = first.wrapping_add(u32::from(bit));
            }
            count = (count + usize::from(set.count)).min(BLOCK_LEN);
            first = first.wrapping_add(8);
        }
        docs.copy_from_slice(&places[..BLOCK_LEN]);
    }

    /// Decodes the frequencies.
    ///
    /// # Panics
    /// If `words` is short.
    #[inline]
    pub(in crate::index) fn decode_freqs(&self, freqs: &mut [u32; BLOCK_LEN]) {
        let width = self.freq_code.width();
        let words = &self.freq_words()[..ROW_WORDS * width as usize];
        unpack_freqs(words, width as u8, freqs);
        for (position, more) in self.freq_exceptions() {
            freqs[position] = freqs[position].wrapping_add(more);
        }
    }

    /// One frequency alone.
    ///
    /// # Panics
    /// If `words` is short.
    #[inline]
    pub(in crate::index) fn freq_at(&self, position: usize) -> u32 {
        let width = self.freq_code.width() as usize;
        let mut freq = 1;
        if width > 0 {
            let bit = position / 4 * width;
            let word = |bit: usize| u64::from(self.freq_words()[bit / 32 * ROW_WORDS + position % 4]);
            // The word with the value's last bit may be the one with its first: then the mask drops what is doubled.
            let window = word(bit + width - 1) << 32 | word(bit);
            freq = ((window >> (bit % 32)) as u32 & low_mask(width as u32)).wrapping_add(1);
        }
        let more = self.freq_exceptions().find(|&(exception, _)| exception >= position);
        more.filter(|&(exception, _)| exception == position).map_or(freq, |(_, more)| freq.wrapping_add(more))
    }

    fn freq_words(&self) -> &[u32] {
        &self.words[doc_rows(self.doc_code, self.base, self.last_doc) * ROW_WORDS..]
    }

    #[inline]
    fn freq_exceptions(&self) -> super::patch::Exceptions<'_> {
        let start =
            if self.freq_code.has_exceptions() { self.doc_code.exceptions(self.exceptions, 0).end() } else { 0 };
        self.freq_code.exceptions(self.exceptions, start)
    }

    /// Bits that the exceptions of documents and of frequencies take.
    pub(in crate::index) fn exception_bits(&self) -> (usize, usize) {
        let docs = self.doc_code.exceptions(self.exceptions, 0).end();
        (docs, self.freq_code.exceptions(self.exceptions, docs).end() - docs)
    }
}

/// The positions of the bits set in a byte.
#[derive(Clone, Copy)]
struct BitsSet {
    places: [u8; 8],
    count: u8,
}

static BITS_SET: [BitsSet; 256] = {
    let mut table = [BitsSet { places: [0; 8], count: 0 }; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut bit = 0;
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte].places[table[byte].count as usize] = bit;
                table[byte].count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests;
