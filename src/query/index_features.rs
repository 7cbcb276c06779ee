//! What the index knows of a query before it runs, besides the lengths of its lists.
//!
//! How much of a disjunction can be skipped depends on scores: where the threshold starts, which lists can lift a
//! document above it at all, and how many of their blocks. The index stores enough to tell, in a microsecond:
//!
//! ```text
//! terms       bound  10th best                        seed 3.0: ten documents reach it by "rare" alone
//! rare         4.0      3.0      ▃▁█▂                 essential: no document without it or "medium" exceeds 3.0
//! medium       2.5      1.5      ▁▁▃█▂▁               live: two of six sampled blocks, with the others' bounds, do
//! the          0.4      0.3      ▂▃▂▃▂▃▂▃             looked up only
//! ```
//!
//! For conjunctions it is lists with a direct form ([`PostingList::probe`]) that change the work: they sieve the shortest
//! list's documents, a bit each, before a block of another list is decoded. How many they let through is read from a
//! sample of the shortest list, since words do not occur independently of one another.

use serde::{Deserialize, Serialize};

use super::Query;
use crate::index::{BLOCK_LEN, Index, PostingList};

/// Blocks of a list whose bounds are looked at.
const SAMPLED_BLOCKS: usize = 8;
/// Documents of the shortest list that are looked up in lists with a direct form.
const SAMPLED_DOCS: usize = 16;

/// Features from the index's bounds, seeds and direct forms. Scores are those of the parameters that the index was built
/// with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IndexFeatures {
    /// Upper bound of any document's score: the sum of the terms' bounds.
    pub score_bound: f64,
    /// A score that k documents are known to reach, by one term alone; 0 if none is known.
    pub seed_score: f64,
    /// Terms, rarest first, up to the last without which the others' bounds don't exceed the seed.
    pub essential_terms: f64,
    /// Postings in their lists.
    pub essential_postings: f64,
    /// About how many postings are in blocks whose bounds, with the other terms', exceed the seed.
    pub live_postings: f64,
    /// About how often a document that may exceed the seed, by its block's bound and those of the terms after it, would
    /// be looked up in their lists.
    pub lookups: f64,
    /// Lists with a direct form.
    pub dense_terms: f64,
    /// Postings in them.
    pub dense_postings: f64,
    /// About how many of the shortest list's documents are in all lists with a direct form.
    pub sieved: f64,
    /// About how many blocks of the other lists these documents fall into.
    pub sieved_blocks: f64,
    /// Documents that OR is expected to find if terms were independent.
    pub expected_union: f64,
}

/// A term with what its list says of its scores.
struct Bounded<'a> {
    list: PostingList<'a>,
    weight: f32,
    bound: f32,
    is_dense: bool,
}

