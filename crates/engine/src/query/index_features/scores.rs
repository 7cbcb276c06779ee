//! Features from bounds and seeds: the part of a disjunction that can be skipped.

use tandem_base::traffic::IndexFeatures;

use super::{Bounded, postings};
use crate::index::PostingList;

const SAMPLED_BLOCKS: usize = 8;

/// Fills in the features from bounds and seeds of `terms`, rarest first.
pub(super) fn fill_scores(features: &mut IndexFeatures, terms: &[Bounded<'_>]) {
    let bound: f32 = terms.iter().map(|term| term.bound).sum();
    let (mut seed, mut second_seed) = (0.0_f32, 0.0_f32);
    for term in terms {
        second_seed = second_seed.max(seed.min(term.seed));
        seed = seed.max(term.seed);
    }
    let mut after = 0.0;
    let mut essential_terms = 0;
    for (t, term) in terms.iter().enumerate().rev() {
        let postings = f64::from(term.list.doc_freq());
        let (alive, leading) = live_blocks(term, seed, bound - term.bound, after);
        features.live_postings += alive * postings;
        features.lookups += leading * postings * (terms.len() - 1 - t) as f64;
        after += term.bound;
        if essential_terms == 0 && after > seed {
            essential_terms = t + 1;
        }
    }
    // The seed is a score: all bounds together reach it, except for rounding.
    let essential_terms = essential_terms.max(1);
    features.essential_terms = essential_terms as f64;
    features.essential_postings = postings(&terms[..essential_terms]);
    (features.score_bound, features.seed_score, features.second_seed) = (bound.into(), seed.into(), second_seed.into());
    let bound_of = |t: usize| terms.get(t).map_or(0.0, |term| f64::from(term.bound));
    (features.first_bound, features.third_bound) = (bound_of(0), bound_of(2));
    features.third_shortest = terms.get(2).map_or(0.0, |term| term.list.doc_freq().into());
}

/// Two shares of evenly spread blocks of a list: those whose bounds with the bounds of the `others` exceed the seed, and
/// those that exceed it with the bounds of the terms `after` alone.
fn live_blocks(term: &Bounded<'_>, seed: f32, others: f32, after: f32) -> (f64, f64) {
    let sampled = term.list.num_blocks().min(SAMPLED_BLOCKS);
    let (mut alive, mut leading) = (0_u32, 0_u32);
    for block in sampled_blocks(&term.list) {
        let bound = term.weight * term.list.block_max_impact(block);
        alive += u32::from(bound + others > seed);
        leading += u32::from(bound + after > seed);
    }
    (f64::from(alive) / sampled as f64, f64::from(leading) / sampled as f64)
}

#[inline]
pub(super) fn sampled_blocks(list: &PostingList<'_>) -> impl Iterator<Item = usize> + use<> {
    let num_blocks = list.num_blocks();
    let sampled = num_blocks.min(SAMPLED_BLOCKS);
    (0..sampled).map(move |sample| (2 * sample + 1) * num_blocks / (2 * sampled))
}
