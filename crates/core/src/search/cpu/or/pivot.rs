//! Positions of all cursors, and the pivot, found without sorting them.
//!
//! Terms stay in the query's order, one per vector lane. Each lane sums the bounds of all terms whose documents are not
//! above its own. The **pivot** is the least document whose sum exceeds the threshold:
//!
//! ```text
//!              rare    medium  common  the          threshold 6.0
//! document       47        90      12   91
//! bound         3.1       4.0     1.9  0.3
//! sum           5.0       9.0     1.9  9.3          12: common;  47: common and rare;  90: and medium
//! above                    90           91          pivot: the least, 90; limit: the next cursor's document, 91
//! ```
//!
//! The amount of work does not depend on which term moves next, so no order must be restored and no branch depends on
//! it. Each term costs a few instructions per comparison. Sorting pays only for many more terms: see `sorted.rs`.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::search::cpu::blocks::cursor::END;
use crate::search::cpu::blocks::term::Term;
use crate::search::cpu::scoring::threshold::Slack;
use crate::search::cpu::simd::{above, below};

/// A lower bound of the next document of each term, and the term's bound, for at most `N` terms.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Positions<const N: usize> {
    /// [`END`] past the ends of lists and in free lanes.
    pub(crate) docs: [u32; N],
    /// 0 in free lanes.
    pub(crate) bounds: [f32; N],
    num_terms: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Pivot {
    /// No document below it can enter.
    pub(crate) doc: u32,
    /// The terms that it may have, one bit each: those whose documents are not above it.
    pub(crate) members: u64,
    /// Upper bound of the sum of the members' bounds.
    pub(crate) sum: f32,
    /// The least document of the other terms.
    pub(crate) limit: u32,
}

/// Like [`Slack::bound_of_sum`], for 64 lanes.
#[inline]
pub(crate) fn bound_of_sum(sum: f32) -> f32 {
    Slack::OF_64.bound_of_sum(sum)
}

impl Pivot {
    /// The first member without which the others' `bounds` do not exceed `threshold`.
    #[inline(always)]
    pub(crate) fn required<const N: usize>(&self, bounds: &[f32; N], threshold: f32) -> Option<usize> {
        let mut rests = [0.0; N];
        for (rest, bound) in rests.iter_mut().zip(bounds) {
            *rest = self.sum - bound;
        }
        let required = self.members & !above(&rests, threshold);
        (required != 0).then(|| required.trailing_zeros() as usize)
    }
}

impl<const N: usize> Positions<N> {
    /// All terms at `start`, a lower bound of their first documents.
    pub(crate) fn new(terms: &[Term<'_>], start: u32) -> Self {
        let mut positions = Self { docs: [END; N], bounds: [0.0; N], num_terms: terms.len() };
        for (lane, term) in terms.iter().enumerate() {
            positions.docs[lane] = start;
            positions.bounds[lane] = term.bound;
        }
        positions
    }

    /// The pivot for this threshold. Its document is [`END`] if no document can enter.
    #[inline(always)]
    pub(crate) fn find_pivot(&self, threshold: f32) -> Pivot {
        #[cfg(target_arch = "x86_64")]
        if N.is_multiple_of(8) && std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the line above checked for AVX2.
            return unsafe { self.find_pivot_avx2(threshold) };
        }
        self.find_pivot_portable(threshold)
    }

    #[inline(always)]
    fn find_pivot_portable(&self, threshold: f32) -> Pivot {
        let mut sums = [0.0_f32; N];
        for (&doc, &bound) in self.docs[..self.num_terms].iter().zip(&self.bounds) {
            for (sum, &own) in sums.iter_mut().zip(&self.docs) {
                *sum += if doc <= own { bound } else { 0.0 };
            }
        }
        let mut doc = END;
        for (&sum, &own) in sums.iter().zip(&self.docs) {
            doc = doc.min(if sum > threshold { own } else { END });
        }
        let (mut sum, mut limit) = (0.0_f32, END);
        for (&own_sum, &own) in sums.iter().zip(&self.docs) {
            if own <= doc {
                sum = sum.max(own_sum);
            } else {
                limit = limit.min(own);
            }
        }
        Pivot { doc, members: below(&self.docs, doc + 1), sum: bound_of_sum(sum), limit }
    }

