//! The paper's score: a weighted sum of PageRank and BM25.
//!
//! ```text
//!     S(d, q)  = α PR(d) + (1 − α) Σ_{t in q} w̄_t IR(d, t)              IR = (1 + a) f / (a (1 + b (l − 1)) + f)
//!     GS(d)    = α PR(d) + (1 − α) max_{t in d} IR(d, t)   ≥ S(d, q)      w̄_t = w_t / Σ w_t',  w_t = ln((N − s + ½)/(s + ½))
//! ```
//!
//! l is the length of a document over the mean, f the frequency of a term in it, and s the number of documents with the
//! term. A term in more than half of the documents would have a negative weight; w_t is at least [`LEAST_WEIGHT`].
//!
//! Every step rounds once to single precision without fused operations, as the kernel does. GS is rounded up by more
//! than all roundings of a score, so that no score exceeds it.

use tandem_model::base::random::ln;

const LEAST_WEIGHT: f64 = 1e-6;
/// Factor of GS: fewer than 2 [`MAX_TERMS`] + 8 roundings of half a unit lie between GS and a score.
const GS_SLACK: f32 = 1.0 + 64.0 * f32::EPSILON;
pub(crate) const MAX_TERMS: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranking {
    /// a: saturation of the term frequency.
    pub(crate) a: f32,
    /// b: weight of the document's length.
    pub(crate) b: f32,
    /// α: weight of PageRank.
    pub(crate) alpha: f32,
}

impl Default for Ranking {
    fn default() -> Self {
        Self { a: 1.2, b: 0.75, alpha: 0.3 }
    }
}

impl Ranking {
    /// Returns 1 + a, which no IR reaches.
    pub(crate) fn ceiling(&self) -> f32 {
        1.0 + self.a
    }

    /// Returns a (1 + b (l − 1)).
    pub(crate) fn norm(&self, length: u32, average_length: f64) -> f32 {
        let relative = f64::from(length) / average_length;
        (f64::from(self.a) * (1.0 + f64::from(self.b) * (relative - 1.0))) as f32
    }

    /// Returns IR of a posting.
    #[inline]
    pub(crate) fn impact(&self, freq: u32, norm: f32) -> f32 {
        let freq = freq as f32;
        self.ceiling() * freq / (norm + freq)
    }

    /// Returns α PR with PageRank scaled to 0 to 1 + a, the score of a document without terms.
    pub(crate) fn prior(&self, page_rank: f32) -> f32 {
        self.alpha * page_rank * self.ceiling()
    }

    /// Returns GS of a document with this prior and this largest IR.
    pub(crate) fn global_score(&self, prior: f32, max_impact: f32) -> f32 {
        (prior + (1.0 - self.alpha) * max_impact) * GS_SLACK
    }

    /// Returns (1 − α) w̄_t of a query's terms from their document frequencies.
    pub(crate) fn weights(&self, num_docs: u32, doc_freqs: &[u32]) -> Vec<f32> {
        let weight = |&doc_freq: &u32| {
            let (all, with) = (f64::from(num_docs), f64::from(doc_freq));
            ln((all - with + 0.5) / (with + 0.5)).max(LEAST_WEIGHT)
        };
        let weights: Vec<f64> = doc_freqs.iter().map(weight).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| ((1.0 - f64::from(self.alpha)) * weight / sum) as f32).collect()
    }
}
