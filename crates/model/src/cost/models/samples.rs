//! Training data of a model: queries of one class and mode, with their measured times.

use crate::base::random::ln;
use crate::cost::inputs::{InputSet, Inputs, NUM_INPUTS};

/// Queries' inputs and measured times. Inputs that are unknown for any query are unknown for all, and their columns
/// hold 0.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    known: InputSet,
    rows: Vec<[f64; NUM_INPUTS]>,
    us: Vec<f64>,
}

impl Samples {
    /// Samples with these inputs and microseconds, above 0.
    pub(crate) fn new(rows: &[Inputs], us: Vec<f64>) -> Self {
        let known = rows.iter().fold(InputSet::ALL, |known, row| known.and(row.known()));
        let kept = |row: &Inputs| std::array::from_fn(|i| if known.contains(i) { row.0[i] } else { 0.0 });
        Self { known, rows: rows.iter().map(kept).collect(), us }
    }

    pub(crate) fn at(&self, positions: &[usize]) -> Self {
        let rows = positions.iter().map(|&i| self.rows[i]).collect();
        Self { known: self.known, rows, us: positions.iter().map(|&i| self.us[i]).collect() }
    }

    /// The samples with the other inputs made unknown.
    pub(crate) fn knowing(&self, inputs: InputSet) -> Self {
        let known = self.known.and(inputs);
        let kept = |row: &[f64; NUM_INPUTS]| std::array::from_fn(|i| if known.contains(i) { row[i] } else { 0.0 });
        Self { known, rows: self.rows.iter().map(kept).collect(), us: self.us.clone() }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(crate) fn known(&self) -> InputSet {
        self.known
    }

    pub(crate) fn rows(&self) -> &[[f64; NUM_INPUTS]] {
        &self.rows
    }

    /// The inputs of a sample, as a model receives them.
    #[cfg(test)]
    pub(crate) fn inputs(&self, sample: usize) -> Inputs {
        Inputs(self.rows[sample])
    }

    pub(crate) fn us(&self) -> &[f64] {
        &self.us
    }

    /// Logarithms of the microseconds, by the portable `ln`.
    pub(crate) fn ln_us(&self) -> Vec<f64> {
        self.us.iter().map(|&us| ln(us)).collect()
    }
}
