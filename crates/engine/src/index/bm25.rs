//! BM25 in single precision, with one order of operations on CPUs and GPUs.
//!
//! ```text
//! score(d) = Σ weight(t) · tf / (tf + norm(d))        weight(t) = qtf · idf(t) · (k1 + 1)
//!            t                                         norm(d)  = k1 · (1 - b + b · length(d) / average)
//! ```
//!
//! Each product, quotient and sum of `(weight * tf) / (tf + norm)` is rounded once, without fused multiply-add. Terms
//! are added in the query's order: ascending document frequency, then term. Every executor therefore returns the same
//! bits.
//! Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.

use serde::{Deserialize, Serialize};

use tandem_base::base::named::named_enum;

/// The largest impact in an index of impacts.
pub const MAX_IMPACT: u32 = 255;

named_enum! {
    /// The form of the inverse document frequency.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Idf {
        /// ln(1 + (N - n + 0.5) / (n + 0.5)): always positive.
        Plus = "plus",
        /// The papers' form, ln((N - n + 0.5) / (n + 0.5)), bounded below by 1e-6: it is negative for terms in over half of
        /// the documents.
        Papers = "papers",
        /// The constant 1, because the postings of an index of impacts contain the idf. Requires [`Bm25::IMPACTS`].
        Impacts = "impacts",
    }
}

/// BM25's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bm25 {
    /// Saturation of the frequency; 1.2 by default.
    pub k1: f32,
    /// Share of the length normalisation, 0 to 1; 0.75 by default.
    pub b: f32,
    /// Form of the inverse document frequency.
    pub idf: Idf,
}

impl Default for Bm25 {
    fn default() -> Self {
        Self { k1: 1.2, b: 0.75, idf: Idf::Plus }
    }
}

impl Bm25 {
    /// Parameters of an index whose frequencies are impacts from 1 to 255. A score is the sum of impact times the
    /// term's count in the query. It is a whole number below 2^24, hence exact in single precision in any order of
    /// addition.
    ///
    /// This is BM25's limit for large `k1`, where the score is linear in the frequency. Every norm is 2^40, so `tf +
    /// norm` equals the norm in single precision. The weight is the count times 2^40, so `(weight * tf) / norm` is the
    /// product of two integers. No executor needs a special case.
    pub const IMPACTS: Self = Self { k1: (1_u64 << 40) as f32, b: 0.0, idf: Idf::Impacts };

    /// Maximum count of a term in a query of impacts. Sums of 64 terms stay below 2^24.
    const MAX_IMPACT_COUNT: u32 = 1024;

    /// Upper bound of [`Bm25::max_impact`] for these parameters.
    pub fn largest_impact(&self) -> f32 {
        let largest = if self.is_impacts() { MAX_IMPACT as f32 / self.k1 } else { 1.0 };
        largest * Self::LARGEST_IMPACT
    }

    /// Whether these are [`Bm25::IMPACTS`].
    pub fn is_impacts(&self) -> bool {
        self.idf == Idf::Impacts
    }

    /// The number of occurrences of a term in a query, from its weight under [`Bm25::IMPACTS`].
    #[inline]
    pub fn impact_count(weight: f32) -> u32 {
        (weight / Self::IMPACTS.k1) as u32
    }

    /// A term's weight `qtf · idf · (k1 + 1)`, computed in double precision and rounded once. It is positive.
    pub fn weight(&self, num_docs: u32, doc_freq: u32, qtf: u32) -> f32 {
        let (n, df) = (f64::from(num_docs), f64::from(doc_freq));
        let odds = (n - df + 0.5) / (df + 0.5);
        let idf = match self.idf {
            Idf::Plus => (1.0 + odds).ln(),
            Idf::Papers => odds.ln().max(1e-6),
            Idf::Impacts => 1.0,
        };
        let qtf = if self.is_impacts() { qtf.min(Self::MAX_IMPACT_COUNT) } else { qtf };
        (f64::from(qtf) * idf * (f64::from(self.k1) + 1.0)) as f32
    }

