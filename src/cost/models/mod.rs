//! The kinds of cost model, behind one trait: each is fitted to samples of one class and mode, and asked in no time.
//!
//! | file | `--model` | what |
//! | --- | --- | --- |
//! | `tree.rs` | `cart` | a regression tree, by `smartcore` |
//! | `tree.rs` | `forest` | the mean of many of them, by `smartcore`: random forest |
//! | `boosting/` | `boosting` | a sum of symmetric trees, each correcting those before it: the most exact, and the default |
//! | `m5/` | `m5` | rules with linear models, on the published features: what Ding et al. used |
//! | `work.rs` | `work` | prices of what a query does: the one that a person can read |
//!
//! A further kind is a variant of [`Fitted`], with its fit, its answer and its form in files; evaluation, files and commands
//! know no kind.

mod boosting;
mod kind;
mod m5;
mod samples;
mod stored;
mod tree;
mod work;

use super::inputs::{InputSet, NUM_INPUTS};
use crate::random::exp;

pub(super) use self::boosting::StoredBoosting;
use self::boosting::{BoostingOptions, SymmetricTrees};
pub use self::kind::ModelKind;
use self::m5::Rules;
pub(super) use self::m5::StoredRules;
pub(super) use self::samples::Samples;
pub(super) use self::stored::StoredFitted;
use self::tree::Tree;
pub(super) use self::tree::{FitError, MAX_DEPTH, StoredTree};
pub(super) use self::work::StoredWork;
use self::work::Work;

/// A fitted model: what a query takes, by what is known of it.
pub(super) trait Regression {
    /// Microseconds, above 0, for inputs of which [`asks`](Self::asks) are known.
    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64;

    /// What it must be told.
    fn asks(&self) -> InputSet;

    /// How large it is, and of what: so many leaves, trees, rules, prices.
    fn size(&self) -> (usize, &'static str);

    /// What it says in words, if it can be said.
    fn words(&self) -> Option<String> {
        None
    }
}

/// The least that any model says, in microseconds: files hold no less.
const LEAST_US: f64 = 0.001;

impl Regression for Tree {
    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        exp(self.predict(inputs))
    }

    fn asks(&self) -> InputSet {
        Tree::asks(self)
    }

    fn size(&self) -> (usize, &'static str) {
        (Tree::size(self).0, "leaves")
    }
}

impl Regression for Vec<Tree> {
    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        exp(self.iter().map(|tree| tree.predict(inputs)).sum::<f64>() / self.len() as f64)
    }

    fn asks(&self) -> InputSet {
        self.iter().flat_map(|tree| tree.asks().iter().collect::<Vec<_>>()).collect()
    }

    fn size(&self) -> (usize, &'static str) {
        (self.len(), "trees")
    }
}

impl Regression for SymmetricTrees {
    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        exp(self.predict(inputs))
    }

    fn asks(&self) -> InputSet {
        SymmetricTrees::asks(self)
    }

    fn size(&self) -> (usize, &'static str) {
        (self.len(), "trees")
    }
}

impl Regression for Rules {
    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        self.predict(inputs)
    }

    fn asks(&self) -> InputSet {
        Rules::asks(self)
    }

    fn size(&self) -> (usize, &'static str) {
        (self.len(), "rules")
    }

    fn words(&self) -> Option<String> {
        Some(Rules::words(self))
    }
}

impl Regression for Work {
    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        Work::predict_us(self, inputs).max(LEAST_US)
    }

    fn asks(&self) -> InputSet {
        Work::asks(self)
    }

    fn size(&self) -> (usize, &'static str) {
        (self.len(), "prices")
    }

    fn words(&self) -> Option<String> {
        Some(Work::words(self))
    }
}

/// A model of any kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fitted {
    Cart(Tree),
    Forest(Vec<Tree>),
    Boosting(SymmetricTrees),
    M5(Rules),
    Work(Work),
}

/// How models are fitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct FitOptions {
    pub(super) kind: ModelKind,
    /// Of trees that are free in their questions: most questions before an answer, and fewest samples behind it.
    pub(super) max_depth: u16,
    pub(super) min_leaf: usize,
    pub(super) seed: u64,
}

/// Trees of a forest: more gain nothing that shows.
const FOREST_TREES: usize = 40;

impl Fitted {
    /// A model of the samples.
    ///
    /// # Errors
    /// What a library says of samples that it can't fit.
    pub(super) fn fit(samples: &Samples, options: &FitOptions) -> Result<Self, FitError> {
        let &FitOptions { kind, max_depth, min_leaf, seed } = options;
        Ok(match kind {
            ModelKind::Cart => Self::Cart(Tree::fit(samples, max_depth, min_leaf)?),
            ModelKind::Forest => Self::Forest(Tree::fit_forest(samples, FOREST_TREES, MAX_DEPTH, 3, seed)?),
            ModelKind::Boosting => {
                let options = BoostingOptions { seed, ..BoostingOptions::default() };
                Self::Boosting(SymmetricTrees::fit(samples, &options))
            }
            ModelKind::M5 => Self::M5(Rules::fit(samples)),
            ModelKind::Work => Self::Work(Work::fit(samples)),
        })
    }

    /// Its kind.
    pub(super) fn kind(&self) -> ModelKind {
        match self {
            Self::Cart(_) => ModelKind::Cart,
            Self::Forest(_) => ModelKind::Forest,
            Self::Boosting(_) => ModelKind::Boosting,
            Self::M5(_) => ModelKind::M5,
            Self::Work(_) => ModelKind::Work,
        }
    }

    /// What it says.
    pub(super) fn regression(&self) -> &dyn Regression {
        match self {
            Self::Cart(model) => model,
            Self::Forest(model) => model,
            Self::Boosting(model) => model,
            Self::M5(model) => model,
            Self::Work(model) => model,
        }
    }
}
