//! The number type in which scores are summed: single precision, or integers for impacts.
//!
//! An index of impacts ([`Bm25::IMPACTS`](crate::index::Bm25::IMPACTS)) makes a score a sum of small integers. 16 bits
//! hold it for nearly all queries: twice as many per vector, half of the cache, no norm and no quotient. Both types
//! give the bits of [`Bm25::score`].

use std::fmt::Debug;
use std::ops::AddAssign;

use super::block::score_block;
use crate::index::{Bm25, MAX_IMPACT};
use crate::search::cpu::simd::{Avx2, WORD_DOCS, WORD_FREQS};

pub(crate) trait Accumulator: Copy + Debug + Default + PartialOrd + AddAssign {
    /// The least sum of a matching document.
    const LEAST: Self;

    fn share(weight: f32, freq: u32, norm: f32) -> Self;

    /// Writes the share of each posting to the same place of `out`. All slices have one length.
    fn write_shares(docs: &[u32], freqs: &[u32], weight: f32, norms: &[f32], out: &mut [Self]);

    /// The weight in the form of [`Accumulator::add_word`].
    fn factor(weight: f32) -> Self;

    /// Adds the shares of the documents whose bits are set. `freqs` has their frequencies in order; a frequency of 0
    /// adds nothing.
    fn add_word(
        avx2: Option<Avx2>,
        bits: u64,
        freqs: &[u8; WORD_FREQS],
        factor: Self,
        norms: &[f32; WORD_DOCS],
        sums: &mut [Self; WORD_DOCS],
    );

    fn any_above(avx2: Option<Avx2>, sums: &[Self; WORD_DOCS], threshold: Self) -> bool;

    fn score(self) -> f32;

    /// A score as a sum.
    fn of_score(score: f32) -> Self;
}

impl Accumulator for f32 {
    const LEAST: Self = Self::MIN_POSITIVE;

    #[inline(always)]
    fn share(weight: f32, freq: u32, norm: f32) -> Self {
        Bm25::score(weight, freq, norm)
    }

    #[inline(always)]
    fn write_shares(docs: &[u32], freqs: &[u32], weight: f32, norms: &[f32], out: &mut [Self]) {
        score_block(docs, freqs, weight, norms, out);
    }

    #[inline(always)]
    fn factor(weight: f32) -> Self {
        weight
    }

    #[inline(always)]
    fn add_word(
        avx2: Option<Avx2>,
        bits: u64,
        freqs: &[u8; WORD_FREQS],
        factor: Self,
        norms: &[f32; WORD_DOCS],
        sums: &mut [Self; WORD_DOCS],
    ) {
        if avx2.is_some() {
            // SAFETY: `avx2` is the proof of AVX2.
            #[cfg(target_arch = "x86_64")]
            return unsafe { vectors::add_word_f32(bits, freqs, factor, norms, sums) };
        }
        add_each(bits, freqs, |place, freq| sums[place] += Self::share(factor, freq, norms[place]));
    }

    #[inline(always)]
    fn any_above(avx2: Option<Avx2>, sums: &[Self; WORD_DOCS], threshold: Self) -> bool {
        if avx2.is_some() {
            // SAFETY: `avx2` is the proof of AVX2.
            #[cfg(target_arch = "x86_64")]
            return unsafe { vectors::any_above_f32(sums, threshold) };
        }
        sums.iter().any(|&sum| sum > threshold)
    }

    #[inline(always)]
    fn score(self) -> f32 {
        self
    }

    #[inline(always)]
    fn of_score(score: f32) -> Self {
        score
    }
}

/// The weight of a term is its count in the query. Norms are unused.
impl Accumulator for u16 {
    const LEAST: Self = 1;

    #[inline(always)]
    fn share(weight: f32, impact: u32, _: f32) -> Self {
        (impact as Self).wrapping_mul(Self::factor(weight))
    }

    #[inline(always)]
    fn write_shares(_: &[u32], impacts: &[u32], weight: f32, _: &[f32], out: &mut [Self]) {
        let count = Self::factor(weight);
        for (share, &impact) in out.iter_mut().zip(impacts) {
            *share = (impact as Self).wrapping_mul(count);
        }
    }

    #[inline(always)]
    fn factor(weight: f32) -> Self {
        Bm25::impact_count(weight) as Self
    }

