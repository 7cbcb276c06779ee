//! Savings of moving a document to the other half, term by term.
//!
//! A term in d of a half's n documents costs about `d log2(n / (d + 1))` bits there: d gaps of n / (d + 1). Moving one
//! of its documents from the left half (d1 of n1) to the right (d2 of n2) saves
//!
//! ```text
//! log2(n1) - log2(n2) - step(d1) + step(d2 + 1)      step(d) = d log2(d + 1) - (d - 1) log2(d)
//! ```
//!
//! A table of `step` for small numbers therefore gives all gains.

use rayon::prelude::*;

/// Entries of the table, which takes 256 KiB.
const TABLE_LEN: usize = 1 << 16;
const TERMS_A_TASK: usize = 1 << 14;

/// The function `step` of the [module](self).
pub(crate) struct Steps {
    table: Vec<f32>,
}

/// Savings of a move in bits, for each term: of a document in the left half, and of one in the right half.
pub(crate) struct Gains {
    pub(crate) left: Vec<f32>,
    pub(crate) right: Vec<f32>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Self { table: (0..TABLE_LEN as u32).map(step).collect() }
    }

    #[inline]
    fn of(&self, doc_freq: u32) -> f32 {
        self.table.get(doc_freq as usize).copied().unwrap_or_else(|| step(doc_freq))
    }
}

/// `d log2(d + 1) - (d - 1) log2(d)`, without cancellation.
fn step(doc_freq: u32) -> f32 {
    let d = f64::from(doc_freq.max(1));
    (d.log2() + d * (1.0 / d).ln_1p() * std::f64::consts::LOG2_E) as f32
}

impl Gains {
    pub(crate) fn new(num_terms: usize) -> Self {
        Self { left: vec![0.0; num_terms], right: vec![0.0; num_terms] }
    }

    /// Computes all gains from each term's documents in the halves of `sizes` documents.
    pub(crate) fn compute(&mut self, steps: &Steps, left_freqs: &[u32], right_freqs: &[u32], sizes: (usize, usize)) {
        let size_bits = ((sizes.0 as f64).log2() - (sizes.1 as f64).log2()) as f32;
        let tasks = self.left.par_chunks_mut(TERMS_A_TASK).zip(self.right.par_chunks_mut(TERMS_A_TASK));
        let freqs = left_freqs.par_chunks(TERMS_A_TASK).zip(right_freqs.par_chunks(TERMS_A_TASK));
        tasks.zip(freqs).for_each(|((left, right), (left_freqs, right_freqs))| {
            let terms = left.iter_mut().zip(right).zip(left_freqs.iter().zip(right_freqs));
            for ((left, right), (&d1, &d2)) in terms {
                *left = size_bits - steps.of(d1) + steps.of(d2 + 1);
                *right = -size_bits - steps.of(d2) + steps.of(d1 + 1);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of a term in a half, by the module's formula.
    fn cost(d: u32, n: u32) -> f64 {
        f64::from(d) * (f64::from(n) / (f64::from(d) + 1.0)).log2()
    }

    #[test]
    fn a_gain_is_the_cost_before_less_the_cost_after() {
        let steps = Steps::new();
        let freqs = [(1, 0), (1, 1), (5, 9), (70_000, 12), (99_999, 65_535)];
        let sizes = (100_001, 100_000);
        let (left, right): (Vec<u32>, Vec<u32>) = freqs.iter().copied().unzip();
        let mut gains = Gains::new(freqs.len());
        gains.compute(&steps, &left, &right, (sizes.0 as usize, sizes.1 as usize));
        for (i, (d1, d2)) in freqs.into_iter().enumerate() {
            let before = cost(d1, sizes.0) + cost(d2, sizes.1);
            let after = cost(d1 - 1, sizes.0) + cost(d2 + 1, sizes.1);
            assert!((f64::from(gains.left[i]) - (before - after)).abs() < 1e-4, "{d1} {d2}");
            if d2 > 0 {
                let after = cost(d1 + 1, sizes.0) + cost(d2 - 1, sizes.1);
                assert!((f64::from(gains.right[i]) - (before - after)).abs() < 1e-4, "{d1} {d2}");
            }
        }
    }
}
