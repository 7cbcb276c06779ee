//! The single list of the index's features, from which columns of workload files, names in models and vectors are made.

use serde::{Deserialize, Serialize};

/// Passes the features' names and meanings to `$callback!`, in the order of columns and vectors. A new feature gets a
/// line at the end, and its value in `scores.rs` or `shared.rs`. Workloads without its column stay readable.
#[macro_export]
macro_rules! with_index_features {
    ($callback:ident) => {
        $callback! {
            /// Upper bound of any document's score: the sum of the terms' bounds.
            score_bound,
            /// A score that k documents are known to reach, by one term alone; 0 if none is known.
            seed_score,
            /// Terms, rarest first, up to the last one without which the other bounds don't exceed the seed.
            essential_terms,
            /// Postings in the lists of essential terms.
            essential_postings,
            /// Estimated postings in blocks whose bounds, with the other terms', exceed the seed.
            live_postings,
            /// Estimated lookups in later lists, by documents that may exceed the seed by their block's bound and the
            /// later terms' bounds.
            lookups,
            /// Lists with a direct form.
            dense_terms,
            /// Postings in lists with a direct form.
            dense_postings,
            /// Estimated documents of the shortest list that are in all lists with a direct form.
            sieved,
            /// Estimated blocks of the other lists that hold sieved documents.
            sieved_blocks,
            /// Documents that OR would find if terms were independent.
            expected_union,
            /// The bound of the shortest list's term.
            first_bound,
            /// The bound of the third shortest list's term; 0 for two terms.
            third_bound,
            /// Postings in the third shortest list; 0 for two terms.
            third_shortest,
            /// The second best of the scores that k documents reach by one term alone; 0 if unknown.
            second_seed,
            /// Estimated documents in all lists, from a sample in the sketch.
            expected_found,
            /// Estimated blocks of the other lists in which documents of the shortest list are sought, summed list by
            /// list, from the sample.
            sought_blocks,
        }
    };
}
pub use with_index_features;

macro_rules! define {
    ($($(#[$meaning:meta])* $name:ident,)*) => {
        /// Features from the index's bounds, seeds, direct forms and sketch. Scores use the parameters that the index was
        /// built with. NaN stands for a feature that a workload file lacks.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct IndexFeatures {
            $($(#[$meaning])* pub $name: f64,)*
        }

        impl IndexFeatures {
            /// The length of [`IndexFeatures::vector`].
            pub const COUNT: usize = Self::NAMES.len();
            /// Their column names, in order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The features as numbers, in the order of [`IndexFeatures::NAMES`].
            pub fn vector(&self) -> [f64; Self::COUNT] {
                [$(self.$name),*]
            }

            /// The features from numbers in the order of [`IndexFeatures::NAMES`].
            pub fn from_vector(numbers: [f64; Self::COUNT]) -> Self {
                let [$($name),*] = numbers;
                Self { $($name),* }
            }
        }
    };
}
with_index_features!(define);
