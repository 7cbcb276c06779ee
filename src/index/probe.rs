//! The probe form of a dense list: membership and frequency of any document, without decoding a block.
//!
//! A bit a document says whether it is in the list. Counts of the bits before every 128 documents lead from a set bit
//! to its posting's number, and this to the frequency, in four bits:
//!
//! ```text
//! documents     0  1  2  3  4  5  ...           freq(4): bit 4 is set, 2 bits are set before it,
//! bits          1  0  1  0  1  1                frequency 2 is 6
//! frequencies   3     1     6  2
//! ```
//!
//! A frequency above 15 is looked up in its block.

use super::BLOCK_LEN;
use super::list::PostingList;

/// A list has a probe form if it has more postings than the collection has documents divided by this. A probe form
/// takes 1.1 bits a document and 4 a posting, so that it would be as large as the list itself at about 1 in 6.
pub(super) const PROBE_SPARSITY: usize = 8;

/// Documents of a unit of the bitset.
const UNIT_DOCS: usize = 512;
/// Documents between two counts.
const COUNT_DOCS: usize = 128;
/// Documents between two counts of all postings before.
const BASE_DOCS: usize = 1 << 16;
/// Stands for every larger frequency.
const LARGE_FREQ: u32 = 15;

/// Words of a probe form's parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeShape {
    bit_words: usize,
    count_words: usize,
    base_words: usize,
    freq_words: usize,
}

impl ProbeShape {
    /// The shape for a list of `doc_freq` postings.
    pub(super) fn new(num_docs: usize, doc_freq: usize) -> Self {
        let units = num_docs.div_ceil(UNIT_DOCS);
        Self {
            bit_words: units * (UNIT_DOCS / 32),
            count_words: units * (UNIT_DOCS / COUNT_DOCS / 2),
            base_words: num_docs.div_ceil(BASE_DOCS),
            freq_words: doc_freq.div_ceil(8),
        }
    }

    /// Words of the form, in whole rows.
    pub(super) fn words(self) -> usize {
        (self.bit_words + self.count_words + self.base_words + self.freq_words).next_multiple_of(4)
    }

    /// The form's parts in `words`: bits, counts, bases, frequencies.
    fn split(self, words: &[u32]) -> (&[u32], &[u32], &[u32], &[u32]) {
        let (bits, rest) = words.split_at(self.bit_words);
        let (counts, rest) = rest.split_at(self.count_words);
        let (bases, rest) = rest.split_at(self.base_words);
        (bits, counts, bases, &rest[..self.freq_words])
    }
}

/// Whether a list of this length has a probe form.
pub(super) fn has_probe(num_docs: usize, doc_freq: usize) -> bool {
    doc_freq >= BLOCK_LEN && doc_freq > num_docs / PROBE_SPARSITY
}

/// Appends the probe form of a list to `out`, whose length is a multiple of 4.
pub(super) fn append_probe(num_docs: usize, docs: &[u32], freqs: &[u32], out: &mut Vec<u32>) {
    let shape = ProbeShape::new(num_docs, docs.len());
    let start = out.len();
    out.resize(start + shape.words(), 0);
    let (bits, rest) = out[start..].split_at_mut(shape.bit_words);
    let (counts, rest) = rest.split_at_mut(shape.count_words);
    let (bases, freq_words) = rest.split_at_mut(shape.base_words);
    for (posting, (&doc, &freq)) in docs.iter().zip(freqs).enumerate() {
        bits[doc as usize / 32] |= 1 << (doc % 32);
        freq_words[posting / 8] |= (freq - 1).min(LARGE_FREQ) << (posting % 8 * 4);
    }
    let mut before = 0_u32;
    for (number, bits) in bits.chunks(COUNT_DOCS / 32).enumerate() {
        let base = &mut bases[(number * COUNT_DOCS / BASE_DOCS).min(shape.base_words - 1)];
        if (number * COUNT_DOCS).is_multiple_of(BASE_DOCS) {
            *base = before;
        }
        // Fewer than 65,536 documents lie before it.
        counts[number / 2] |= (before - *base) << (number % 2 * 16);
        before += bits.iter().map(|word| word.count_ones()).sum::<u32>();
    }
}

