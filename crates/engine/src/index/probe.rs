//! The probe form of a dense list: membership and frequency of any document, without decoding a block.
//!
//! One bit per document says whether it is in the list. Counts of set bits before every 128 documents give the number
//! of a document's posting. That number gives the frequency, in four bits:
//!
//! ```text
//! documents     0  1  2  3  4  5  ...           freq(4): bit 4 is set, 2 bits are set before it,
//! bits          1  0  1  0  1  1                frequency 2 is 6
//! frequencies   3     1     6  2
//! ```
//!
//! A list in which few frequencies exceed 15 takes four bits per frequency, others take eight. A larger frequency is
//! stored as 0 and appears in a separate table. Ranges can be read at once, too: [`Probe::words`] and [`Probe::freqs`]
//! return a list's postings in order without decoding a block.

use super::BLOCK_LEN;

/// A list has a probe form if its postings exceed the collection's documents divided by this. A probe form takes 1.1
/// bits per document and 4 or 8 per posting, as much as the list itself at about 1 in 6.
pub(crate) const PROBE_SPARSITY: usize = 6;

/// Documents of a unit of the bitset.
const UNIT_DOCS: usize = 512;
/// Documents between two counts.
const COUNT_DOCS: usize = 128;
/// Documents between two absolute counts.
const BASE_DOCS: usize = 1 << 16;
/// Frequencies take eight bits if more than one in this many does not fit in four.
const LARGE_SPARSITY: usize = 40;
/// Bytes after the last 8-bit frequency, so that many may be read at once.
const SPARE_BYTES: usize = 72;
/// Bit of the shape's word: frequencies take eight bits. The bits above it count the large frequencies.
const IS_WIDE: u32 = 1;

#[derive(Clone, Copy, Debug)]
pub(crate) struct ProbeShape {
    bit_words: usize,
    count_words: usize,
    base_words: usize,
    num_large: usize,
    freq_words: usize,
    /// Whether frequencies take eight bits.
    is_wide: bool,
}

impl ProbeShape {
    /// The shape of `doc_freq` postings that the word `shape` encodes.
    fn new(num_docs: usize, doc_freq: usize, shape: u32) -> Self {
        let units = num_docs.div_ceil(UNIT_DOCS);
        let is_wide = shape & IS_WIDE != 0;
        Self {
            bit_words: units * (UNIT_DOCS / 32),
            count_words: units * (UNIT_DOCS / COUNT_DOCS / 2),
            base_words: num_docs.div_ceil(BASE_DOCS),
            num_large: (shape / 2) as usize,
            freq_words: if is_wide { (doc_freq + SPARE_BYTES).div_ceil(4) } else { doc_freq.div_ceil(8) },
            is_wide,
        }
    }

    /// Reads the shape of the form in `words`, or returns `None` if there are too few.
    #[inline]
    pub(crate) fn read(num_docs: usize, doc_freq: usize, words: &[u32]) -> Option<Self> {
        let Self { bit_words, count_words, base_words, .. } = Self::new(num_docs, doc_freq, 0);
        let shape = Self::new(num_docs, doc_freq, *words.get(bit_words + count_words + base_words)?);
        (shape.words() <= words.len()).then_some(shape)
    }

    /// Words of the form, in whole rows.
    pub(crate) fn words(self) -> usize {
        let head_words = self.bit_words + self.count_words + self.base_words + 1;
        (head_words + 2 * self.num_large + self.freq_words).next_multiple_of(4)
    }
}

pub(crate) fn has_probe(num_docs: usize, doc_freq: usize) -> bool {
    doc_freq >= BLOCK_LEN && doc_freq > num_docs / PROBE_SPARSITY
}

/// Collects a list's postings for its probe form, block by block.
#[derive(Debug, Default)]
pub(crate) struct ProbeBuilder {
    num_docs: usize,
    /// One bit per document, in whole units.
    bits: Vec<u32>,
    /// One frequency per posting, or 0 if it does not fit.
    freqs: Vec<u8>,
    /// Postings whose frequencies don't fit, ascending, with these frequencies.
    large: Vec<(u32, u32)>,
    num_above_15: usize,
}

