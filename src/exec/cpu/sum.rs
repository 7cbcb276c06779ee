//! What a document's score is summed in: single precision, or integers where postings hold impacts.
//!
//! An index of impacts ([`Bm25::IMPACTS`](crate::index::Bm25::IMPACTS)) makes a score a sum of small integers. 16 bits hold it for all but absurd
//! queries: twice as many to a vector, half of the cache, and neither a norm nor a quotient. All give the bits that
//! [`Bm25::score`](crate::index::Bm25::score) gives.

use std::fmt::Debug;
use std::ops::AddAssign;

use crate::index::Bm25;

use super::scoring::score_block;

/// A number that scores are summed in.
pub(super) trait Sum: Copy + Debug + Default + PartialOrd + AddAssign {
    /// The least sum that a document which matches can have.
    const LEAST: Self;

    /// Writes the share of each posting to the same place of `out`; all slices are of one length.
    fn write_shares(docs: &[u32], freqs: &[u32], weight: f32, norms: &[f32], out: &mut [Self]);

    /// The sum as a score.
    fn score(self) -> f32;

    /// A score as a sum; it is one, or 0.
    fn of_score(score: f32) -> Self;
}

impl Sum for f32 {
    const LEAST: Self = Self::MIN_POSITIVE;

    #[inline(always)]
    fn write_shares(docs: &[u32], freqs: &[u32], weight: f32, norms: &[f32], out: &mut [Self]) {
        score_block(docs, freqs, weight, norms, out);
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

/// Sums of impacts: the weight of a term is its count in the query, and norms play no part.
macro_rules! sum_of_impacts {
    ($integer:ty) => {
        impl Sum for $integer {
            const LEAST: Self = 1;

            #[inline(always)]
            fn write_shares(_: &[u32], freqs: &[u32], weight: f32, _: &[f32], out: &mut [Self]) {
                let count = Bm25::impact_count(weight) as Self;
                for (share, &impact) in out.iter_mut().zip(freqs) {
                    *share = impact as Self * count;
                }
            }

            #[inline(always)]
            fn score(self) -> f32 {
                self as f32
            }

            #[inline(always)]
            fn of_score(score: f32) -> Self {
                score as Self
            }
        }
    };
}

sum_of_impacts!(u16);
sum_of_impacts!(u32);