    #[inline(always)]
    fn add_word(
        avx2: Option<Avx2>,
        bits: u64,
        impacts: &[u8; WORD_FREQS],
        count: Self,
        _: &[f32; WORD_DOCS],
        sums: &mut [Self; WORD_DOCS],
    ) {
        if avx2.is_some() {
            // SAFETY: `avx2` is the proof of AVX2.
            #[cfg(target_arch = "x86_64")]
            return unsafe { vectors::add_word_u16(bits, impacts, count, sums) };
        }
        add_each(bits, impacts, |place, impact| sums[place] += (impact as Self).wrapping_mul(count));
    }

    #[inline(always)]
    fn any_above(avx2: Option<Avx2>, sums: &[Self; WORD_DOCS], threshold: Self) -> bool {
        if avx2.is_some() {
            // SAFETY: `avx2` is the proof of AVX2.
            #[cfg(target_arch = "x86_64")]
            return unsafe { vectors::any_above_u16(sums, threshold) };
        }
        sums.iter().any(|&sum| sum > threshold)
    }

    #[inline(always)]
    fn score(self) -> f32 {
        f32::from(self)
    }

    #[inline(always)]
    fn of_score(score: f32) -> Self {
        score as Self
    }
}

/// Whether sums of impacts fit 16 bits, for terms of these weights.
pub(crate) fn fits_u16(weights: impl Iterator<Item = f32>) -> bool {
    let counts: u64 = weights.map(|weight| u64::from(Bm25::impact_count(weight))).sum();
    counts * u64::from(MAX_IMPACT) <= u64::from(u16::MAX)
}

/// Calls `add` with the place and the frequency of each set bit with a frequency above 0.
#[inline(always)]
fn add_each(mut bits: u64, freqs: &[u8; WORD_FREQS], mut add: impl FnMut(usize, u32)) {
    for &freq in freqs {
        if bits == 0 {
            return;
        }
        if freq > 0 {
            add(bits.trailing_zeros() as usize, u32::from(freq));
        }
        bits &= bits - 1;
    }
}

/// The AVX2 versions.
#[cfg(target_arch = "x86_64")]
mod vectors {
    use std::arch::x86_64::{
        __m128i, __m256, __m256i, _CMP_GT_OQ, _mm_cvtsi64_si128, _mm_shuffle_epi8, _mm_unpacklo_epi64,
        _mm256_add_epi16, _mm256_add_ps, _mm256_cmp_ps, _mm256_cvtepi32_ps, _mm256_cvtepu8_epi16, _mm256_cvtepu8_epi32,
        _mm256_div_ps, _mm256_max_epu16, _mm256_max_ps, _mm256_movemask_ps, _mm256_mul_ps, _mm256_mullo_epi16,
        _mm256_set1_epi16, _mm256_set1_ps, _mm256_subs_epu16, _mm256_testz_si256,
    };

    use crate::search::cpu::simd::{EXPANSIONS, WORD_DOCS, WORD_FREQS, bits_before};