impl ProbeBuilder {
    pub(crate) fn begin(&mut self, num_docs: usize) {
        self.num_docs = num_docs;
        self.bits.clear();
        self.bits.resize(num_docs.div_ceil(UNIT_DOCS) * (UNIT_DOCS / 32), 0);
        self.freqs.clear();
        self.large.clear();
        self.num_above_15 = 0;
    }

    pub(crate) fn push(&mut self, docs: &[u32], freqs: &[u32]) {
        for &doc in docs {
            self.bits[doc as usize / 32] |= 1 << (doc % 32);
        }
        let first = self.freqs.len() as u32;
        for (posting, &freq) in (first..).zip(freqs) {
            self.num_above_15 += usize::from(freq > 15);
            if freq > u8::MAX.into() {
                self.large.push((posting, freq));
            }
        }
        self.freqs.extend(freqs.iter().map(|&freq| u8::try_from(freq).unwrap_or(0)));
    }

    /// Appends the probe form of the list to `out`, whose length is a multiple of 4.
    pub(crate) fn append(&mut self, out: &mut Vec<u32>) {
        let num_docs = self.num_docs;
        let is_wide = self.num_above_15 > self.freqs.len() / LARGE_SPARSITY;
        if !is_wide {
            self.exclude_above_15();
        }
        let large = &self.large;
        let head = (large.len() as u32) << 1 | if is_wide { IS_WIDE } else { 0 };
        let shape = ProbeShape::new(num_docs, self.freqs.len(), head);
        let start = out.len();
        out.resize(start + shape.words(), 0);
        let (bits, rest) = out[start..].split_at_mut(shape.bit_words);
        let (counts, rest) = rest.split_at_mut(shape.count_words);
        let (bases, rest) = rest.split_at_mut(shape.base_words);
        let (head_word, rest) = rest.split_at_mut(1);
        let (large_postings, rest) = rest.split_at_mut(large.len());
        let (large_freqs, freq_words) = rest.split_at_mut(large.len());
        head_word[0] = head;
        for ((place, freq_place), &(posting, freq)) in large_postings.iter_mut().zip(large_freqs).zip(large) {
            (*place, *freq_place) = (posting, freq);
        }
        bits.copy_from_slice(&self.bits);
        let (postings_a_word, freq_bits) = if is_wide { (4, 8) } else { (8, 4) };
        for (word, freqs) in freq_words.iter_mut().zip(self.freqs.chunks(postings_a_word)) {
            *word = freqs.iter().rev().fold(0, |word, &freq| word << freq_bits | u32::from(freq));
        }
        let mut before = 0_u32;
        for (number, bits) in bits.chunks(COUNT_DOCS / 32).enumerate() {
            let base = &mut bases[(number * COUNT_DOCS / BASE_DOCS).min(shape.base_words - 1)];
            if (number * COUNT_DOCS).is_multiple_of(BASE_DOCS) {
                *base = before;
            }
            // Fewer than 65,536 documents precede it.
            counts[number / 2] |= (before - *base) << (number % 2 * 16);
            before += bits.iter().map(|word| word.count_ones()).sum::<u32>();
        }
    }

    pub(crate) fn release(&mut self, most_bytes: usize) {
        if self.freqs.capacity() > most_bytes {
            *self = Self::default();
        }
    }

    fn exclude_above_15(&mut self) {
        let larger = std::mem::take(&mut self.large);
        let mut larger = larger.into_iter().peekable();
        for (posting, freq) in (0..).zip(&mut self.freqs) {
            if *freq > 15 {
                self.large.push((posting, u32::from(*freq)));
                *freq = 0;
            } else if *freq == 0 {
                self.large.extend(larger.next_if(|&(next, _)| next == posting));
            }
        }
    }
}

/// The probe form of a list so dense that lookups beat decoding blocks. Methods panic if there is no such document.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    bits: &'a [u64],
    counts: &'a [u16],
    bases: &'a [u32],
    large_postings: &'a [u32],
    large_freqs: &'a [u32],
    /// Frequencies of one byte, or two per byte with the first in the low bits.
    freqs: &'a [u8],
    is_wide: bool,
}

