//! BM25, in single precision, in one order of operations that CPU and GPU share.
//!
//! ```text
//! score(d) = Σ weight(t) · tf / (tf + norm(d))        weight(t) = qtf · idf(t) · (k1 + 1)
//!            t                                         norm(d)  = k1 · (1 - b + b · length(d) / average)
//! ```
//!
//! Each product, quotient and sum is rounded once (no fused multiply-add), `(weight * tf) / (tf + norm)`, and terms are
//! added in the query's order (ascending document frequency, then term): so every executor gets the same bits.
//! Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009.

use serde::{Deserialize, Serialize};

/// The form of the inverse document frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Idf {
    /// ln(1 + (N - n + 0.5) / (n + 0.5)): always positive.
    Plus,
    /// ln((N - n + 0.5) / (n + 0.5)), the papers' form, at least 1e-6 (it is negative for terms in over half of the documents).
    Papers,
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
    /// A term's weight: `qtf · idf · (k1 + 1)`, computed in double precision and rounded once. Above zero.
    #[must_use]
    pub fn weight(&self, num_docs: u32, doc_freq: u32, qtf: u32) -> f32 {
        let (n, df) = (f64::from(num_docs), f64::from(doc_freq));
        let odds = (n - df + 0.5) / (df + 0.5);
        let idf = match self.idf {
            Idf::Plus => (1.0 + odds).ln(),
            Idf::Papers => odds.ln().max(1e-6),
        };
        (f64::from(qtf) * idf * (f64::from(self.k1) + 1.0)) as f32
    }

    /// A document's norm: `k1 · (1 - b + b · length / average)`, in double precision and rounded once.
    ///
    /// `average_length` is that of the collection; a collection of empty documents has norm `k1 · (1 - b)`.
    #[must_use]
    pub fn norm(&self, length: u32, average_length: f64) -> f32 {
        let relative = if average_length > 0.0 { f64::from(length) / average_length } else { 0.0 };
        let (k1, b) = (f64::from(self.k1), f64::from(self.b));
        (k1 * (1.0 - b + b * relative)) as f32
    }

    /// One posting's share of a document's score.
    #[must_use]
    #[inline]
    pub fn score(weight: f32, tf: u32, norm: f32) -> f32 {
        let tf = tf as f32;
        (weight * tf) / (tf + norm)
    }

    /// The norms of all documents, in order: what executors look up and the GPU keeps in device memory.
    #[must_use]
    pub fn norms(&self, lengths: &[u32], average_length: f64) -> Vec<f32> {
        lengths.iter().map(|&length| self.norm(length, average_length)).collect()
    }
}