/// A list's direct form, for lists so dense that looking documents up beats decoding blocks.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    bits: &'a [u64],
    counts: &'a [u16],
    bases: &'a [u32],
    /// Two frequencies a byte.
    freqs: &'a [u8],
    list: PostingList<'a>,
}

impl<'a> Probe<'a> {
    /// The form in `words`, which has at least the shape's.
    pub(super) fn new(shape: ProbeShape, words: &'a [u32], list: PostingList<'a>) -> Self {
        let (bits, counts, bases, freqs) = shape.split(words);
        Self {
            bits: bytemuck::cast_slice(bits),
            counts: bytemuck::cast_slice(counts),
            bases,
            freqs: bytemuck::cast_slice(freqs),
            list,
        }
    }

    /// One bit a document, set where the document is in the list: bit `doc % 64` of word `doc / 64`. Past the
    /// last document bits are 0, to a multiple of 8 words.
    #[must_use]
    #[inline]
    pub fn words(&self) -> &'a [u64] {
        self.bits
    }

    /// Whether `doc` is in the list.
    ///
    /// # Panics
    /// If there is no such document.
    #[must_use]
    #[inline(always)]
    pub fn contains(&self, doc: u32) -> bool {
        self.bits[doc as usize / 64] >> (doc % 64) & 1 != 0
    }

    /// How often the term occurs in `doc`; 0 if it doesn't.
    ///
    /// # Panics
    /// If there is no such document.
    #[must_use]
    #[inline]
    pub fn freq(&self, doc: u32) -> u32 {
        if self.contains(doc) { self.freq_of_posting(self.rank(doc)) } else { 0 }
    }

    /// Postings with documents below `doc`.
    ///
    /// # Panics
    /// If there is no such document.
    #[must_use]
    #[inline(always)]
    pub fn rank(&self, doc: u32) -> usize {
        let word = doc as usize / 64;
        let below = (1 << (doc % 64)) - 1_u64;
        // Of the two words that a count covers: all of the first if the document is in the second.
        let pair = [self.bits[word & !1], self.bits[word | 1]];
        let masks = if word.is_multiple_of(2) { [below, 0] } else { [u64::MAX, below] };
        let near = (pair[0] & masks[0]).count_ones() + (pair[1] & masks[1]).count_ones();
        let count = self.counts[doc as usize / COUNT_DOCS];
        self.bases[doc as usize / BASE_DOCS] as usize + usize::from(count) + near as usize
    }

    /// How often the term occurs in each document, 0 where it doesn't: [`freq`](Self::freq) of many at once.
    ///
    /// # Panics
    /// If there is no such document, or there aren't as many places as documents.
    #[inline]
    pub fn freqs(&self, docs: &[u32], freqs: &mut [u32]) {
        assert!(docs.len() == freqs.len(), "one frequency for each document");
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("bmi2") {
            // SAFETY: the processor has the features.
            return unsafe { self.freqs_popcnt(docs, freqs) };
        }
        self.freqs_portable(docs, freqs);
    }

    /// [`freqs_portable`](Self::freqs_portable) where a word's bits are counted by one instruction.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "popcnt,bmi1,bmi2")]
    fn freqs_popcnt(&self, docs: &[u32], freqs: &mut [u32]) {
        self.freqs_portable(docs, freqs);
    }

    #[inline(always)]
    fn freqs_portable(&self, docs: &[u32], freqs: &mut [u32]) {
        for (freq, &doc) in freqs.iter_mut().zip(docs) {
            *freq = if self.contains(doc) { self.freq_of_posting(self.rank(doc)) } else { 0 };
        }
    }

    /// The frequency of the list's posting number `posting`. A damaged index may ask for one that isn't there.
    #[inline(always)]
    fn freq_of_posting(&self, posting: usize) -> u32 {
        let byte = self.freqs.get(posting / 2).copied().unwrap_or_default();
        let freq = u32::from(byte >> (posting % 2 * 4)) & 15;
        if freq < LARGE_FREQ { freq + 1 } else { self.large_freq(posting) }
    }

    /// A frequency that four bits don't hold. Not inlined, so that the common case is.
    #[cold]
    #[inline(never)]
    fn large_freq(&self, posting: usize) -> u32 {
        let posting = posting.min(self.list.doc_freq() as usize - 1);
        self.list.freq_at(posting / BLOCK_LEN, posting % BLOCK_LEN)
    }
}
