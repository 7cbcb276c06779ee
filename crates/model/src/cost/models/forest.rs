//! The random forest: the mean of many regression trees, each grown on samples drawn with repetition.
//!
//! `smartcore` fits the forest, and its nodes are copied into [`Tree`]s.

use smartcore::ensemble::random_forest_regressor::{RandomForestRegressor, RandomForestRegressorParameters};
use smartcore::linalg::basic::matrix::DenseMatrix;

use super::samples::Samples;
use super::tree::{FitError, MAX_DEPTH, StoredTree, Tree, matrix};
use super::{FitOptions, LN_US, Regression};
use crate::base::random::exp;
use crate::cost::inputs::{InputSet, NUM_INPUTS};

/// Trees of a forest. More trees bring no visible gain.
const TREES: usize = 40;
const MOST_TREES: usize = 1000;
const MIN_LEAF: usize = 3;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Forest(Vec<Tree>);

type FittedForest = RandomForestRegressor<f64, f64, DenseMatrix<f64>, Vec<f64>>;

impl Forest {
    /// Fits `trees` trees, each of which considers about a third of the inputs at each question.
    fn of(samples: &Samples, trees: usize, max_depth: u16, min_leaf: usize, seed: u64) -> Result<Self, FitError> {
        let parameters = RandomForestRegressorParameters::default()
            .with_n_trees(trees)
            .with_m((samples.known().iter().count() / 3).max(1))
            .with_max_depth(max_depth + 1)
            .with_min_samples_leaf(min_leaf)
            .with_min_samples_split(2 * min_leaf)
            .with_seed(seed);
        let fitted = FittedForest::fit(&matrix(samples)?, &samples.ln_us(), parameters).map_err(|e| e.to_string())?;
        let stored = serde_json::to_value(&fitted).map_err(|e| e.to_string())?;
        let trees = stored["forest_regressor"]["trees"].as_array().ok_or("smartcore's forest has no trees")?;
        Ok(Self(trees.iter().map(|tree| Tree::read(tree, samples)).collect::<Result<_, _>>()?))
    }
}

impl Regression for Forest {
    const HELP: &'static str = "The mean of many regression trees: random forest";
    const TARGET: &'static str = LN_US;

    type Stored = Vec<StoredTree>;

    fn fit(samples: &Samples, options: &FitOptions) -> Result<Self, FitError> {
        Self::of(samples, TREES, MAX_DEPTH, MIN_LEAF, options.seed)
    }

    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        exp(self.0.iter().map(|tree| tree.predict(inputs)).sum::<f64>() / self.0.len() as f64)
    }

    fn asks(&self) -> InputSet {
        self.0.iter().flat_map(|tree| tree.asks().iter().collect::<Vec<_>>()).collect()
    }

    fn size(&self) -> (usize, &'static str) {
        (self.0.len(), "trees")
    }

    fn stored(&self) -> Vec<StoredTree> {
        self.0.iter().map(Tree::stored).collect()
    }

    fn checked(stored: &Vec<StoredTree>, features: InputSet, place: &str) -> Result<Self, String> {
        if stored.is_empty() || stored.len() > MOST_TREES {
            return Err(format!("{place}: {} trees, expected 1 to {MOST_TREES}", stored.len()));
        }
        let check = |(n, tree): (usize, &StoredTree)| tree.check(features, &format!("{place}[{n}]"), 0);
        Ok(Self(stored.iter().enumerate().map(check).collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::models::tree::tests::{depth, world};

    #[test]
    fn a_forest_is_as_many_trees_of_the_same_kind() {
        let samples = world();
        let Forest(forest) = Forest::of(&samples, 7, 6, 5, 1).unwrap();
        assert_eq!(forest.len(), 7);
        assert!(forest[0] != forest[1]);
        for tree in &forest {
            let (leaves, depth) = (tree.num_leaves(), depth(tree));
            assert!(leaves > 4 && depth <= 6);
        }
        let mean = |row: &[f64; NUM_INPUTS]| forest.iter().map(|tree| tree.predict(row)).sum::<f64>() / 7.0;
        let errors = samples.rows().iter().zip(samples.ln_us()).map(|(row, target)| (mean(row) - target).abs());
        assert!(errors.sum::<f64>() / 600.0 < 0.2);
    }
}
