//! Searching in decoded blocks, and over the last documents of all blocks.
//!
//! | question | answer |
//! | --- | --- |
//! | which block may hold a document? | [`find_block`]: strides that double, then halves |
//! | where in a block is a document? | [`first_geq`]: seven steps without a branch |
//! | which of many documents are in a block? | [`intersect`]: eight against eight at once |
//!
//! [`intersect`] compares eight documents of one side with all rotations of eight of the other. Then the eight with the
//! smaller last document are done, or both if those are equal:
//!
//! ```text
//! a   2  5  9 12 17 20 21 30 | 41 ...      eight comparisons of a with b, b rotated by 1, by 2, ...
//! b   1  5  6  8  9 17 18 19 | 22 ...      19 < 30: b moves on
//! ```
//!
//! Source: Schlegel, Willhalm and Lehner, "Fast Sorted-Set Intersection using SIMD Instructions", ADMS 2011.

use crate::index::BLOCK_LEN;

/// The first block from `from` on whose last document is at least `target`, or the number of blocks. Targets tend to be
/// near, so strides double until they pass it.
#[inline]
pub(crate) fn find_block(last_docs: &[u32], from: usize, target: u32) -> usize {
    let ahead = last_docs.get(from..).unwrap_or_default();
    let mut stride = 1;
    while stride < ahead.len() && ahead[stride - 1] < target {
        stride *= 2;
    }
    let (low, high) = (stride / 2, stride.min(ahead.len()));
    from + low + ahead[low..high].partition_point(|&last_doc| last_doc < target)
}

/// The position of the first value of at least `target` in an ascending block, or the last position.
#[inline]
pub(crate) fn first_geq(docs: &[u32; BLOCK_LEN], target: u32) -> usize {
    let mut position = 0;
    let mut half = BLOCK_LEN / 2;
    while half > 0 {
        position += if docs[position + half - 1] < target { half } else { 0 };
        half /= 2;
    }
    position
}

/// Bit i is set if `wanted[i]` is in `docs`. Both ascend, and `wanted` has at most a block's length.
#[inline]
pub(crate) fn intersect(wanted: &[u32], docs: &[u32; BLOCK_LEN]) -> u128 {
    assert!(wanted.len() <= BLOCK_LEN, "{} documents are more than a block", wanted.len());
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the line above checked for AVX2.
        return unsafe { intersect_avx2(wanted, docs) };
    }
    intersect_portable(wanted, docs)
}

fn intersect_portable(wanted: &[u32], docs: &[u32; BLOCK_LEN]) -> u128 {
    let bit = |(i, &doc): (usize, &u32)| u128::from(docs[first_geq(docs, doc)] == doc) << i;
    wanted.iter().enumerate().map(bit).sum()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn intersect_avx2(wanted: &[u32], docs: &[u32; BLOCK_LEN]) -> u128 {
    use std::arch::x86_64::{
        __m256i, _mm256_castsi256_ps, _mm256_cmpeq_epi32, _mm256_movemask_ps, _mm256_or_si256,
        _mm256_permutevar8x32_epi32, _mm256_setr_epi32,
    };

    let (wanted_eights, rest) = wanted.as_chunks::<8>();
    let (docs_eights, _) = docs.as_chunks::<8>();
    let rotation = _mm256_setr_epi32(1, 2, 3, 4, 5, 6, 7, 0);
    let mut hits = [0_u8; BLOCK_LEN / 8];
    let (mut i, mut j) = (0, 0);
    while i < wanted_eights.len() && j < docs_eights.len() {
        let a: __m256i = bytemuck::cast(wanted_eights[i]);
        let mut b: __m256i = bytemuck::cast(docs_eights[j]);
        let mut equal = _mm256_cmpeq_epi32(a, b);
        for _ in 1..8 {
            b = _mm256_permutevar8x32_epi32(b, rotation);
            equal = _mm256_or_si256(equal, _mm256_cmpeq_epi32(a, b));
        }
        hits[i] |= _mm256_movemask_ps(_mm256_castsi256_ps(equal)) as u8;
        let (a_last, b_last) = (wanted_eights[i][7], docs_eights[j][7]);
        i += usize::from(a_last <= b_last);
        j += usize::from(b_last <= a_last);
    }
    let hits = u128::from_le_bytes(hits);
    if rest.is_empty() { hits } else { hits | intersect_portable(rest, docs) << (8 * wanted_eights.len()) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn first_geq_equals_partition_point_wherever_one_exists() {
        let docs: [u32; BLOCK_LEN] = std::array::from_fn(|i| 3 * i as u32 + 1);
        for target in 0..=docs[BLOCK_LEN - 1] {
            assert_eq!(first_geq(&docs, target), docs.partition_point(|&doc| doc < target), "{target}");
        }
        assert_eq!(first_geq(&docs, u32::MAX), BLOCK_LEN - 1);
    }

    #[test]
    fn find_block_equals_partition_point_from_anywhere() {
        for len in 0..20_u32 {
            let last_docs: Vec<u32> = (0..len).map(|i| 4 * i + 2).collect();
            for (from, target) in (0..=len as usize + 1).flat_map(|from| (0..4 * len + 5).map(move |t| (from, t))) {
                let expected = last_docs.partition_point(|&last| last < target).max(from);
                assert_eq!(find_block(&last_docs, from, target), expected, "{len} blocks, {target} from {from}");
            }
        }
    }

    proptest! {
        #[test]
        fn intersect_finds_what_both_hold(
            docs in prop::collection::btree_set(0..1000_u32, 1..=BLOCK_LEN),
            wanted in prop::collection::btree_set(0..1000_u32, 0..=BLOCK_LEN),
        ) {
            let docs: Vec<u32> = docs.into_iter().collect();
            let wanted: Vec<u32> = wanted.into_iter().collect();
            let mut block = [u32::MAX; BLOCK_LEN];
            block[..docs.len()].copy_from_slice(&docs);
            let expected = wanted.iter().enumerate().map(|(i, doc)| u128::from(docs.contains(doc)) << i).sum::<u128>();
            prop_assert_eq!(intersect(&wanted, &block), expected);
            prop_assert_eq!(intersect_portable(&wanted, &block), expected);
        }
    }
}