impl<'a> Probe<'a> {
    /// The form in `words`, which are at least as many as the shape's.
    pub(crate) fn new(shape: ProbeShape, words: &'a [u32]) -> Self {
        let (bits, rest) = words.split_at(shape.bit_words);
        let (counts, rest) = rest.split_at(shape.count_words);
        let (bases, rest) = rest.split_at(shape.base_words);
        let (large_postings, rest) = rest[1..].split_at(shape.num_large);
        let (large_freqs, rest) = rest.split_at(shape.num_large);
        Self {
            bits: bytemuck::cast_slice(bits),
            counts: bytemuck::cast_slice(counts),
            bases,
            large_postings,
            large_freqs,
            freqs: bytemuck::cast_slice(&rest[..shape.freq_words]),
            is_wide: shape.is_wide,
        }
    }

    /// One bit per document, set if the document is in the list: bit `doc % 64` of word `doc / 64`. Padding up to a
    /// multiple of 8 words is 0.
    #[inline]
    pub fn words(&self) -> &'a [u64] {
        self.bits
    }

    /// Whether `doc` is in the list.
    #[inline]
    pub fn contains(&self, doc: u32) -> bool {
        self.bits[doc as usize / 64] >> (doc % 64) & 1 != 0
    }

    /// Frequency of the term in `doc`, or 0.
    #[inline]
    pub fn freq(&self, doc: u32) -> u32 {
        if self.contains(doc) { self.freq_of_posting(self.rank(doc)) } else { 0 }
    }

    /// Number of postings with documents below `doc`.
    #[inline]
    pub fn rank(&self, doc: u32) -> usize {
        let word = doc as usize / 64;
        let below = (1 << (doc % 64)) - 1_u64;
        // A count covers two words. All of the first counts if the document is in the second.
        let pair = [self.bits[word & !1], self.bits[word | 1]];
        let masks = if word.is_multiple_of(2) { [below, 0] } else { [u64::MAX, below] };
        let near = (pair[0] & masks[0]).count_ones() + (pair[1] & masks[1]).count_ones();
        let count = self.counts[doc as usize / COUNT_DOCS];
        self.bases[doc as usize / BASE_DOCS] as usize + usize::from(count) + near as usize
    }

    /// The frequency of the list's posting number `posting`. Any number is safe, as a damaged index may ask for it.
    #[inline]
    pub fn freq_of_posting(&self, posting: usize) -> u32 {
        let freq = if self.is_wide {
            self.freqs.get(posting).copied().unwrap_or_default()
        } else {
            self.freqs.get(posting / 2).copied().unwrap_or_default() >> (posting % 2 * 4) & 15
        };
        if freq > 0 { u32::from(freq) } else { self.large_freq(posting) }
    }

    /// A frequency from the table of large ones, or 1 if a damaged index lacks it.
    #[cold]
    fn large_freq(&self, posting: usize) -> u32 {
        self.large_postings.binary_search(&(posting as u32)).map_or(1, |at| self.large_freqs[at])
    }

    /// Frequencies of `count` postings from number `first` on, and at least 64 bytes more as far as there are postings.
    /// A 0 stands for a frequency that [`Probe::large`] returns.
    ///
    /// The result is borrowed from the index, or unpacked into `room`, which must have 72 bytes more than `count`.
    #[inline(always)]
    pub fn freqs<'b>(&self, first: usize, count: usize, room: &'b mut [u8]) -> &'b [u8]
    where
        'a: 'b,
    {
        if self.is_wide {
            return self.freqs.get(first..).unwrap_or_default();
        }
        let packed = self.freqs.get(first / 2..).unwrap_or_default();
        for (pair, byte) in room[..count + 2].as_chunks_mut().0.iter_mut().zip(packed) {
            *pair = [byte & 15, byte >> 4];
        }
        &room[first % 2..]
    }

    /// Numbers and frequencies, ascending, of those of `count` postings from number `first` on that are too large for
    /// [`Probe::freqs`].
    #[inline]
    pub fn large(&self, first: usize, count: usize) -> impl Iterator<Item = (usize, u32)> + use<'a> {
        let from = if self.large_postings.is_empty() {
            0
        } else {
            self.large_postings.partition_point(|&posting| (posting as usize) < first)
        };
        let large = self.large_postings[from..].iter().zip(&self.large_freqs[from..]);
        large.map(|(&posting, &freq)| (posting as usize, freq)).take_while(move |&(posting, _)| posting < first + count)
    }
}
