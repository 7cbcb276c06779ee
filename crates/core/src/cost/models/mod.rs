//! Kinds of cost model behind one trait, [`Regression`]. Each is fitted to samples of one class and mode.
//!
//! | file | `--model` | kind |
//! | --- | --- | --- |
//! | `tree.rs` | `cart` | a regression tree, fitted by `smartcore` |
//! | `tree.rs` | `lengths` | a regression tree that reads only the published features |
//! | `forest.rs` | `forest` | the mean of many regression trees, a random forest, fitted by `smartcore` |
//! | `boosting/` | `boosting` | a sum of symmetric trees, each correcting the previous ones: the most exact kind, and the default |
//! | `m5/` | `m5` | rules with linear models on the published features, as in Ding et al. |
//! | `work.rs` | `work` | prices of a query's operations, which a person can read |
//!
//! A new kind is a file whose type implements [`Regression`], its `mod` line and its line in `with_models!`. That list
//! defines options, help and the fields of model files. Evaluation, model files and commands know no kind.

pub(crate) mod boosting;
pub(crate) mod forest;
pub(crate) mod m5;
mod samples;
pub(crate) mod tree;
pub(crate) mod work;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::samples::Samples;
pub(crate) use self::tree::{FitError, MAX_DEPTH};
use super::inputs::{InputSet, NUM_INPUTS};

/// Passes the kinds of model to `$callback!`, in the order of tables, each as `kind in code(file::type) as field in
/// model files;`.
macro_rules! with_models {
    ($callback:ident) => {
        $callback! {
            Cart(tree::Tree) as tree;
            Lengths(tree::LengthsTree) as lengths;
            M5(m5::Rules) as m5;
            Forest(forest::Forest) as forest;
            #[default]
            Boosting(boosting::SymmetricTrees) as boosting;
            Work(work::Work) as work;
        }
    };
}
pub(crate) use with_models;

/// A kind of model: its name, fit, prediction and file form.
pub(crate) trait Regression: Sized {
    /// Name in options.
    const NAME: &'static str;
    /// Description in one line.
    const HELP: &'static str;
    /// Unit of the numbers in the file form: [`LN_US`] or [`US`].
    const TARGET: &'static str;

    /// Form in files.
    type Stored: Serialize + DeserializeOwned;

    /// Fits a model to the samples; the error is a library's.
    fn fit(samples: &Samples, options: &FitOptions) -> Result<Self, FitError>;

    /// Predicts microseconds, above 0, from inputs of which at least [`asks`](Self::asks) are known.
    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64;

    /// The inputs that the model reads.
    fn asks(&self) -> InputSet;

    /// Size, and its unit: leaves, trees, rules or prices.
    fn size(&self) -> (usize, &'static str);

    /// A description of the model, if it is readable.
    fn words(&self) -> Option<String> {
        None
    }

    /// The model in its file form.
    fn stored(&self) -> Self::Stored;

    /// Reads the file form of a model that may read `features` only. Errors name the wrong part below `place`.
    fn checked(stored: &Self::Stored, features: InputSet, place: &str) -> Result<Self, String>;
}

/// The file holds logarithms of microseconds.
const LN_US: &str = "ln(us)";
/// The file holds microseconds.
const US: &str = "us";

/// Options of a fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FitOptions {
    pub(crate) kind: ModelKind,
    /// Maximum questions of a regression tree before an answer.
    pub(crate) max_depth: u16,
    /// Minimum samples of a regression tree's answer.
    pub(crate) min_leaf: usize,
    pub(crate) seed: u64,
}

macro_rules! define_models {
    ($($(#[$attribute:meta])* $kind:ident($file:ident::$model:ident) as $field:ident;)+) => {
        /// A kind of cost model.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ModelKind {
            $(
                #[doc = concat!("The model in `cost/models/", stringify!($file), "`.")]
                $(#[$attribute])*
                $kind,
            )+
        }

        impl ModelKind {
            /// All of them.
            pub const ALL: [Self; [$(Self::$kind),+].len()] = [$(Self::$kind),+];

            /// Name in options.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => <$file::$model as Regression>::NAME,)+ }
            }

            /// Description in one line.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$kind => <$file::$model as Regression>::HELP,)+ }
            }

            /// Unit of the model's numbers.
            pub(crate) const fn target(self) -> &'static str {
                match self { $(Self::$kind => <$file::$model as Regression>::TARGET,)+ }
            }
        }

        /// A fitted model of any kind.
        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum Fitted {
            $($kind($file::$model),)+
        }

        impl Fitted {
            /// See [`Regression::fit`].
            pub(crate) fn fit(samples: &Samples, options: &FitOptions) -> Result<Self, FitError> {
                Ok(match options.kind { $(ModelKind::$kind => Self::$kind(Regression::fit(samples, options)?),)+ })
            }

            pub(crate) fn kind(&self) -> ModelKind {
                match self { $(Self::$kind(_) => ModelKind::$kind,)+ }
            }

            /// See [`Regression::predict_us`].
            pub(crate) fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
                match self { $(Self::$kind(model) => Regression::predict_us(model, inputs),)+ }
            }

            /// See [`Regression::asks`].
            pub(crate) fn asks(&self) -> InputSet {
                match self { $(Self::$kind(model) => Regression::asks(model),)+ }
            }

            /// See [`Regression::size`].
            pub(crate) fn size(&self) -> (usize, &'static str) {
                match self { $(Self::$kind(model) => Regression::size(model),)+ }
            }

            /// See [`Regression::words`].
            pub(crate) fn words(&self) -> Option<String> {
                match self { $(Self::$kind(model) => Regression::words(model),)+ }
            }
        }
    };
}
with_models!(define_models);

impl ModelKind {
    /// The kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
