//! The regression tree that reads only the four published list lengths, as the project was specified.

use super::m5::PUBLISHED;
use super::samples::Samples;
use super::tree::{FitError, StoredTree, Tree};
use super::{FitOptions, LN_US, Regression};
use crate::cost::inputs::{InputSet, NUM_INPUTS};

/// A tree whose questions are about list lengths.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cost) struct LengthsTree(Tree);

impl Regression for LengthsTree {
    const NAME: &'static str = "lengths";
    const HELP: &'static str = "A regression tree that reads list lengths only: the four published features";
    const TARGET: &'static str = LN_US;

    type Stored = StoredTree;

    fn fit(samples: &Samples, options: &FitOptions) -> Result<Self, FitError> {
        let published = PUBLISHED.into_iter().collect();
        Tree::fit(&samples.knowing(published), options.max_depth, options.min_leaf).map(Self)
    }

    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        self.0.predict_us(inputs)
    }

    fn asks(&self) -> InputSet {
        self.0.asks()
    }

    fn size(&self) -> (usize, &'static str) {
        self.0.size()
    }

    fn stored(&self) -> StoredTree {
        self.0.stored()
    }

    fn checked(stored: &StoredTree, features: InputSet, place: &str) -> Result<Self, String> {
        Tree::checked(stored, features, place).map(Self)
    }
}
