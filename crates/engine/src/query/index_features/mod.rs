//! Features of a query from the index before it runs, besides the lengths of its lists.
//!
//! The part of a disjunction that can be skipped depends on scores: the initial threshold, the lists that can lift a document
//! above it, and the number of their blocks. The index stores enough to estimate these in less than a microsecond:
//!
//! ```text
//! terms       bound  10th best                        seed 3.0: ten documents reach it by "rare" alone
//! rare         4.0      3.0      ▃▁█▂                 essential: no document without it or "medium" exceeds 3.0
//! medium       2.5      1.5      ▁▁▃█▂▁               live: two of six sampled blocks, with the others' bounds, do
//! the          0.4      0.3      ▂▃▂▃▂▃▂▃             looked up only
//! ```
//!
//! The work of a conjunction depends on the documents that lists share, and terms do not occur independently. A sample of
//! the shortest list's documents is therefore looked up in a [`Sketch`] of the other lists.
//!
//! | file | content |
//! | --- | --- |
//! //! | `scores.rs` | features from bounds and seeds |
//! | `sketch.rs` | a small summary of the lists, which tests membership in a few nanoseconds |
//! | `shared.rs` | features of shared documents, from direct forms and the sketch |

mod scores;
mod shared;
mod sketch;

use tandem_base::traffic::{Features, IndexFeatures};

use self::scores::fill_scores;
use self::shared::fill_shared;
pub use self::sketch::Sketch;
use super::Query;
use crate::index::{Index, PostingList};

/// A term with its list and the bounds of its scores.
struct Bounded<'a> {
    list: PostingList<'a>,
    bound: f32,
    /// The score that k documents reach by the term alone; 0 if unknown.
    seed: f32,
    weight: f32,
    /// The list's number among the long lists.
    number: Option<u32>,
}

impl Query {
    /// The lengths of its lists in `index`.
    pub fn features(&self, index: &Index) -> Features {
        let lengths: Vec<u64> = self.terms.iter().map(|t| u64::from(t.doc_freq)).collect();
        Features::from_lengths(&lengths, u64::from(index.num_docs()))
    }

    /// The features of the query, of at least one term, on its `index` when it asks for `k` documents. `sketch` must be of
    /// that index.
    pub fn index_features(&self, index: &Index, sketch: &Sketch, k: usize) -> IndexFeatures {
        let bm25 = index.built_with();
        // An index exceeds the caches, and each step needs the one before for its address. Each step therefore prefetches
        // from all lists before it reads the first, so that the lists' cache misses overlap.
        self.terms.iter().for_each(|term| index.prefetch(term.term));
        self.terms.iter().for_each(|term| index.prefetch_row(term.term));
        let terms: Vec<Bounded<'_>> = (self.terms.iter())
            .map(|term| {
                let list = index.list(term.term);
                let weight = bm25.weight(index.num_docs(), term.doc_freq, term.qtf);
                Bounded {
                    list,
                    bound: weight * list.max_impact(),
                    seed: weight * list.kth_impact(k),
                    weight,
                    number: index.long_list_number(term.term),
                }
            })
            .collect();
        for (t, term) in terms.iter().enumerate() {
            scores::sampled_blocks(&term.list).for_each(|block| term.list.prefetch_bound(block));
            if t == 0 {
                term.list.prefetch_bound(shared::sampled_block(&term.list));
            }
            if let Some(number) = term.number {
                sketch.prefetch(number);
            }
        }
        if let Some(shortest) = terms.first() {
            shortest.list.prefetch(shared::sampled_block(&shortest.list));
        }
        let mut features = IndexFeatures::default();
        fill_scores(&mut features, &terms);
        fill_shared(&mut features, &terms, sketch, index.num_docs());
        features
    }
}