    /// A document's norm: `k1 · (1 - b + b · length / average)`, in double precision and rounded once.
    ///
    /// `average_length` is the collection's. A collection of empty documents has the norm `k1 · (1 - b)`.
    pub fn norm(&self, length: u32, average_length: f64) -> f32 {
        let relative = if average_length > 0.0 { f64::from(length) / average_length } else { 0.0 };
        let (k1, b) = (f64::from(self.k1), f64::from(self.b));
        (k1 * (1.0 - b + b * relative)) as f32
    }

    /// The contribution of one posting to a document's score.
    #[inline]
    pub fn score(weight: f32, tf: u32, norm: f32) -> f32 {
        let tf = tf as f32;
        (weight * tf) / (tf + norm)
    }

    /// Checks that `k1` is between 0 and 1000 (so that nothing overflows), and `b` between 0 and 1. Fails with the
    /// wrong parameter and its range.
    pub fn check(&self) -> Result<(), String> {
        if self.is_impacts() {
            return if *self == Self::IMPACTS { Ok(()) } else { Err("parameters for a BM25 of impacts".into()) };
        }
        if !(0.0..=1000.0).contains(&self.k1) {
            return Err(format!("k1 is {}, expected 0 to 1000", self.k1));
        }
        if !(0.0..=1.0).contains(&self.b) {
            return Err(format!("b is {}, expected 0 to 1", self.b));
        }
        Ok(())
    }

    /// Upper bound of `tf / (tf + norm)` over these postings that survives rounding. For every weight, [`Bm25::score`]
    /// of each posting is at most `weight * max_impact`, both in single precision.
    pub fn max_impact(postings: impl IntoIterator<Item = (u32, f32)>) -> f32 {
        postings.into_iter().map(|(tf, norm)| Self::score(1.0, tf, norm)).fold(0.0, f32::max) * Self::LARGEST_IMPACT
    }

    /// Upper bound of every [`Bm25::max_impact`]: one plus eight units in the last place.
    ///
    /// The score is rounded three times, the impact twice and its product with the weight once, each by at most half a
    /// unit. Eight units cover these errors, upwards for upper bounds and downwards for lower ones.
    pub const LARGEST_IMPACT: f32 = 1.0 + 8.0 * f32::EPSILON;
    /// Factor that turns an impact into a lower bound that survives rounding.
    pub(crate) const LOWER_BOUND: f32 = 1.0 - 8.0 * f32::EPSILON;

    /// The norms of all documents in order, as executors and GPUs use them.
    pub fn norms(&self, lengths: &[u32], average_length: f64) -> Vec<f32> {
        lengths.iter().map(|&length| self.norm(length, average_length)).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_score_exceeds_weight_times_max_impact(
            k1 in 0.0_f32..1000.0,
            b in 0.0_f32..=1.0,
            papers: bool,
            lengths in proptest::collection::vec((1_u32..50_000, 1_u32..5_000), 1..20),
            doc_freq in 1_u32..1_000_000,
            qtf in 1_u32..9,
        ) {
            let idf = if papers { Idf::Papers } else { Idf::Plus };
            let bm25 = Bm25 { k1, b, idf };
            let weight = bm25.weight(1_000_000, doc_freq, qtf);
            let postings: Vec<(u32, f32)> = lengths.iter().map(|&(l, tf)| (tf, bm25.norm(l, 321.7))).collect();
            let bound = weight * Bm25::max_impact(postings.iter().copied());
            for (tf, norm) in postings {
                prop_assert!(Bm25::score(weight, tf, norm) <= bound);
            }
        }
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let check = |k1, b| Bm25 { k1, b, idf: Idf::Plus }.check();
        assert!(check(0.0, 0.0).is_ok() && check(1000.0, 1.0).is_ok());
        assert!(check(f32::NAN, 0.5).is_err() && check(-0.1, 0.5).is_err() && check(f32::INFINITY, 0.5).is_err());
        assert!(check(1.2, 1.1).is_err() && check(1.2, f32::NAN).is_err());
    }
}