    /// The frequencies of the eight documents of a byte, or 0. `first` is the number of the first one in `freqs`.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn expand(byte: u8, freqs: &[u8; WORD_FREQS], first: u8) -> __m128i {
        let eight = |bytes: [u8; 8]| _mm_cvtsi64_si128(i64::from_le_bytes(bytes));
        // The remainder proves to the compiler that eight are left.
        let first = usize::from(first) % WORD_DOCS;
        let freqs = std::array::from_fn(|i| freqs[first + i]);
        // The index of an absent document has its highest bit set, for which the shuffle gives 0.
        _mm_shuffle_epi8(eight(freqs), eight(EXPANSIONS[usize::from(byte)]))
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(crate) fn add_word_f32(
        bits: u64,
        freqs: &[u8; WORD_FREQS],
        weight: f32,
        norms: &[f32; WORD_DOCS],
        sums: &mut [f32; WORD_DOCS],
    ) {
        let weight = _mm256_set1_ps(weight);
        // A norm of 0 would give 0 / 0 for an absent document. The least positive number changes no other quotient,
        // because adding it to 1 or more has no effect.
        let least_norm = _mm256_set1_ps(f32::MIN_POSITIVE);
        let eights = sums.as_chunks_mut().0.iter_mut().zip(norms.as_chunks().0);
        for (((sums, norms), byte), first) in eights.zip(bits.to_le_bytes()).zip(bits_before(bits)) {
            let freqs = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(expand(byte, freqs, first)));
            let norms = _mm256_max_ps(bytemuck::cast::<[f32; 8], _>(*norms), least_norm);
            let shares = _mm256_div_ps(_mm256_mul_ps(weight, freqs), _mm256_add_ps(freqs, norms));
            *sums = bytemuck::cast::<_, [f32; 8]>(_mm256_add_ps(bytemuck::cast(*sums), shares));
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(crate) fn add_word_u16(bits: u64, impacts: &[u8; WORD_FREQS], count: u16, sums: &mut [u16; WORD_DOCS]) {
        let count = _mm256_set1_epi16(count.cast_signed());
        let (bytes, firsts) = (bits.to_le_bytes(), bits_before(bits));
        let pairs = bytes.as_chunks::<2>().0.iter().zip(firsts.as_chunks::<2>().0);
        for (sums, (bytes, firsts)) in sums.as_chunks_mut::<16>().0.iter_mut().zip(pairs) {
            let halves = [expand(bytes[0], impacts, firsts[0]), expand(bytes[1], impacts, firsts[1])];
            let impacts = _mm256_cvtepu8_epi16(_mm_unpacklo_epi64(halves[0], halves[1]));
            let sum = _mm256_add_epi16(bytemuck::cast(*sums), _mm256_mullo_epi16(impacts, count));
            *sums = bytemuck::cast::<_, [u16; 16]>(sum);
        }
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(crate) fn any_above_f32(sums: &[f32; WORD_DOCS], threshold: f32) -> bool {
        let eights: [__m256; WORD_DOCS / 8] = bytemuck::cast(*sums);
        let largest = eights.into_iter().fold(_mm256_set1_ps(0.0), |a, b| _mm256_max_ps(a, b));
        _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(largest, _mm256_set1_ps(threshold))) != 0
    }

    #[target_feature(enable = "avx2")]
    #[inline]
    pub(crate) fn any_above_u16(sums: &[u16; WORD_DOCS], threshold: u16) -> bool {
        let sixteens: [__m256i; WORD_DOCS / 16] = bytemuck::cast(*sums);
        let largest = sixteens.into_iter().fold(_mm256_set1_epi16(0), |a, b| _mm256_max_epu16(a, b));
        let excess = _mm256_subs_epu16(largest, _mm256_set1_epi16(threshold.cast_signed()));
        _mm256_testz_si256(excess, excess) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AVX2, or `None` with a note that the test was skipped.
    fn avx2_or_skip() -> Option<Avx2> {
        let avx2 = Avx2::detect();
        if avx2.is_none() {
            crate::skipped::skipped("no AVX2");
        }
        avx2
    }

    #[test]
    fn a_word_is_added_alike_posting_by_posting_and_in_vectors() {
        let Some(avx2) = avx2_or_skip() else { return };
        let mut norms: [f32; WORD_DOCS] = std::array::from_fn(|i| 0.2 + (i * 37 % 23) as f32 / 7.0);
        norms[5] = 0.0;
        let freqs: [u8; WORD_FREQS] = std::array::from_fn(|i| (i * 89 % 256) as u8);
        for bits in [0, 1, u64::MAX, 0x8000_0000_0000_0001, 0x0123_4567_89ab_cdef, 0xff00_00ff_0f0f_5555] {
            let mut sums = [std::array::from_fn(|i| i as f32 / 3.0); 2];
            f32::add_word(None, bits, &freqs, 1.7, &norms, &mut sums[0]);
            f32::add_word(Some(avx2), bits, &freqs, 1.7, &norms, &mut sums[1]);
            assert_eq!(sums[0].map(f32::to_bits), sums[1].map(f32::to_bits), "{bits:x}");
            let mut sums = [std::array::from_fn(|i| i as u16); 2];
            u16::add_word(None, bits, &freqs, 3, &norms, &mut sums[0]);
            u16::add_word(Some(avx2), bits, &freqs, 3, &norms, &mut sums[1]);
            assert_eq!(sums[0], sums[1], "{bits:x}");
        }
    }

    #[test]
    fn some_sum_is_above_what_is_below_the_largest() {
        fn check(avx2: Option<Avx2>) {
            for largest in 0..WORD_DOCS {
                let sums: [u16; WORD_DOCS] =
                    std::array::from_fn(|i| if i == largest { 65_535 } else { 65_534 - i as u16 });
                assert!(u16::any_above(avx2, &sums, 65_534) && !u16::any_above(avx2, &sums, 65_535));
                let sums = sums.map(f32::from);
                assert!(f32::any_above(avx2, &sums, 65_534.0) && !f32::any_above(avx2, &sums, 65_535.0));
            }
        }
        check(None);
        if let Some(avx2) = avx2_or_skip() {
            check(Some(avx2));
        }
    }
}
