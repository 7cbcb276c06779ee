//! Regression trees: questions about features, answered `yes` (at most the threshold) or `no`, down to a leaf.
//!
//! ```text
//! postings <= 181200.5 ?
//! |- yes: terms <= 2.5 ?
//! |       |- yes: ln(us) 3.41   (118 samples)
//! |       `- no:  ln(us) 4.02   (97 samples)
//! `- no:  ln(us) 6.88           (61 samples)
//! ```
//!
//! Trees suit search costs. They need no scaling of features and follow thresholds of real machines (a cache, a launch
//! overhead). They never predict outside the measured range, and take less than a microsecond. `smartcore` fits them to the
//! logarithm of the cost, so that errors of short and long queries weigh alike (CART: the split that lowers the squared error
//! most). The fitted nodes are copied into this form, which people can read and files can store.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use smartcore::linalg::basic::matrix::DenseMatrix;
use smartcore::tree::decision_tree_regressor::{DecisionTreeRegressor, DecisionTreeRegressorParameters};

use super::m5::PUBLISHED;
use super::samples::Samples;
use super::{FitOptions, LN_US, Regression};
use crate::base::random::exp;
use crate::cost::inputs::{InputSet, Inputs, NUM_INPUTS};

/// Maximum questions on a path from the root to a leaf. It bounds the recursion when files are read.
pub(crate) const MAX_DEPTH: u16 = 40;

/// A library's description of what went wrong in a fit.
pub(crate) type FitError = String;

#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Split {
        /// Position in [`Inputs::NAMES`].
        feature: usize,
        /// The largest value that is answered `yes`.
        threshold: f64,
        yes: Box<Tree>,
        no: Box<Tree>,
    },
    Leaf {
        /// Mean of the samples' targets.
        value: f64,
        /// Training samples that ended in the leaf.
        samples: u32,
    },
}

impl Tree {
    /// Fits a tree with at most `max_depth` questions on a path and at least `min_leaf` samples in each leaf.
    fn fit(samples: &Samples, max_depth: u16, min_leaf: usize) -> Result<Self, FitError> {
        let fitted = serde_json::to_value(fit_smartcore(samples, max_depth, min_leaf)?).map_err(|e| e.to_string())?;
        Self::read(&fitted["tree_regressor"], samples)
    }

    /// Reads a tree of `smartcore` that was fitted to the samples. Its nodes are private, but can be serialised.
    fn read(tree: &Value, samples: &Samples) -> Result<Self, FitError> {
        let nodes: Vec<SmartcoreNode> =
            Deserialize::deserialize(&tree["nodes"]).map_err(|e| format!("smartcore's tree: {e}"))?;
        let known: Vec<usize> = samples.known().iter().collect();
        convert(&nodes, 0, &known, samples.rows().iter().collect())
    }

    fn predict(&self, features: &[f64; NUM_INPUTS]) -> f64 {
        let mut node = self;
        loop {
            match node {
                Self::Leaf { value, .. } => return *value,
                Self::Split { feature, threshold, yes, no } => {
                    node = if features[*feature] <= *threshold { yes } else { no };
                }
            }
        }
    }

    fn asks(&self) -> InputSet {
        match self {
            Self::Leaf { .. } => InputSet::default(),
            Self::Split { feature, yes, no, .. } => {
                [*feature].into_iter().chain(yes.asks().iter()).chain(no.asks().iter()).collect()
            }
        }
    }

    fn num_leaves(&self) -> usize {
        match self {
            Self::Leaf { .. } => 1,
            Self::Split { yes, no, .. } => yes.num_leaves() + no.num_leaves(),
        }
    }

    fn stored(&self) -> StoredTree {
        match self {
            Self::Leaf { value, samples } => {
                StoredTree { value: Some(*value), samples: Some(*samples), ..StoredTree::default() }
            }
            Self::Split { feature, threshold, yes, no } => StoredTree {
                feature: Some(Inputs::NAMES[*feature].to_owned()),
                threshold: Some(*threshold),
                yes: Some(Box::new(yes.stored())),
                no: Some(Box::new(no.stored())),
                ..StoredTree::default()
            },
        }
    }
}

/// A regression tree as a cost model. With `LENGTHS_ONLY` it reads only the four published list lengths, as the project's
/// specification says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TreeModel<const LENGTHS_ONLY: bool>(Tree);