/// The sum of the postings of some lists, in whole numbers, so that no sum is -0.
fn postings<'a>(terms: impl IntoIterator<Item = &'a Bounded<'a>>) -> f64 {
    terms.into_iter().map(|term| u64::from(term.list.doc_freq())).sum::<u64>() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_base::base::ids::QueryId;

    /// Lists of every `step`-th of 200,000 documents; the first list's frequencies rise with the document.
    fn index(steps: &[u32]) -> Index {
        let lists: Vec<(String, Vec<(u32, u32)>)> = (0..)
            .zip(steps)
            .map(|(t, &step)| {
                let freq = |doc: u32| if t == 0 { 1 + doc / 20_000 } else { 1 };
                (format!("t{t}"), (0..200_000).step_by(step as usize).map(|doc| (doc, freq(doc))).collect())
            })
            .collect();
        Index::from_lists(&lists).unwrap()
    }

    fn query(index: &Index, num_terms: usize) -> Query {
        let names: Vec<String> = (0..num_terms).map(|t| format!("t{t}")).collect();
        Query::prepare(QueryId(0), "q", &names, index).unwrap()
    }

    fn features(index: &Index, num_terms: usize, k: usize) -> IndexFeatures {
        query(index, num_terms).index_features(index, &Sketch::of(index), k)
    }

    #[test]
    fn seeds_and_bounds_tell_which_lists_are_essential() {
        let index = index(&[50, 3, 2]);
        let of_ten = features(&index, 3, 10);
        assert!(of_ten.seed_score > 0.0 && of_ten.seed_score < of_ten.score_bound);
        // Both other lists are so common that they can't reach the score of ten documents of the rare one.
        assert_eq!((of_ten.essential_terms, of_ten.essential_postings), (1.0, 4000.0));
        assert!(of_ten.live_postings >= of_ten.essential_postings / 16.0);
        assert_eq!(of_ten.third_shortest, 100_000.0);
        assert!(of_ten.first_bound > of_ten.third_bound && of_ten.seed_score > of_ten.second_seed);
        // The seed is lower where more documents are wanted.
        assert!(features(&index, 3, 1000).seed_score <= of_ten.seed_score);
        assert_eq!(features(&index, 3, 10_000).seed_score, 0.0);
    }

    #[test]
    fn dense_lists_sieve_a_sample_of_the_shortest() {
        let index = index(&[50, 3, 2]);
        let features = features(&index, 3, 10);
        assert_eq!((features.dense_terms, features.dense_postings), (2.0, 166_667.0));
        // Every multiple of 50 is one of 2, every third of them one of 3.
        assert!((1000.0..1700.0).contains(&features.sieved), "{}", features.sieved);
        assert!((1000.0..1700.0).contains(&features.expected_found), "{}", features.expected_found);
        assert_eq!(features.sieved_blocks, 0.0);
        // A list alone shares all its documents with itself.
        let alone = self::features(&index, 1, 10);
        assert_eq!((alone.sieved, alone.expected_found), (4000.0, 4000.0));
    }

    #[test]
    fn the_sketch_tells_what_dependent_lists_share() {
        // Multiples of 7 and of 14 share all of the latter; the other pair shares none.
        let every = |step: usize, from: u32| (from..200_000).step_by(step).map(|doc| (doc, 1)).collect::<Vec<_>>();
        let index = Index::from_lists(&[("t0", every(14, 0)), ("t1", every(7, 0)), ("t2", every(14, 3))]).unwrap();
        let of = |names: &[&str]| {
            let query = Query::prepare(QueryId(0), "q", names, &index).unwrap();
            query.index_features(&index, &Sketch::of(&index), 10)
        };
        let (within, apart) = (of(&["t0", "t1"]), of(&["t2", "t1"]));
        assert!((14_000.0..14_300.0).contains(&within.expected_found), "{}", within.expected_found);
        assert!(apart.expected_found < 2_500.0, "{}", apart.expected_found);
    }

    #[test]
    fn vectors_and_names_go_together() {
        let numbers = std::array::from_fn(|i| i as f64);
        assert_eq!(IndexFeatures::from_vector(numbers).vector(), numbers);
        assert_eq!(IndexFeatures::from_vector(numbers).essential_postings, 3.0);
        assert_eq!(IndexFeatures::NAMES[3], "essential_postings");
    }

    #[test]
    fn every_query_has_features_even_of_single_postings() {
        let index = Index::from_lists(&[("t0", vec![(3, 1)]), ("t1", vec![(0, 1), (3, 2)])]).unwrap();
        let features = features(&index, 2, 10);
        let is_sound = |number: &f64| number.is_finite() && *number >= 0.0 && number.is_sign_positive();
        assert!(features.vector().iter().all(is_sound), "{features:?}");
        assert_eq!((features.seed_score, features.essential_terms), (0.0, 2.0));
        // The single document of the first list is in the second; for such a small sample the sketch is not sure.
        assert!((0.5..=1.0).contains(&features.expected_found), "{}", features.expected_found);
    }
}
