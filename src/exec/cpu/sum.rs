//! What a document's score is summed in: single precision, or integers where postings hold impacts.
//!
//! An index of impacts ([`Bm25::IMPACTS`](crate::index::Bm25::IMPACTS)) makes a score a sum of small integers. 16 bits hold it for all but
//! absurd queries: twice as many to a vector, half of the cache, and neither a norm nor a quotient. Both give the bits that
//! [`Bm25::score`] gives.

use std::fmt::Debug;
use std::ops::AddAssign;

use crate::index::{Bm25, MAX_IMPACT};

use super::scoring::score_block;
use super::term::Term;

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

/// The weight of a term is its count in the query, and norms play no part.
impl Sum for u16 {
    const LEAST: Self = 1;

    #[inline(always)]
    fn write_shares(_: &[u32], impacts: &[u32], weight: f32, _: &[f32], out: &mut [Self]) {
        let count = Bm25::impact_count(weight) as Self;
        for (share, &impact) in out.iter_mut().zip(impacts) {
            *share = impact as Self * count;
        }
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

/// Whether sums of impacts of these terms stay in 16 bits.
pub(super) fn fits_16_bits(terms: &[Term<'_>]) -> bool {
    let counts: u64 = terms.iter().map(|term| u64::from(Bm25::impact_count(term.weight))).sum();
    counts * u64::from(MAX_IMPACT) <= u64::from(u16::MAX)
}
