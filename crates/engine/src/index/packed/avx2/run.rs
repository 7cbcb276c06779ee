//! Runs: values of one width in sequence, from any bit on.
//!
//! Eight values of *w* bits take *w* bytes, so that every eight begin at the same bit of a byte. The place of each of
//! the eight in a load is therefore computed once.

use std::arch::x86_64::*;

use super::{Before, MAX_WIDTH, store};
use crate::index::BLOCK_LEN;
use crate::index::packed::column::GROUP_LEN;

/// Result of unpacking a run: its values, frequencies (values plus one), or documents (prefix sums).
#[derive(Clone, Copy, Debug)]
pub(crate) enum RunOf {
    Values,
    Freqs,
    /// Documents after this one.
    Docs(u32),
}

/// Unpacks values of `width` bits from bit `bit` of `bytes` on, eight at a time, so up to seven more than asked for.
/// Returns false if this processor or file can't be decoded here.
#[inline]
pub(crate) fn unpack_run(
    what: RunOf,
    bytes: &[u8],
    bit: usize,
    width: u32,
    len: usize,
    out: &mut [u32; BLOCK_LEN],
) -> bool {
    let groups = len.div_ceil(GROUP_LEN);
    // A group of 25 bits from bit 7 on ends in byte 25; its second load, from byte 13 on at most, in byte 28.
    let end = bit / 8 + groups * width as usize + 32;
    let can = is_x86_feature_detected!("avx2") && width <= u32::from(MAX_WIDTH) && end <= bytes.len();
    if can {
        let (bytes, out) = (&bytes[bit / 8..], &mut out.as_chunks_mut().0[..groups]);
        // SAFETY: the processor has AVX2; the other conditions are the function's.
        unsafe { groups_of_run(what, bytes, bit % 8, width as usize, out) };
    }
    can
}

/// # Safety
/// `width` is at most 25, `bit` below 8, and there are 32 bytes more than the groups take.
#[target_feature(enable = "avx2")]
unsafe fn groups_of_run(what: RunOf, bytes: &[u8], bit: usize, width: usize, groups: &mut [[u32; GROUP_LEN]]) {
    // The place of each value in its half's load. A group takes whole bytes, so it is the same for all groups.
    let upper = (bit + 4 * width) / 8;
    let numbers = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let bits = _mm256_add_epi32(
        _mm256_mullo_epi32(numbers, _mm256_set1_epi32(width as i32)),
        _mm256_blend_epi32::<0xf0>(_mm256_set1_epi32(bit as i32), _mm256_set1_epi32(bit as i32 - 8 * upper as i32)),
    );
    let first_bytes = _mm256_mullo_epi32(_mm256_srli_epi32::<3>(bits), _mm256_set1_epi32(0x0101_0101));
    let shuffle = _mm256_add_epi32(first_bytes, _mm256_set1_epi32(0x0302_0100));
    let shifts = _mm256_and_si256(bits, _mm256_set1_epi32(7));
    let mask = _mm256_set1_epi32((1 << width) - 1);
    let mut before = Before::new(if let RunOf::Docs(base) = what { base } else { 0 });
    for (number, group) in groups.iter_mut().enumerate() {
        // SAFETY: a group's loads go 28 bytes past its first one at most.
        let both = unsafe {
            let first = bytes.as_ptr().add(number * width);
            let (low, high) = (_mm_loadu_si128(first.cast()), _mm_loadu_si128(first.add(upper).cast()));
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
        };
        let values = _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(both, shuffle), shifts), mask);
        store(
            group,
            match what {
                RunOf::Values => values,
                RunOf::Freqs => _mm256_add_epi32(values, _mm256_set1_epi32(1)),
                RunOf::Docs(_) => before.sum_up(values),
            },
        );
    }
}
