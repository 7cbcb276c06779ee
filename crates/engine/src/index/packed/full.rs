//! Full blocks of 128 postings, with documents and frequencies as [columns](super::column) of bytes.
//!
//! Documents are stored as gaps minus one. If a bitset is shorter, bit *j* stands for document `base + 1 + j` instead.
//! Frequencies minus one follow the documents.

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::column::ColumnCode;
use super::gaps::sum_gaps;
use crate::index::BLOCK_LEN;

/// Bytes that a bitset must save, because it is slower to decode than gaps.
const LEAST_SAVING_BITSET: usize = 8;

#[derive(Clone, Copy, Debug)]
pub(crate) struct FullBlock<'a> {
    /// The last document of the previous block, or `u32::MAX` before the first.
    pub(crate) base: u32,
    pub(crate) last_doc: u32,
    pub(crate) doc_code: ColumnCode,
    pub(crate) freq_code: ColumnCode,
    /// The block from its documents on, and the bytes that follow it.
    pub(crate) bytes: &'a [u8],
    pub(crate) freqs_at: usize,
}

/// Bytes of a bitset of the documents after `base` up to `last_doc`.
#[inline]
fn bitset_bytes(base: u32, last_doc: u32) -> usize {
    last_doc.wrapping_sub(base).div_ceil(8) as usize
}

/// Appends a block. Returns the codes of documents and frequencies, and the bytes of the documents.
pub(crate) fn encode_full(
    base: u32,
    docs: &[u32; BLOCK_LEN],
    freqs: &[u32; BLOCK_LEN],
    out: &mut Vec<u8>,
) -> (ColumnCode, ColumnCode, usize) {
    let mut values = [0; BLOCK_LEN];
    values[0] = docs[0].wrapping_sub(base).wrapping_sub(1);
    for (value, pair) in values[1..].iter_mut().zip(docs.windows(2)) {
        *value = pair[1] - pair[0] - 1;
    }
    let (mut doc_code, mut doc_bytes) = ColumnCode::choose(&values);
    let bitset_bytes = bitset_bytes(base, docs[BLOCK_LEN - 1]);
    if bitset_bytes + LEAST_SAVING_BITSET <= doc_bytes {
        (doc_code, doc_bytes) = (ColumnCode::BITSET, bitset_bytes);
        let start = out.len();
        out.resize(start + doc_bytes, 0);
        for doc in docs {
            let bit = doc.wrapping_sub(base).wrapping_sub(1);
            out[start + bit as usize / 8] |= 1 << (bit % 8);
        }
    } else {
        doc_code.write(&values, out);
    }
    for (value, &freq) in values.iter_mut().zip(freqs) {
        *value = freq.wrapping_sub(1);
    }
    let (freq_code, _) = ColumnCode::choose(&values);
    freq_code.write(&values, out);
    (doc_code, freq_code, doc_bytes)
}

impl FullBlock<'_> {
    #[inline]
    pub(crate) fn decode_docs(&self, docs: &mut [u32; BLOCK_LEN]) {
        if self.doc_code == ColumnCode::BITSET {
            return self.decode_bitset(docs);
        }
        #[cfg(target_arch = "x86_64")]
        if avx2::decode_docs(self.doc_code, self.bytes, self.base, docs) {
            return;
        }
        self.decode_docs_portable(docs);
    }

    // Rare paths stay out of the callers' loops.
    #[cold]
    #[inline(never)]
    fn decode_docs_portable(&self, docs: &mut [u32; BLOCK_LEN]) {
        self.doc_code.unpack(self.bytes, docs);
        sum_gaps(self.base, docs);
    }

    #[inline(never)]
    fn decode_bitset(&self, docs: &mut [u32; BLOCK_LEN]) {
        // Each byte writes eight places, so there is room for seven more than are kept.
        let mut places = [0; BLOCK_LEN + 8];
        let mut count = 0;
        let mut first = self.base.wrapping_add(1);
        let len = bitset_bytes(self.base, self.last_doc).min(self.bytes.len());
        for &byte in &self.bytes[..len] {
            let set = &BITS_SET[usize::from(byte)];
            for (place, &bit) in places[count..count + 8].iter_mut().zip(&set.places) {
                *place = first.wrapping_add(u32::from(bit));
            }
            count = (count + usize::from(set.count)).min(BLOCK_LEN);
            first = first.wrapping_add(8);
        }
        docs.copy_from_slice(&places[..BLOCK_LEN]);
    }

    #[inline]
    pub(crate) fn decode_freqs(&self, freqs: &mut [u32; BLOCK_LEN]) {
        let bytes = self.freq_bytes();
        #[cfg(target_arch = "x86_64")]
        if avx2::decode_freqs(self.freq_code, bytes, freqs) {
            return;
        }
        self.decode_freqs_portable(freqs);
    }

    #[cold]
    #[inline(never)]
    fn decode_freqs_portable(&self, freqs: &mut [u32; BLOCK_LEN]) {
        self.freq_code.unpack(self.freq_bytes(), freqs);
        for freq in freqs {
            *freq = freq.wrapping_add(1);
        }
    }

    #[inline]
    pub(crate) fn freq_at(&self, position: usize) -> u32 {
        let bytes = self.freq_bytes();
        #[cfg(target_arch = "x86_64")]
        if let Some(value) = avx2::value_at(self.freq_code, bytes, position) {
            return value + 1;
        }
        self.freq_code.value_at(bytes, position).wrapping_add(1)
    }

    /// Bytes of documents and of frequencies.
    pub(crate) fn part_bytes(&self) -> (usize, usize) {
        let docs = match self.doc_code {
            ColumnCode::BITSET => bitset_bytes(self.base, self.last_doc),
            code => code.column_bytes(self.bytes),
        };
        (docs, self.freq_code.column_bytes(self.freq_bytes()))
    }

    #[inline]
    fn freq_bytes(&self) -> &[u8] {
        self.bytes.get(self.freqs_at..).unwrap_or_default()
    }
}

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
