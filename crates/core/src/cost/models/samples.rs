//! What a model is fitted to: queries of one class and mode, with what they took.

use crate::base::random::ln;
use crate::cost::inputs::{InputSet, Inputs, NUM_INPUTS};

/// Queries' inputs and measured times. What is not known of every query is known of none: its column holds 0.
#[derive(Clone, Debug)]
pub(in crate::cost) struct Samples {
    known: InputSet,
    rows: Vec<[f64; NUM_INPUTS]>,
    us: Vec<f64>,
}

impl Samples {
    /// Of queries with these inputs that took these microseconds, above 0.
    pub(in crate::cost) fn new(rows: &[Inputs], us: Vec<f64>) -> Self {
        let known = rows.iter().fold(InputSet::ALL, |known, row| known.and(row.known()));
        let kept = |row: &Inputs| std::array::from_fn(|i| if known.contains(i) { row.0[i] } else { 0.0 });
        Self { known, rows: rows.iter().map(kept).collect(), us }
    }

    /// Those at these positions.
    pub(in crate::cost) fn at(&self, positions: &[usize]) -> Self {
        let rows = positions.iter().map(|&i| self.rows[i]).collect();
        Self { known: self.known, rows, us: positions.iter().map(|&i| self.us[i]).collect() }
    }

    /// The same, of which only these inputs are known.
    pub(in crate::cost) fn knowing(&self, inputs: InputSet) -> Self {
        let known = self.known.and(inputs);
        let kept = |row: &[f64; NUM_INPUTS]| std::array::from_fn(|i| if known.contains(i) { row[i] } else { 0.0 });
        Self { known, rows: self.rows.iter().map(kept).collect(), us: self.us.clone() }
    }

    /// How many.
    pub(in crate::cost) fn len(&self) -> usize {
        self.rows.len()
    }

    /// What is known of all of them.
    pub(in crate::cost) fn known(&self) -> InputSet {
        self.known
    }

    /// By sample, its inputs.
    pub(in crate::cost) fn rows(&self) -> &[[f64; NUM_INPUTS]] {
        &self.rows
    }

    /// By sample, the inputs as a model is asked with them.
    #[cfg(test)]
    pub(in crate::cost) fn inputs(&self, sample: usize) -> Inputs {
        Inputs(self.rows[sample])
    }

    /// By sample, what it took, in microseconds.
    pub(in crate::cost) fn us(&self) -> &[f64] {
        &self.us
    }

    /// The logarithms of that, by the portable `ln`.
    pub(in crate::cost) fn ln_us(&self) -> Vec<f64> {
        self.us.iter().map(|&us| ln(us)).collect()
    }
}
