//! The number of terms, and the expected document frequency of each.

use tandem_base::base::random::pow;

use crate::index::IndexError;

/// Heaps' law: `V = VOCABULARY_FACTOR * N^VOCABULARY_EXPONENT`. The English Wikipedia has twice as many terms, most in
/// one document.
const VOCABULARY_FACTOR: f64 = 200.0;
const VOCABULARY_EXPONENT: f64 = 0.6;
/// Slope of document frequency over rank, both logarithmic, away from the head.
const ZIPF_EXPONENT: f64 = 1.2;
/// Share of the documents that hold the most frequent term.
const TOP_SHARE: f64 = 0.9;
/// Distinct terms of a document per token of its length: 110 for 240 tokens, as in web and encyclopedia text.
const DISTINCT_PER_TOKEN: f64 = 0.46;

/// Terms by rank, and the expected document frequency of each.
///
/// `df(r) = 0.9 N ((1 + q) / (r + q))^1.2` for ranks r from 1, at least 1. The offset q is fitted so that a document
/// has 0.46 distinct terms per token of mean length.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    doc_freqs: Vec<f64>,
    digits: usize,
}

impl Vocabulary {
    /// The vocabulary size by Heaps' law for `num_docs` documents.
    pub fn heaps_size(num_docs: u32) -> u32 {
        (VOCABULARY_FACTOR * pow(f64::from(num_docs.max(1)), VOCABULARY_EXPONENT)).round() as u32
    }

    /// Expected postings in all lists, independent of the vocabulary.
    pub(crate) fn expected_postings(num_docs: u32, mean_length: f64) -> f64 {
        f64::from(num_docs) * mean_length * DISTINCT_PER_TOKEN
    }

    /// Fits the law to a collection. Fails if no offset gives that many postings, because documents are too long or too
    /// short for the vocabulary.
    pub fn fit(num_docs: u32, mean_length: f64, num_terms: u32) -> Result<Self, IndexError> {
        let wanted = Self::expected_postings(num_docs, mean_length);
        let law = |rank: f64, offset: f64| {
            let top = TOP_SHARE * f64::from(num_docs);
            (top * pow((1.0 + offset) / (rank + offset), ZIPF_EXPONENT)).max(1.0)
        };
        // Ranks are summed in runs of a 256th of the first, each by its middle: millions of terms in a few thousand
        // steps.
        let sum = |offset: f64| {
            let (mut total, mut rank) = (0.0, 1);
            while rank <= num_terms {
                let run = (rank / 256).max(1).min(num_terms - rank + 1);
                total += f64::from(run) * law(f64::from(rank) + f64::from(run - 1) / 2.0, offset);
                rank += run;
            }
            total
        };
        let (mut low, mut high) = (0.0, 1.0);
        while sum(high) < wanted {
            (low, high) = (high, high * 4.0);
            if high > 1e6 {
                let message = format!(
                    "{num_terms} terms are too few for documents of {mean_length} tokens on average (it takes more \
                     terms)"
                );
                return Err(IndexError::Collection(message));
            }
        }
        if low == 0.0 && sum(low) > wanted {
            let message = format!(
                "{num_terms} terms are too many for {num_docs} documents of {mean_length} tokens on average (it takes \
                 fewer terms, more documents or longer ones)"
            );
            return Err(IndexError::Collection(message));
        }
        // 24 halvings give q to a millionth of itself, and postings need far less.
        for _ in 0..24 {
            let middle = (low + high) / 2.0;
            if sum(middle) < wanted { low = middle } else { high = middle }
        }
        let digits = (num_terms.ilog10() as usize + 1).max(7);
        let doc_freqs = (1..=num_terms).map(|rank| law(f64::from(rank), high)).collect();
        Ok(Self { doc_freqs, digits })
    }

    /// Number of terms.
    pub fn len(&self) -> usize {
        self.doc_freqs.len()
    }

    /// Whether there is no term.
    pub fn is_empty(&self) -> bool {
        self.doc_freqs.is_empty()
    }

    /// The expected document frequencies, from the most frequent term down.
    pub fn doc_freqs(&self) -> &[f64] {
        &self.doc_freqs
    }

    /// The term's text: `t0000017` for the eighteenth most frequent. Byte order equals rank order.
    pub fn text(&self, term: usize) -> String {
        format!("t{term:0digits$}", digits = self.digits)
    }
}
