//! The score: PageRank and BM25, weighed.
//!
//! ```text
//!     S(d, q)  = α PR(d) + (1 − α) Σ_{t in q} w̄_t IR(d, t)              IR = (1 + a) f / (a (1 + b (l − 1)) + f)
//!     GS(d)    = α PR(d) + (1 − α) max_{t in d} IR(d, t)   ≥ S(d, q)      w̄_t = w_t / Σ w_t',  w_t = ln((N − s + ½)/(s + ½))
//! ```
//!
//! l is a document's length over the mean, f a term's frequency in it, s the documents that have the term. A term that
//! more than half of the documents have would weigh less than nothing: w_t is at least [`LEAST_WEIGHT`].
//!
//! Every step is rounded once to single precision, none is fused; the kernel does the same steps. GS is rounded up, by more
//! than all roundings of a score, so that no score exceeds it.

use tandem_core::base::random::ln;

/// The least weight of a term.
const LEAST_WEIGHT: f64 = 1e-6;
/// What GS is multiplied by: fewer than 2 [`MAX_TERMS`] + 8 roundings of half a unit are between it and a score.
const GS_SLACK: f32 = 1.0 + 64.0 * f32::EPSILON;
/// Terms of a query at most.
pub(crate) const MAX_TERMS: usize = 32;

/// The parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranking {
    /// a: how soon repetitions of a term count no more.
    pub(crate) a: f32,
    /// b: how much a document's length counts.
    pub(crate) b: f32,
    /// α: the share of PageRank.
    pub(crate) alpha: f32,
}

impl Default for Ranking {
    /// The paper's.
    fn default() -> Self {
        Self { a: 1.2, b: 0.75, alpha: 0.3 }
    }
}

impl Ranking {
    /// 1 + a, which no IR reaches.
    pub(crate) fn ceiling(&self) -> f32 {
        1.0 + self.a
    }

    /// a (1 + b (l − 1)).
    pub(super) fn norm(&self, length: u32, average_length: f64) -> f32 {
        let relative = f64::from(length) / average_length;
        (f64::from(self.a) * (1.0 + f64::from(self.b) * (relative - 1.0))) as f32
    }

    /// IR of a posting.
    #[inline]
    pub(super) fn impact(&self, freq: u32, norm: f32) -> f32 {
        let freq = freq as f32;
        self.ceiling() * freq / (norm + freq)
    }

    /// α PR, with PageRank scaled to 0 to 1 + a: what a document scores before any term.
    pub(super) fn prior(&self, page_rank: f32) -> f32 {
        self.alpha * page_rank * self.ceiling()
    }

    /// GS of a document with this prior and this largest IR.
    pub(super) fn global_score(&self, prior: f32, max_impact: f32) -> f32 {
        (prior + (1.0 - self.alpha) * max_impact) * GS_SLACK
    }

    /// (1 − α) w̄_t of a query's terms, from the documents that have each.
    pub(super) fn weights(&self, num_docs: u32, doc_freqs: &[u32]) -> Vec<f32> {
        let weight = |&doc_freq: &u32| {
            let (all, with) = (f64::from(num_docs), f64::from(doc_freq));
            ln((all - with + 0.5) / (with + 0.5)).max(LEAST_WEIGHT)
        };
        let weights: Vec<f64> = doc_freqs.iter().map(weight).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| ((1.0 - f64::from(self.alpha)) * weight / sum) as f32).collect()
    }
}
