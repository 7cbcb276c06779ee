//! The kinds of cost model, behind one trait, [`Regression`]: each is fitted to samples of one class and mode, and asked in no time.
//!
//! | file | `--model` | what |
//! | --- | --- | --- |
//! | `tree.rs` | `cart` | a regression tree, by `smartcore` |
//! | `lengths.rs` | `lengths` | such a tree that reads the published features only |
//! | `forest.rs` | `forest` | the mean of many of them, by `smartcore`: random forest |
//! | `boosting/` | `boosting` | a sum of symmetric trees, each correcting those before it: the most exact, and the default |
//! | `m5/` | `m5` | rules with linear models, on the published features: what Ding et al. used |
//! | `work.rs` | `work` | prices of what a query does: the one that a person can read |
//!
//! A new kind is a file whose type implements [`Regression`], its `mod` line and its line in `with_models!`. Options, help
//! and the fields of model files come from this list; evaluation, model files and commands know no kind.

pub(super) mod boosting;
pub(super) mod forest;
pub(super) mod lengths;
pub(super) mod m5;
mod samples;
pub(super) mod tree;
pub(super) mod work;

use std::fmt;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(super) use self::samples::Samples;
pub(super) use self::tree::{FitError, MAX_DEPTH};
use super::inputs::{InputSet, NUM_INPUTS};

/// Gives `$callback!` the kinds of model, in the order of tables, each as
/// `kind in code(file::type) as field in model files;`.
macro_rules! with_models {
    ($callback:ident) => {
        $callback! {
            Cart(tree::Tree) as tree;
            Lengths(lengths::LengthsTree) as lengths;
            M5(m5::Rules) as m5;
            Forest(forest::Forest) as forest;
            #[default]
            Boosting(boosting::SymmetricTrees) as boosting;
            Work(work::Work) as work;
        }
    };
}
pub(super) use with_models;

/// A kind of model: how it is named, fitted, asked and kept in files.
pub(super) trait Regression: Sized {
    /// What it is asked for by.
    const NAME: &'static str;
    /// What it is, in a line.
    const HELP: &'static str;
    /// What the numbers in its file form are: [`LN_US`] or [`US`].
    const TARGET: &'static str;

    /// Its form in files.
    type Stored: Serialize + DeserializeOwned;

    /// A model of the samples.
    ///
    /// # Errors
    /// What a library says of samples that it cannot fit.
    fn fit(samples: &Samples, options: &FitOptions) -> Result<Self, FitError>;

    /// Microseconds, above 0, for inputs of which [`asks`](Self::asks) are known.
    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64;

    /// The inputs that it needs.
    fn asks(&self) -> InputSet;

    /// How large it is, and of what: so many leaves, trees, rules, prices.
    fn size(&self) -> (usize, &'static str);

    /// The model in words, if it can be put so.
    fn words(&self) -> Option<String> {
        None
    }

    /// The model as a file holds it.
    fn stored(&self) -> Self::Stored;

    /// The model that a file holds, which may ask for `features` only. `place` names it in errors.
    ///
    /// # Errors
    /// The place of what is wrong, and what is wrong with it.
    fn checked(stored: &Self::Stored, features: InputSet, place: &str) -> Result<Self, String>;
}

/// The file holds logarithms of microseconds.
const LN_US: &str = "ln(us)";
/// The file holds microseconds.
const US: &str = "us";

/// How models are fitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct FitOptions {
    pub(super) kind: ModelKind,
    /// Of trees that are free in their questions: the most questions before an answer.
    pub(super) max_depth: u16,
    /// Of trees that are free in their questions: the fewest samples behind an answer.
    pub(super) min_leaf: usize,
    pub(super) seed: u64,
}

/// Makes [`ModelKind`] and [`Fitted`].
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

            /// What it is asked for by.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$kind => <$file::$model as Regression>::NAME,)+ }
            }

            /// What it is, in a line.
            #[must_use]
            pub const fn help(self) -> &'static str {
                match self { $(Self::$kind => <$file::$model as Regression>::HELP,)+ }
            }

            /// What the numbers of such a model are.
            pub(super) const fn target(self) -> &'static str {
                match self { $(Self::$kind => <$file::$model as Regression>::TARGET,)+ }
            }
        }

        /// A model of any kind.
        #[derive(Clone, Debug, PartialEq)]
        pub(super) enum Fitted {
            $($kind($file::$model),)+
        }

        impl Fitted {
            /// A model of the samples.
            ///
            /// # Errors
            /// As for [`Regression::fit`].
            pub(super) fn fit(samples: &Samples, options: &FitOptions) -> Result<Self, FitError> {
                Ok(match options.kind { $(ModelKind::$kind => Self::$kind(Regression::fit(samples, options)?),)+ })
            }

            /// Its kind.
            pub(super) fn kind(&self) -> ModelKind {
                match self { $(Self::$kind(_) => ModelKind::$kind,)+ }
            }

            /// As [`Regression::predict_us`].
            pub(super) fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
                match self { $(Self::$kind(model) => Regression::predict_us(model, inputs),)+ }
            }

            /// As [`Regression::asks`].
            pub(super) fn asks(&self) -> InputSet {
                match self { $(Self::$kind(model) => Regression::asks(model),)+ }
            }

            /// As [`Regression::size`].
            pub(super) fn size(&self) -> (usize, &'static str) {
                match self { $(Self::$kind(model) => Regression::size(model),)+ }
            }

            /// As [`Regression::words`].
            pub(super) fn words(&self) -> Option<String> {
                match self { $(Self::$kind(model) => Regression::words(model),)+ }
            }
        }
    };
}
with_models!(define_models);

impl ModelKind {
    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
