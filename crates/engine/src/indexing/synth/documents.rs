//! Documents of a synthetic collection: their lengths, and their tendency to contain terms.

use rayon::prelude::*;
use tandem_base::base::random::{Random, exp, pow};

use super::LENGTH_STREAMS;

/// Standard deviation of the logarithm of document lengths. Mean over median is e^(1/2) = 1.65.
const LENGTH_SIGMA: f64 = 1.0;
/// A document's **appetite** for terms grows as its length to this power: twice the text has 1.4 times the terms.
const APPETITE_EXPONENT: f64 = 0.5;
/// Maximum appetite, where 1 is a document of mean length. Documents of over 6.25 times the mean length are alike.
const APPETITE_MAX: f64 = 2.5;
/// Mean occurrences drawn at once in a document of appetite 1, fitted so that drawn tokens agree with lengths on
/// average.
const MEAN_BURST: f64 = 1.4;
/// Documents per random stream.
const CHUNK: usize = 1 << 16;

/// Lengths and appetites of all documents, which all terms share.
#[derive(Debug)]
pub struct Documents {
    lengths: Vec<u32>,
    /// Appetite over `APPETITE_MAX` in 256ths, at least 1.
    appetites: Vec<u8>,
}

impl Documents {
    /// Draws `num_docs` documents of lognormal lengths, `mean_length` tokens on average.
    pub fn draw(num_docs: usize, mean_length: f64, seed: u64) -> Self {
        let mut lengths = vec![0u32; num_docs];
        let mut appetites = vec![0u8; num_docs];
        let median = mean_length * exp(-LENGTH_SIGMA * LENGTH_SIGMA / 2.0);
        let chunks = lengths.par_chunks_mut(CHUNK).zip(appetites.par_chunks_mut(CHUNK)).enumerate();
        chunks.for_each(|(chunk, (lengths, appetites))| {
            let mut random = Random::new(seed, LENGTH_STREAMS + chunk as u64);
            for (length, appetite) in lengths.iter_mut().zip(appetites) {
                let tokens = (median * exp(LENGTH_SIGMA * random.normal())).round().max(1.0);
                *length = tokens as u32;
                let share = pow(tokens / mean_length, APPETITE_EXPONENT) / APPETITE_MAX;
                *appetite = (share * 256.0).round().clamp(1.0, 255.0) as u8;
            }
        });
        Self { lengths, appetites }
    }

    /// Tokens of each document.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Chance in 256ths that a point on each document becomes an occurrence.
    pub(crate) fn appetites(&self) -> &[u8] {
        &self.appetites
    }

    pub(crate) fn histogram(&self) -> AppetiteHistogram {
        let mut counts = [0u64; 256];
        self.appetites.iter().for_each(|&appetite| counts[usize::from(appetite)] += 1);
        AppetiteHistogram::new(&counts)
    }
}

/// Number of documents by appetite, in few bins, to predict how many documents a term will be in.
#[derive(Clone, Debug)]
pub(crate) struct AppetiteHistogram {
    /// Mean appetite and share of the documents.
    pub(crate) bins: Vec<(f64, f64)>,
    /// Mean appetite of all documents.
    pub(crate) mean: f64,
}

impl AppetiteHistogram {
    fn new(counts: &[u64; 256]) -> Self {
        let total: u64 = counts.iter().sum();
        let weigh = |range: std::ops::Range<usize>| -> (f64, f64) {
            let count: u64 = range.clone().map(|code| counts[code]).sum();
            let sum: u64 = range.map(|code| counts[code] * code as u64).sum();
            (sum as f64 / 256.0 / count.max(1) as f64, count as f64 / total.max(1) as f64)
        };
        let bins = (0..16).map(|bin| weigh(16 * bin..16 * (bin + 1))).filter(|&(_, share)| share > 0.0).collect();
        Self { bins, mean: weigh(0..256).0 }
    }
}

/// Chance in 256ths that an occurrence brings another one, by appetite.
pub(crate) fn repeat_chances() -> [u8; 256] {
    std::array::from_fn(|code| {
        let appetite = code as f64 / 256.0 * APPETITE_MAX;
        let mean = (MEAN_BURST * appetite).max(1.0);
        ((1.0 - 1.0 / mean) * 256.0).round().min(230.0) as u8
    })
}