pub(crate) type Cart = TreeModel<false>;
pub(crate) type Lengths = TreeModel<true>;

impl<const LENGTHS_ONLY: bool> Regression for TreeModel<LENGTHS_ONLY> {
    const HELP: &'static str = if LENGTHS_ONLY {
        "A regression tree that reads list lengths only: the four published features"
    } else {
        "A regression tree"
    };
    const TARGET: &'static str = LN_US;

    type Stored = StoredTree;

    fn fit(samples: &Samples, options: &FitOptions) -> Result<Self, FitError> {
        let inputs = if LENGTHS_ONLY { PUBLISHED.into_iter().collect() } else { InputSet::ALL };
        Tree::fit(&samples.knowing(inputs), options.max_depth, options.min_leaf).map(Self)
    }

    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        exp(self.0.predict(inputs))
    }

    fn asks(&self) -> InputSet {
        self.0.asks()
    }

    fn size(&self) -> (usize, &'static str) {
        (self.0.num_leaves(), "leaves")
    }

    fn stored(&self) -> StoredTree {
        self.0.stored()
    }

    fn checked(stored: &StoredTree, features: InputSet, place: &str) -> Result<Self, String> {
        stored.check(features, place, 0).map(Self)
    }
}

type Fitted = DecisionTreeRegressor<f64, f64, DenseMatrix<f64>, Vec<f64>>;

fn matrix(samples: &Samples) -> Result<DenseMatrix<f64>, FitError> {
    let known: Vec<usize> = samples.known().iter().collect();
    let rows: Vec<Vec<f64>> =
        samples.rows().iter().map(|row| known.iter().map(|&input| row[input]).collect()).collect();
    DenseMatrix::from_2d_vec(&rows).map_err(|e| e.to_string())
}

fn fit_smartcore(samples: &Samples, max_depth: u16, min_leaf: usize) -> Result<Fitted, FitError> {
    let parameters = DecisionTreeRegressorParameters::default()
        // `smartcore` counts levels, of which the first has no question.
        .with_max_depth(max_depth + 1)
        .with_min_samples_leaf(min_leaf)
        .with_min_samples_split(2 * min_leaf);
    Fitted::fit(&matrix(samples)?, &samples.ln_us(), parameters).map_err(|e| e.to_string())
}

/// A node in the form that `smartcore` stores.
#[derive(Deserialize)]
struct SmartcoreNode {
    output: f64,
    split_feature: usize,
    split_value: Option<f64>,
    true_child: Option<usize>,
    false_child: Option<usize>,
}

/// The subtree at `nodes[at]`, whose questions number the `known` inputs, with the samples that reach it. The fit's maximum
/// depth bounds the recursion.
fn convert(
    nodes: &[SmartcoreNode],
    at: usize,
    known: &[usize],
    samples: Vec<&[f64; NUM_INPUTS]>,
) -> Result<Tree, FitError> {
    let node = nodes.get(at).ok_or_else(|| format!("smartcore's tree lacks node {at}"))?;
    let (Some(threshold), Some(yes), Some(no)) = (node.split_value, node.true_child, node.false_child) else {
        return Ok(Tree::Leaf { value: rounded(node.output), samples: samples.len() as u32 });
    };
    let unknown = "smartcore's tree asks about a column that it was not given";
    let (feature, threshold) = (*known.get(node.split_feature).ok_or(unknown)?, rounded(threshold));
    let (low, high) = samples.into_iter().partition(|sample| sample[feature] <= threshold);
    let (yes, no) = (convert(nodes, yes, known, low)?, convert(nodes, no, known, high)?);
    Ok(Tree::Split { feature, threshold, yes: Box::new(yes), no: Box::new(no) })
}

/// Rounds to six decimals, so that a file holds short numbers and reads back to the same tree. Counts and their
/// midpoints stay exact, and the logarithm of a time moves by a millionth.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// A tree's form in files: either a question (`feature`, `threshold`, `yes`, `no`) or a leaf (`value`, `samples`).
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredTree {
    #[serde(skip_serializing_if = "Option::is_none")]
    feature: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    yes: Option<Box<StoredTree>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    no: Option<Box<StoredTree>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<u32>,
}

