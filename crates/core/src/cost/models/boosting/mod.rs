//! Gradient boosting: a sum of many small trees, each of which corrects the previous ones.
//!
//! The first estimate is the mean. Each tree is fitted to the residuals, and a part of its prediction is added:
//!
//! ```text
//! ln(us) = 3.1  +  tree 1: lookups > 800? essential_postings > 2048? ...  ->  +0.42
//!               +  tree 2: shortest > 61?  expected_found > 10?      ...  ->  -0.11
//!               +  ...
//! ```
//!
//! Trees are *symmetric*: all nodes of a level ask the same question. Such a tree is a table indexed by the bits of the
//! answers, so no branch depends on a query ([`SymmetricTrees`]), and a scheduler gets its estimate in a few hundred
//! nanoseconds. A symmetric tree is weaker than one with free questions, and harder to overfit.
//!
//! Some samples have far larger residuals than others, whatever the questions. For each tree, the largest tenth of the
//! residuals is clipped to the rest (Huber's loss).
//!
//! Known boosting libraries grow free trees or wrap a C++ library. None gives trees of this form, so `grow.rs` contains
//! the fit, a hundred lines on histograms.
//!
//! Source: Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of Statistics 2001, which
//! also has the loss. Symmetric trees: Kohavi and Li, "Oblivious Decision Trees, Graphs, and Top-Down Pruning", IJCAI
//! 1995, and Prokhorenkova et al., "CatBoost: Unbiased Boosting with Categorical Features", NeurIPS 2018.

mod grow;
mod stored;
mod trees;

use self::grow::BoostingOptions;
use self::stored::StoredBoosting;
pub(in crate::cost) use self::trees::SymmetricTrees;
use super::samples::Samples;
use super::tree::FitError;
use super::{FitOptions, LN_US, Regression};
use crate::base::random::exp;
use crate::cost::inputs::{InputSet, NUM_INPUTS};

impl Regression for SymmetricTrees {
    const NAME: &'static str = "boosting";
    const HELP: &'static str = "A sum of small trees, each correcting those before it: the most exact";
    const TARGET: &'static str = LN_US;

    type Stored = StoredBoosting;

    fn fit(samples: &Samples, options: &FitOptions) -> Result<Self, FitError> {
        let options = BoostingOptions { seed: options.seed, ..BoostingOptions::default() };
        Ok(SymmetricTrees::fit(samples, &options))
    }

    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        exp(self.predict(inputs))
    }

    fn asks(&self) -> InputSet {
        self.trees().flat_map(|tree| tree.inputs).map(usize::from).collect()
    }

    fn size(&self) -> (usize, &'static str) {
        (self.len(), "trees")
    }

    fn stored(&self) -> StoredBoosting {
        self.into()
    }

    fn checked(stored: &StoredBoosting, features: InputSet, place: &str) -> Result<Self, String> {
        stored.check(features, place)
    }
}
