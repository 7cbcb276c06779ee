//! Prefix sums that turn gaps into documents, by vectors where the processor has them.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    __m256i, _mm_setzero_si128, _mm256_add_epi32, _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_set1_epi32,
    _mm256_setr_m128i, _mm256_shuffle_epi32, _mm256_slli_si256,
};

/// Replaces each gap minus one by its document: the sum up to it, counted from `base`.
#[inline]
pub fn sum_gaps(base: u32, values: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, for which the function is compiled.
        return unsafe { sum_gaps_avx2(base, values) };
    }
    sum_gaps_portable(base, values);
}

#[inline]
fn sum_gaps_portable(base: u32, values: &mut [u32]) {
    let mut before = base;
    for value in values {
        before = before.wrapping_add(*value).wrapping_add(1);
        *value = before;
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn sum_gaps_avx2(base: u32, values: &mut [u32]) {
    let (eights, rest) = values.as_chunks_mut::<8>();
    let mut before = _mm256_set1_epi32(base as i32);
    for eight in &mut *eights {
        let mut sums: __m256i = bytemuck::cast(*eight);
        sums = _mm256_add_epi32(sums, _mm256_set1_epi32(1));
        sums = _mm256_add_epi32(sums, _mm256_slli_si256::<4>(sums));
        sums = _mm256_add_epi32(sums, _mm256_slli_si256::<8>(sums));
        // The last sum of the low half is added to all of the high half.
        let low = _mm256_castsi256_si128(_mm256_shuffle_epi32::<0xff>(sums));
        sums = _mm256_add_epi32(sums, _mm256_setr_m128i(_mm_setzero_si128(), low));
        let total = _mm256_extracti128_si256::<1>(_mm256_shuffle_epi32::<0xff>(sums));
        *eight = bytemuck::cast(_mm256_add_epi32(sums, before));
        before = _mm256_add_epi32(before, _mm256_setr_m128i(total, total));
    }
    let last = eights.last().map_or(base, |eight| eight[7]);
    sum_gaps_portable(last, rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_base::base::random::Random;

    #[test]
    fn gaps_of_any_number_sum_up_to_the_same_documents() {
        let mut random = Random::new(9, 0);
        for len in 0..200 {
            let mut fast: Vec<u32> = (0..len).map(|_| random.below(u32::MAX)).collect();
            let mut portable = fast.clone();
            sum_gaps(9, &mut fast);
            sum_gaps_portable(9, &mut portable);
            assert_eq!(fast, portable);
        }
    }
}
