//! Runs of fewer than 128 postings: whole short lists, and the last blocks of long ones.
//!
//! A run is one stream of bits without padding: gaps minus one and frequencies minus one, each at one width, then the
//! exceptions of both.

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::bits::{BitWriter, read_bits};
use super::gaps::sum_gaps;
use super::patch::Code;
use crate::index::BLOCK_LEN;

/// Bits that exceptions must save, because a short list is decoded once, when it is opened.
const LEAST_SAVING: usize = 4;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    /// The document before the first, or `u32::MAX` if there is none.
    pub(crate) base: u32,
    /// Number of postings, fewer than 128.
    pub(crate) len: usize,
    pub(crate) doc_code: Code,
    pub(crate) freq_code: Code,
    pub(crate) bytes: &'a [u8],
    /// Start of the run in `bytes`, in bits.
    pub(crate) bit: usize,
}

#[derive(Debug)]
pub(crate) struct PackedRun {
    gaps: [u32; BLOCK_LEN],
    counts: [u32; BLOCK_LEN],
    len: usize,
    pub(crate) doc_code: Code,
    pub(crate) freq_code: Code,
}

impl PackedRun {
    /// Chooses the codes for postings after document `base`, fewer than 128.
    pub(crate) fn new(base: u32, docs: &[u32], freqs: &[u32]) -> Self {
        let (mut gaps, mut counts) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
        let len = docs.len();
        let mut before = base;
        for (gap, &doc) in gaps.iter_mut().zip(docs) {
            *gap = doc.wrapping_sub(before).wrapping_sub(1);
            before = doc;
        }
        for (count, &freq) in counts.iter_mut().zip(freqs) {
            *count = freq.wrapping_sub(1);
        }
        let (doc_code, _) = Code::choose(&gaps[..len], LEAST_SAVING);
        let (freq_code, _) = Code::choose(&counts[..len], LEAST_SAVING);
        Self { gaps, counts, len, doc_code, freq_code }
    }

    pub(crate) fn write(&self, out: &mut BitWriter<'_>) {
        let (gaps, counts) = (&self.gaps[..self.len], &self.counts[..self.len]);
        gaps.iter().for_each(|&gap| out.write(self.doc_code.low(gap), self.doc_code.width()));
        counts.iter().for_each(|&count| out.write(self.freq_code.low(count), self.freq_code.width()));
        self.doc_code.write_exceptions(gaps, out);
        self.freq_code.write_exceptions(counts, out);
    }
}

