//! Kinds of cost model behind one trait, [`Regression`]. Each is fitted to samples of one class and mode.
//!
//! | file | `--model` | kind |
//! | --- | --- | --- |
//! | `tree.rs` | `cart` | a regression tree, fitted by `smartcore` |
//! | `tree.rs` | `lengths` | a regression tree that reads only the published features |
//! | `boosting/` | `boosting` | a sum of symmetric trees, each correcting the previous ones; the most accurate kind, and the default |
//! | `m5/` | `m5` | rules with linear models on the published features, as in Ding et al. |
//! | `work.rs` | `work` | prices of a query's operations, in readable form |
//!
//! A new kind is a file whose type implements [`Regression`], its `mod` line and its line in `with_models!`. That list defines
//! options, help and the fields of model files. Evaluation, model files and commands know no kind.

pub(crate) mod boosting;
pub(crate) mod m5;
mod samples;
pub(crate) mod tree;
pub(crate) mod work;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use self::samples::Samples;
pub(crate) use self::tree::{FitError, MAX_DEPTH};
use super::inputs::{InputSet, NUM_INPUTS};
use crate::base::named::named_enum;

/// Passes the kinds of model to `$callback!`, in the order of tables. Each has the form `kind(file::type) = name in options,
/// field in model files;`.
macro_rules! with_models {
    ($callback:ident) => {
        $callback! {
            Cart(tree::Cart) = "cart", tree;
            Lengths(tree::Lengths) = "lengths", lengths;
            M5(m5::Rules) = "m5", m5;
            #[default]
            Boosting(boosting::SymmetricTrees) = "boosting", boosting;
            Work(work::Work) = "work", work;
        }
    };
}
pub(crate) use with_models;

/// A kind of model: its fit, prediction and file form.
pub(crate) trait Regression: Sized {
    const HELP: &'static str;
    /// Unit of the numbers in the file form: [`LN_US`] or [`US`].
    const TARGET: &'static str;

    type Stored: Serialize + DeserializeOwned;

    /// Fits a model to the samples; errors are messages of the library.
    fn fit(samples: &Samples, options: &FitOptions) -> Result<Self, FitError>;

    /// Predicted microseconds, above 0. At least the inputs of [`asks`](Self::asks) must be known.
    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64;

    /// The inputs that the model reads.
    fn asks(&self) -> InputSet;

    /// Size, and its unit: leaves, trees, rules or prices.
    fn size(&self) -> (usize, &'static str);

    /// A description of the model, if it is readable.
    fn words(&self) -> Option<String> {
        None
    }

    fn stored(&self) -> Self::Stored;

    /// Reads the file form of a model that may read `features` only. Errors name the wrong part below `place`.
    fn checked(stored: &Self::Stored, features: InputSet, place: &str) -> Result<Self, String>;
}

const LN_US: &str = "ln(us)";
const US: &str = "us";

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FitOptions {
    pub(crate) kind: ModelKind,
    pub(crate) max_depth: u16,
    /// Minimum samples of a regression tree's answer.
    pub(crate) min_leaf: usize,
    pub(crate) seed: u64,
}

macro_rules! define_models {
    ($($(#[$attribute:meta])* $kind:ident($file:ident::$model:ident) = $name:literal, $field:ident;)+) => {
        named_enum! {
            /// A kind of cost model.
            #[derive(Default)]
            pub enum ModelKind {
                $(
                    #[doc = concat!("The model in `cost/models/", stringify!($file), "`.")]
                    $(#[$attribute])*
                    $kind = $name,
                )+
            }
        }

        impl ModelKind {
            /// Description in one line.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$kind => <$file::$model as Regression>::HELP,)+ }
            }

            pub(crate) const fn target(self) -> &'static str {
                match self { $(Self::$kind => <$file::$model as Regression>::TARGET,)+ }
            }
        }

        #[derive(Clone, Debug, PartialEq)]
        pub(crate) enum Fitted {
            $($kind($file::$model),)+
        }

        impl Fitted {
            pub(crate) fn fit(samples: &Samples, options: &FitOptions) -> Result<Self, FitError> {
                Ok(match options.kind { $(ModelKind::$kind => Self::$kind(Regression::fit(samples, options)?),)+ })
            }

            pub(crate) fn kind(&self) -> ModelKind {
                match self { $(Self::$kind(_) => ModelKind::$kind,)+ }
            }

            pub(crate) fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
                match self { $(Self::$kind(model) => Regression::predict_us(model, inputs),)+ }
            }

            pub(crate) fn asks(&self) -> InputSet {
                match self { $(Self::$kind(model) => Regression::asks(model),)+ }
            }

            pub(crate) fn size(&self) -> (usize, &'static str) {
                match self { $(Self::$kind(model) => Regression::size(model),)+ }
            }

            pub(crate) fn words(&self) -> Option<String> {
                match self { $(Self::$kind(model) => Regression::words(model),)+ }
            }
        }
    };
}
with_models!(define_models);