impl StoredTree {
    /// Checks the tree, whose questions may be about `features` only. Errors name the wrong node below `place`.
    fn check(&self, features: InputSet, place: &str, depth: u16) -> Result<Tree, String> {
        if depth > MAX_DEPTH {
            return Err(format!("{place}: more than {MAX_DEPTH} questions on a path"));
        }
        match self {
            Self {
                feature: Some(name), threshold: Some(threshold), yes: Some(yes), no: Some(no), value: None, ..
            } => {
                let feature = features.position(name, place)?;
                if !threshold.is_finite() {
                    return Err(format!("{place}: threshold {threshold}, expected a finite number"));
                }
                Ok(Tree::Split {
                    feature,
                    threshold: *threshold,
                    yes: Box::new(yes.check(features, &format!("{place}.yes"), depth + 1)?),
                    no: Box::new(no.check(features, &format!("{place}.no"), depth + 1)?),
                })
            }
            Self { feature: None, threshold: None, yes: None, no: None, value: Some(value), samples } => {
                // The range e^±40 us exceeds any measurement: from a millionth of a femtosecond to 7,000 years.
                if !value.is_finite() || value.abs() > 40.0 {
                    return Err(format!("{place}: value {value}, expected the logarithm of microseconds"));
                }
                Ok(Tree::Leaf { value: *value, samples: samples.unwrap_or(0) })
            }
            _ => Err(format!(
                "{place}: neither a question (`feature`, `threshold`, `yes`, `no`) nor a leaf (`value`, `samples`)"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::traffic::Features;

    /// Samples with steps in two features, and noise that no feature explains.
    fn world() -> Samples {
        let (rows, us): (Vec<Inputs>, Vec<f64>) = (0..600_u32)
            .map(|i| {
                let postings = u64::from(i * 7919 % 10_007) + 10;
                let terms = 1 + i % 5;
                let lengths: Vec<u64> = (1..=u64::from(terms)).map(|n| n * postings).collect();
                let features = Features { expected_matches: 0.0, ..Features::from_lengths(&lengths, 100_000) };
                let target = if postings > 5000 { 6.0 } else { 3.0 } + f64::from(terms) / 10.0;
                (Inputs::of(&features, None), (target + f64::from(i % 7) / 50.0).exp())
            })
            .unzip();
        Samples::new(&rows, us)
    }

    #[test]
    fn our_tree_predicts_what_smartcore_predicts() {
        use smartcore::linalg::basic::arrays::Array;
        let samples = world();
        let fitted = fit_smartcore(&samples, 8, 3).unwrap();
        let tree = Tree::fit(&samples, 8, 3).unwrap();
        let probes: Vec<[f64; NUM_INPUTS]> = samples.rows().iter().map(|row| row.map(|x| x * 1.37 + 0.25)).collect();
        let known = |row: &[f64; NUM_INPUTS]| samples.known().iter().map(|input| row[input]).collect::<Vec<_>>();
        let matrix = DenseMatrix::from_2d_vec(&probes.iter().map(known).collect()).unwrap();
        let expected = fitted.predict(&matrix).unwrap();
        assert_eq!(matrix.shape().0, expected.len());
        for (probe, expected) in probes.iter().zip(expected) {
            let ours = tree.predict(probe);
            // Leaves are stored with six decimals.
            assert!((ours - expected).abs() <= 0.5e-6 + f64::EPSILON, "{ours} {expected}");
        }
    }

    #[test]
    fn a_fit_keeps_within_its_depth_and_leaf_size() {
        for max_depth in [1, 2, 5] {
            let tree = Tree::fit(&world(), max_depth, 20).unwrap();
            let (leaves, depth) = (tree.num_leaves(), depth(&tree));
            assert!(leaves > 1 && depth <= max_depth, "{max_depth}: {leaves} leaves, {depth} deep");
            assert!(smallest_leaf(&tree) >= 20);
        }
    }

    fn depth(tree: &Tree) -> u16 {
        match tree {
            Tree::Leaf { .. } => 0,
            Tree::Split { yes, no, .. } => 1 + depth(yes).max(depth(no)),
        }
    }

    fn smallest_leaf(tree: &Tree) -> u32 {
        match tree {
            Tree::Leaf { samples, .. } => *samples,
            Tree::Split { yes, no, .. } => smallest_leaf(yes).min(smallest_leaf(no)),
        }
    }
}
