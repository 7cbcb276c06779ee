//! Comparisons of a few numbers at once. Bit i is the result for number i.
//!
//! Every x86-64 compares four lanes per instruction. For callers compiled with wider vectors the compiler may join two.

/// Numbers compared per step.
pub(crate) const STEP: usize = 8;

/// Which of four documents are below `limit`; all are below 2^31.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn below_4(docs: &[u32; 4], limit: u32) -> u32 {
    use std::arch::x86_64::{_mm_castsi128_ps, _mm_cmplt_epi32, _mm_movemask_ps, _mm_set1_epi32};
    // SAFETY: these instructions are part of every x86-64.
    unsafe {
        _mm_movemask_ps(_mm_castsi128_ps(_mm_cmplt_epi32(bytemuck::cast(*docs), _mm_set1_epi32(limit as i32)))) as u32
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn below_4(docs: &[u32; 4], limit: u32) -> u32 {
    (0..).zip(docs).fold(0, |bits, (i, &doc)| bits | u32::from(doc < limit) << i)
}

/// Which of four scores are above `threshold`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn above_4(scores: &[f32; 4], threshold: f32) -> u32 {
    use std::arch::x86_64::{_mm_cmpgt_ps, _mm_movemask_ps, _mm_set1_ps};
    // SAFETY: these instructions are part of every x86-64.
    unsafe { _mm_movemask_ps(_mm_cmpgt_ps(bytemuck::cast(*scores), _mm_set1_ps(threshold))) as u32 }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn above_4(scores: &[f32; 4], threshold: f32) -> u32 {
    (0..).zip(scores).fold(0, |bits, (i, &score)| bits | u32::from(score > threshold) << i)
}

/// Bits of the documents below `limit`. The documents are below 2^31; their number is a multiple of 4, at most 64.
#[inline(always)]
pub(crate) fn below<const N: usize>(docs: &[u32; N], limit: u32) -> u64 {
    let (fours, _) = docs.as_chunks::<4>();
    fours.iter().enumerate().fold(0, |bits, (i, four)| bits | u64::from(below_4(four, limit)) << (4 * i))
}

/// Bits of the scores above `threshold`. Their number is a multiple of 4, at most 64.
#[inline(always)]
pub(crate) fn above<const N: usize>(scores: &[f32; N], threshold: f32) -> u64 {
    let (fours, _) = scores.as_chunks::<4>();
    fours.iter().enumerate().fold(0, |bits, (i, four)| bits | u64::from(above_4(four, threshold)) << (4 * i))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_those_of_each_lane() {
        let docs = [3, 9, 1, 7, 7, 2, 0, 8];
        let scores = docs.map(|doc| doc as f32 / 2.0);
        for limit in 0..11 {
            let expected = (0..8).filter(|&i| docs[i] < limit).map(|i| 1 << i).sum::<u64>();
            assert_eq!(below(&docs, limit), expected);
            assert_eq!(above(&scores, limit as f32 / 2.0 - 0.25), 255 & !expected);
        }
    }
}