impl IndexFeatures {
    /// How many numbers [`IndexFeatures::vector`] gives.
    pub const COUNT: usize = 11;
    /// Their column names, in order.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "score_bound",
        "seed_score",
        "essential_terms",
        "essential_postings",
        "live_postings",
        "lookups",
        "dense_terms",
        "dense_postings",
        "sieved",
        "sieved_blocks",
        "expected_union",
    ];

    /// The features of `query`, of at least one term, on its `index` when it asks for `k` documents.
    #[must_use]
    pub fn of(query: &Query, index: &Index, k: usize) -> Self {
        let bm25 = index.built_with();
        let terms: Vec<Bounded<'_>> = (query.terms.iter())
            .map(|term| {
                let list = index.list(term.term);
                let weight = bm25.weight(index.num_docs(), term.doc_freq, term.qtf);
                Bounded { list, weight, bound: weight * list.max_impact(), is_dense: list.probe().is_some() }
            })
            .collect();
        let mut features = Self::default();
        features.score(&terms, k);
        features.sieve(&terms, index.num_docs());
        features
    }

    /// What bounds and seeds say.
    fn score(&mut self, terms: &[Bounded<'_>], k: usize) {
        let seed = terms.iter().map(|term| term.weight * term.list.kth_impact(k)).fold(0.0, f32::max);
        let bound: f32 = terms.iter().map(|term| term.bound).sum();
        // Bounds of the terms after the one at hand.
        let mut after = 0.0;
        let mut essential_terms = 0;
        for (t, term) in terms.iter().enumerate().rev() {
            let postings = f64::from(term.list.doc_freq());
            let (alive, leading) = live_blocks(term, seed, bound - term.bound, after);
            self.live_postings += alive * postings;
            self.lookups += leading * postings * (terms.len() - 1 - t) as f64;
            after += term.bound;
            if essential_terms == 0 && after > seed {
                essential_terms = t + 1;
            }
        }
        // The seed itself is a score: all bounds together reach it, but for rounding.
        let essential_terms = essential_terms.max(1);
        self.essential_terms = essential_terms as f64;
        self.essential_postings = postings(&terms[..essential_terms]);
        (self.score_bound, self.seed_score) = (bound.into(), seed.into());
    }

    /// What direct forms say.
    fn sieve(&mut self, terms: &[Bounded<'_>], num_docs: u32) {
        let Some((shortest, others)) = terms.split_first() else { return };
        let is_in = |list: &PostingList<'_>| f64::from(list.doc_freq()) / f64::from(num_docs);
        let dense = || terms.iter().filter(|term| term.is_dense);
        self.dense_terms = dense().count() as f64;
        self.dense_postings = dense().map(|term| f64::from(term.list.doc_freq())).sum();
        self.expected_union = f64::from(num_docs) * (1.0 - terms.iter().map(|t| 1.0 - is_in(&t.list)).product::<f64>());
        self.sieved = f64::from(shortest.list.doc_freq()) * share_in_dense(shortest, others);
        let mut candidates = self.sieved;
        for term in others.iter().filter(|term| !term.is_dense) {
            let blocks = term.list.num_blocks() as f64;
            self.sieved_blocks += blocks * (1.0 - (-candidates / blocks).exp());
            candidates *= is_in(&term.list);
        }
    }

    /// As numbers, in the order of [`IndexFeatures::NAMES`].
    #[must_use]
    pub fn vector(&self) -> [f64; Self::COUNT] {
        [
            self.score_bound,
            self.seed_score,
            self.essential_terms,
            self.essential_postings,
            self.live_postings,
            self.lookups,
            self.dense_terms,
            self.dense_postings,
            self.sieved,
            self.sieved_blocks,
            self.expected_union,
        ]
    }

    /// The features of these numbers, in the order of [`IndexFeatures::NAMES`].
    #[must_use]
    pub fn from_vector(numbers: [f64; Self::COUNT]) -> Self {
        let [
            score_bound,
            seed_score,
            essential_terms,
            essential_postings,
            live_postings,
            lookups,
            dense_terms,
            dense_postings,
            sieved,
            sieved_blocks,
            expected_union,
        ] = numbers;
        Self {
            score_bound,
            seed_score,
            essential_terms,
            essential_postings,
            live_postings,
            lookups,
            dense_terms,
            dense_postings,
            sieved,
            sieved_blocks,
            expected_union,
        }
    }
}

fn postings(terms: &[Bounded<'_>]) -> f64 {
    terms.iter().map(|term| f64::from(term.list.doc_freq())).sum()
}

/// Of some blocks, evenly spread, the share whose bounds exceed the seed with those of the `others`, and the share that
/// exceeds it with those of the terms `after` it alone.
fn live_blocks(term: &Bounded<'_>, seed: f32, others: f32, after: f32) -> (f64, f64) {
    let num_blocks = term.list.num_blocks();
    let sampled = num_blocks.min(SAMPLED_BLOCKS);
    let (mut alive, mut leading) = (0_u32, 0_u32);
    for sample in 0..sampled {
        let bound = term.weight * term.list.block_max_impact((2 * sample + 1) * num_blocks / (2 * sampled));
        alive += u32::from(bound + others > seed);
        leading += u32::from(bound + after > seed);
    }
    (f64::from(alive) / sampled as f64, f64::from(leading) / sampled as f64)
}

/// The share of a list's documents that are in all of the others that have a direct form: of a sample, of one block from
/// its middle; one is counted as half in, so that the share is never 0.
fn share_in_dense(shortest: &Bounded<'_>, others: &[Bounded<'_>]) -> f64 {
    if !others.iter().any(|term| term.is_dense) {
        return 1.0;
    }
    let mut docs = [0; BLOCK_LEN];
    let len = shortest.list.decode_docs(shortest.list.num_blocks() / 2, &mut docs);
    let sampled = len.min(SAMPLED_DOCS);
    let mut kept: [u32; SAMPLED_DOCS] = std::array::from_fn(|sample| docs[(sample * len / sampled).min(len - 1)]);
    let mut num_kept = sampled;
    for probe in others.iter().filter_map(|term| term.list.probe()) {
        let mut still = 0;
        for i in 0..num_kept {
            kept[still] = kept[i];
            still += usize::from(probe.contains(kept[i]));
        }
        num_kept = still;
    }
    (num_kept as f64 + 0.5) / (sampled as f64 + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::QueryId;

    /// Lists of every `step`-th of 200,000 documents; frequencies rise with the document in the first.
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

    #[test]
    fn seeds_and_bounds_tell_which_lists_are_essential() {
        let index = index(&[50, 3, 2]);
        let features = IndexFeatures::of(&query(&index, 3), &index, 10);
        assert!(features.seed_score > 0.0 && features.seed_score < features.score_bound);
        // Both other lists are so common that they can't reach what ten documents of the rare one do.
        assert_eq!((features.essential_terms, features.essential_postings), (1.0, 4000.0));
        assert!(features.live_postings >= features.essential_postings / 16.0);
        // More documents wanted, a lower seed.
        assert!(IndexFeatures::of(&query(&index, 3), &index, 1000).seed_score <= features.seed_score);
        assert_eq!(IndexFeatures::of(&query(&index, 3), &index, 10_000).seed_score, 0.0);
    }

    #[test]
    fn dense_lists_sieve_a_sample_of_the_shortest() {
        let index = index(&[50, 3, 2]);
        let features = IndexFeatures::of(&query(&index, 3), &index, 10);
        assert_eq!((features.dense_terms, features.dense_postings), (2.0, 166_667.0));
        // Every multiple of 50 is one of 2, every third of them one of 3.
        assert!((1000.0..1700.0).contains(&features.sieved), "{}", features.sieved);
        assert_eq!(features.sieved_blocks, 0.0);
        assert!((133_000.0..138_000.0).contains(&features.expected_union), "{}", features.expected_union);
        let alone = IndexFeatures::of(&query(&index, 1), &index, 10);
        assert_eq!((alone.sieved, alone.dense_terms, alone.lookups), (4000.0, 0.0, 0.0));
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
        let features = IndexFeatures::of(&query(&index, 2), &index, 10);
        assert!(features.vector().iter().all(|number| number.is_finite() && *number >= 0.0), "{features:?}");
        assert_eq!((features.seed_score, features.essential_terms), (0.0, 2.0));
    }
}