impl Run<'_> {
    pub(crate) const EMPTY: Self =
        Self { base: 0, len: 0, doc_code: Code::NOTHING, freq_code: Code::NOTHING, bytes: &[], bit: 0 };

    /// One posting of frequency 1, which needs no bits.
    pub(crate) fn single(doc: u32) -> Self {
        Self { base: doc.wrapping_sub(1), len: 1, ..Self::EMPTY }
    }

    /// Decodes the documents into the first `len` places.
    #[inline]
    pub(crate) fn decode_docs(&self, docs: &mut [u32; BLOCK_LEN]) {
        #[cfg(target_arch = "x86_64")]
        if !self.doc_code.has_exceptions() {
            let (what, width) = (avx2::RunOf::Docs(self.base), self.doc_code.width());
            if avx2::unpack_run(what, self.bytes, self.bit, width, self.len, docs) {
                return;
            }
        }
        self.unpack(self.bit, self.doc_code, docs);
        for (position, more) in self.doc_code.exceptions(self.bytes, self.exceptions_bit()) {
            docs[position] = docs[position].wrapping_add(more);
        }
        sum_gaps(self.base, &mut docs[..self.len]);
    }

    /// Decodes the frequencies into the first `len` places.
    #[inline]
    pub(crate) fn decode_freqs(&self, freqs: &mut [u32; BLOCK_LEN]) {
        self.unpack_freqs(freqs);
        for (position, more) in self.freq_code.exceptions(self.bytes, self.freq_exceptions_bit()) {
            freqs[position] = freqs[position].wrapping_add(more);
        }
    }

    /// The frequencies without exceptions.
    #[inline]
    fn unpack_freqs(&self, freqs: &mut [u32; BLOCK_LEN]) {
        #[cfg(target_arch = "x86_64")]
        {
            let width = self.freq_code.width();
            if avx2::unpack_run(avx2::RunOf::Freqs, self.bytes, self.freqs_bit(), width, self.len, freqs) {
                return;
            }
        }
        self.unpack(self.freqs_bit(), self.freq_code, freqs);
        freqs[..self.len].iter_mut().for_each(|freq| *freq = freq.wrapping_add(1));
    }

    #[inline]
    pub(crate) fn freq_at(&self, position: usize) -> u32 {
        let width = self.freq_code.width();
        let low = read_bits(self.bytes, self.freqs_bit() + position * width as usize, width);
        let mut exceptions = self.freq_code.exceptions(self.bytes, self.freq_exceptions_bit());
        let more = exceptions.find(|&(exception, _)| exception == position).map_or(0, |(_, more)| more);
        low.wrapping_add(more).wrapping_add(1)
    }

    /// The bit after the run.
    pub(crate) fn end(&self) -> usize {
        self.freq_code.exceptions(self.bytes, self.freq_exceptions_bit()).end()
    }

    /// Bits of documents and of frequencies.
    pub(crate) fn part_bits(&self) -> (usize, usize) {
        let doc_exceptions = self.freq_exceptions_bit() - self.exceptions_bit();
        let docs = self.len * self.doc_code.width() as usize + doc_exceptions;
        (docs, self.end() - self.bit - docs)
    }

    #[inline]
    fn freqs_bit(&self) -> usize {
        self.bit + self.len * self.doc_code.width() as usize
    }

    #[inline]
    fn exceptions_bit(&self) -> usize {
        self.freqs_bit() + self.len * self.freq_code.width() as usize
    }

    #[inline]
    fn freq_exceptions_bit(&self) -> usize {
        self.doc_code.exceptions(self.bytes, self.exceptions_bit()).end()
    }

    #[inline]
    fn unpack(&self, bit: usize, code: Code, values: &mut [u32; BLOCK_LEN]) {
        let width = code.width();
        #[cfg(target_arch = "x86_64")]
        if avx2::unpack_run(avx2::RunOf::Values, self.bytes, bit, width, self.len, values) {
            return;
        }
        for (i, value) in values[..self.len].iter_mut().enumerate() {
            *value = read_bits(self.bytes, bit + i * width as usize, width);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn runs_roundtrip_at_any_bit(
            base in prop_oneof![Just(u32::MAX), 0_u32..1000],
            postings in proptest::collection::vec(
                (
                    prop_oneof![9 => 0_u32..30, 1 => 0_u32..16_000_000],
                    prop_oneof![9 => 1_u32..4, 1 => 1_u32..=u32::MAX],
                ),
                1..BLOCK_LEN,
            ),
            bit in 0_usize..40,
        ) {
            let mut doc = base;
            let docs: Vec<u32> = postings.iter().map(|p| { doc = doc.wrapping_add(p.0 + 1); doc }).collect();
            let freqs: Vec<u32> = postings.iter().map(|p| p.1).collect();
            let packed = PackedRun::new(base, &docs, &freqs);
            let mut bytes = Vec::new();
            let mut writer = BitWriter::new(&mut bytes);
            (0..bit).for_each(|_| writer.write(1, 1));
            packed.write(&mut writer);
            writer.finish();
            let (len, doc_code, freq_code) = (docs.len(), packed.doc_code, packed.freq_code);
            let packed_len = bytes.len();
            // With room for wide loads behind the run, and without.
            for room in [0, 100] {
                bytes.resize(packed_len + room, 0xff);
                let run = Run { base, len, doc_code, freq_code, bytes: &bytes, bit };
                prop_assert_eq!(run.end().div_ceil(8), packed_len);
                prop_assert_eq!(run.part_bits().0 + run.part_bits().1 + bit, run.end());
                let mut out = [0; BLOCK_LEN];
                run.decode_docs(&mut out);
                prop_assert_eq!(&out[..len], &docs[..]);
                run.decode_freqs(&mut out);
                prop_assert_eq!(&out[..len], &freqs[..]);
                for (position, &freq) in freqs.iter().enumerate() {
                    prop_assert_eq!(run.freq_at(position), freq);
                }
            }
        }
    }
}
