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
//! answers, so no branch depends on the query ([`SymmetricTrees`]). An estimate takes a few hundred nanoseconds. A symmetric
//! tree is weaker than a free one, but harder to overfit.
//!
//! Some samples have far larger residuals than others, whatever the questions. For each tree, the largest tenth of the
//! residuals is clipped to the rest (Huber's loss).
//!
//! Known boosting libraries grow free trees or wrap a C++ library. None gives trees of this form, so `grow.rs` contains the
//! fit, a hundred lines on histograms.
//!
//! Source: Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of Statistics 2001, which also has
//! the loss. Symmetric trees: Kohavi and Li, "Oblivious Decision Trees, Graphs, and Top-Down Pruning", IJCAI 1995, and
//! Prokhorenkova et al., "CatBoost: Unbiased Boosting with Categorical Features", NeurIPS 2018.

mod grow;
mod trees;

use serde::{Deserialize, Serialize};

use self::grow::BoostingOptions;
pub(crate) use self::trees::SymmetricTrees;
use self::trees::{DEPTH, LEAVES, SymmetricTree};
use super::samples::Samples;
use super::tree::FitError;
use super::{FitOptions, LN_US, Regression};
use crate::base::random::exp;
use crate::cost::inputs::{InputSet, Inputs, NUM_INPUTS};

const MOST_TREES: usize = 10_000;
/// The sum of trees is the logarithm of microseconds, within e^±40.
const MOST: f32 = 40.0;

/// Boosted trees whose sum is the logarithm of microseconds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredBoosting {
    base: f32,
    trees: Vec<StoredSymmetricTree>,
}

/// Question `i` asks whether `inputs[i]` exceeds `thresholds[i]`. If it does, it adds 2^i to the number of the leaf.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredSymmetricTree {
    inputs: Vec<String>,
    thresholds: Vec<f32>,
    leaves: Vec<f32>,
}

impl Regression for SymmetricTrees {
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
        let stored = |tree: SymmetricTree| StoredSymmetricTree {
            inputs: tree.inputs.iter().map(|&input| Inputs::NAMES[usize::from(input)].to_owned()).collect(),
            thresholds: tree.thresholds.into(),
            leaves: tree.leaves.into(),
        };
        StoredBoosting { base: self.base, trees: self.trees().map(stored).collect() }
    }

    fn checked(stored: &StoredBoosting, features: InputSet, place: &str) -> Result<Self, String> {
        let StoredBoosting { base, trees } = stored;
        if trees.len() > MOST_TREES {
            return Err(format!("{place}: {} trees, more than {MOST_TREES}", trees.len()));
        }
        let check = |(n, tree): (usize, &StoredSymmetricTree)| tree.check(features, &format!("{place}.trees[{n}]"));
        let trees = trees.iter().enumerate().map(check).collect::<Result<Vec<_>, _>>()?;
        let largest = |tree: &SymmetricTree| tree.leaves.iter().fold(0.0_f32, |most, leaf| most.max(leaf.abs()));
        let most = base.abs() + trees.iter().map(largest).sum::<f32>();
        if most.is_finite() && most <= MOST {
            Ok(Self::new(*base, &trees))
        } else {
            Err(format!("{place}: estimates of up to e^{most} us, expected logarithms of microseconds"))
        }
    }
}

impl StoredSymmetricTree {
    fn check(&self, features: InputSet, place: &str) -> Result<SymmetricTree, String> {
        let Self { inputs, thresholds, leaves } = self;
        let fits = "expected one question a level and a leaf for each way to answer them";
        let (Ok(names), Ok(thresholds), Ok(leaves)) = (
            <&[String; DEPTH]>::try_from(inputs.as_slice()),
            <[f32; DEPTH]>::try_from(thresholds.as_slice()),
            <[f32; LEAVES]>::try_from(leaves.as_slice()),
        ) else {
            let counts = format!("{} inputs, {} thresholds, {} leaves", inputs.len(), thresholds.len(), leaves.len());
            return Err(format!("{place}: {counts}; {fits}: {DEPTH}, {DEPTH}, {LEAVES}"));
        };
        let mut inputs = [0; DEPTH];
        for (input, name) in inputs.iter_mut().zip(names) {
            *input = features.position(name, place)? as u8;
        }
        if let Some(wrong) = thresholds.iter().find(|threshold| !threshold.is_finite()) {
            return Err(format!("{place}: threshold {wrong}, expected a finite number"));
        }
        Ok(SymmetricTree { inputs, thresholds, leaves })
    }
}
