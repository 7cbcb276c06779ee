//! The file form of boosted trees.

use serde::{Deserialize, Serialize};

use super::trees::{DEPTH, LEAVES, SymmetricTree, SymmetricTrees};
use crate::cost::inputs::{InputSet, Inputs};

/// Maximum trees of a file.
const MOST_TREES: usize = 10_000;
/// The sum of trees is the logarithm of microseconds, within e^±40.
const MOST: f32 = 40.0;

/// Boosted trees whose sum is the logarithm of microseconds.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::cost) struct StoredBoosting {
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

impl From<&SymmetricTrees> for StoredBoosting {
    fn from(trees: &SymmetricTrees) -> Self {
        let stored = |tree: SymmetricTree| StoredSymmetricTree {
            inputs: tree.inputs.iter().map(|&input| Inputs::NAMES[usize::from(input)].to_owned()).collect(),
            thresholds: tree.thresholds.into(),
            leaves: tree.leaves.into(),
        };
        Self { base: trees.base, trees: trees.trees().map(stored).collect() }
    }
}

impl StoredBoosting {
    /// Checks the trees, whose questions may be about `features` only. Errors name the wrong tree below `place`.
    pub(crate) fn check(&self, features: InputSet, place: &str) -> Result<SymmetricTrees, String> {
        if self.trees.len() > MOST_TREES {
            return Err(format!("{place}: {} trees, more than {MOST_TREES}", self.trees.len()));
        }
        let check = |(n, tree): (usize, &StoredSymmetricTree)| tree.check(features, &format!("{place}.trees[{n}]"));
        let trees = self.trees.iter().enumerate().map(check).collect::<Result<Vec<_>, _>>()?;
        let largest = |tree: &SymmetricTree| tree.leaves.iter().fold(0.0_f32, |most, leaf| most.max(leaf.abs()));
        let most = self.base.abs() + trees.iter().map(largest).sum::<f32>();
        if most.is_finite() && most <= MOST {
            Ok(SymmetricTrees::new(self.base, &trees))
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
            let position = Inputs::position(name).filter(|&position| features.contains(position));
            let Some(position) = position else {
                return Err(format!("{place}: asks for `{name}`, which is none of the model's features"));
            };
            *input = position as u8;
        }
        if let Some(wrong) = thresholds.iter().find(|threshold| !threshold.is_finite()) {
            return Err(format!("{place}: threshold {wrong}, expected a finite number"));
        }
        Ok(SymmetricTree { inputs, thresholds, leaves })
    }
}