    /// Equals the portable version. `N` is a multiple of 8 and at most 64.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline]
    fn find_pivot_avx2(&self, threshold: f32) -> Pivot {
        let (docs, _) = self.docs.as_chunks::<8>();
        let zeros = _mm256_setzero_si256();
        let lanes: [__m256i; 8] = std::array::from_fn(|i| if i < N / 8 { bytemuck::cast(docs[i]) } else { zeros });
        // Two sums, each of every other term, break the chain of dependent additions.
        let mut sums = [[_mm256_setzero_ps(); 8]; 2];
        for first in (0..self.num_terms).step_by(2) {
            for (sums, term) in sums.iter_mut().zip(first..) {
                // The last lane may be free; its bound is 0.
                let (doc, bound) = (_mm256_set1_epi32(self.docs[term] as i32), _mm256_set1_ps(self.bounds[term]));
                for (sum, &own) in sums.iter_mut().zip(&lanes[..N / 8]) {
                    let is_above = _mm256_castsi256_ps(_mm256_cmpgt_epi32(doc, own));
                    *sum = _mm256_add_ps(*sum, _mm256_andnot_ps(is_above, bound));
                }
            }
        }
        // Numbers that do not count are replaced by END, whose bits below the sign are ones.
        let end = _mm256_set1_epi32(END as i32);
        let mut least = end;
        for (i, &own) in lanes[..N / 8].iter().enumerate() {
            sums[0][i] = _mm256_add_ps(sums[0][i], sums[1][i]);
            let is_low = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_LE_OQ>(sums[0][i], _mm256_set1_ps(threshold)));
            least = _mm256_min_epi32(least, _mm256_or_si256(own, _mm256_and_si256(is_low, end)));
        }
        let least = min_of_lanes(least);
        let (mut limit, mut sum, mut others) = (end, zeros, 0);
        for (i, &own) in lanes[..N / 8].iter().enumerate() {
            let is_above = _mm256_cmpgt_epi32(own, least);
            others |= u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(is_above)) as u32) << (8 * i);
            limit = _mm256_min_epi32(limit, _mm256_or_si256(own, _mm256_andnot_si256(is_above, end)));
            // Non-negative sums order as their bits do. The pivot's sum is the greatest up to it.
            sum = _mm256_max_epi32(sum, _mm256_andnot_si256(is_above, _mm256_castps_si256(sums[0][i])));
        }
        // END minus the least difference from END is the greatest sum.
        let sum = _mm256_sub_epi32(end, min_of_lanes(_mm256_sub_epi32(end, sum)));
        Pivot {
            doc: _mm256_cvtsi256_si32(least) as u32,
            members: !others & (u64::MAX >> (64 - N)),
            sum: bound_of_sum(f32::from_bits(_mm256_cvtsi256_si32(sum) as u32)),
            limit: _mm256_cvtsi256_si32(min_of_lanes(limit)) as u32,
        }
    }

    /// Sets the lower bound of the next document of a term.
    #[inline(always)]
    pub(crate) fn set(&mut self, term: usize, doc: u32) {
        if N <= 16 {
            // Writing all lanes lets the next load of all lanes proceed without a wait for a partial store.
            for (lane, own) in (0_u32..).zip(&mut self.docs) {
                *own = if lane == term as u32 { doc } else { *own };
            }
        } else {
            self.docs[term] = doc;
        }
    }

    /// Raises the lower bounds of the members' next documents to `doc`.
    #[inline(always)]
    pub(crate) fn lift(&mut self, members: u64, doc: u32) {
        for (lane, own) in self.docs.iter_mut().enumerate() {
            *own = (*own).max(if members >> lane & 1 == 1 { doc } else { 0 });
        }
    }
}

/// The least number, in all lanes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn min_of_lanes(v: __m256i) -> __m256i {
    let v = _mm256_min_epi32(v, _mm256_permute2x128_si256::<1>(v, v));
    let v = _mm256_min_epi32(v, _mm256_shuffle_epi32::<0b01_00_11_10>(v));
    _mm256_min_epi32(v, _mm256_shuffle_epi32::<0b10_11_00_01>(v))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check<const N: usize>(lanes: &[(u32, f32)], threshold: f32) {
        let mut positions = Positions { docs: [END; N], bounds: [0.0; N], num_terms: lanes.len() };
        for (lane, &(doc, bound)) in lanes.iter().enumerate() {
            positions.bounds[lane] = bound;
            positions.set(lane, doc);
        }
        let sum_up_to = |doc: u32| lanes.iter().filter(|lane| lane.0 <= doc).map(|lane| lane.1).sum::<f32>();
        let docs = || lanes.iter().map(|lane| lane.0);
        let doc = docs().filter(|&doc| sum_up_to(doc) > threshold).min().unwrap_or(END);
        for pivot in [positions.find_pivot(threshold), positions.find_pivot_portable(threshold)] {
            assert_eq!(pivot.doc, doc);
            if doc < END {
                let members: Vec<usize> = (0..lanes.len()).filter(|&lane| lanes[lane].0 <= doc).collect();
                assert_eq!(pivot.members, members.iter().map(|&lane| 1 << lane).sum::<u64>());
                assert_eq!(pivot.limit, docs().filter(|&other| other > doc).min().unwrap_or(END));
                assert_eq!(pivot.sum, bound_of_sum(sum_up_to(doc)));
                let required = pivot.required(&positions.bounds, threshold);
                assert_eq!(required, members.into_iter().find(|&lane| pivot.sum - lanes[lane].1 <= threshold));
            }
        }
        positions.lift(0b101, 7);
        for (lane, &(doc, _)) in lanes.iter().enumerate() {
            assert_eq!(positions.docs[lane], if lane == 0 || lane == 2 { doc.max(7) } else { doc });
        }
    }

    proptest! {
        #[test]
        fn pivots_are_those_of_the_definition(
            // Multiples of a power of two add without rounding, in any order.
            lanes in prop::collection::vec(
                (prop_oneof![0..20_u32, Just(END)], (1..40_u8).prop_map(|b| f32::from(b) / 8.0)),
                1..=64,
            ),
            threshold in (0..400_u16).prop_map(|threshold| f32::from(threshold) / 8.0),
        ) {
            check::<64>(&lanes, threshold);
            check::<32>(&lanes[..lanes.len().min(32)], threshold);
            check::<16>(&lanes[..lanes.len().min(16)], threshold);
            check::<8>(&lanes[..lanes.len().min(8)], threshold);
        }
    }
}
