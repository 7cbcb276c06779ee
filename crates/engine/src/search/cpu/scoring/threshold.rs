//! The score that a document must exceed, with slack for pruning.
//!
//! A document **enters** if its exact score is above the threshold. A bound **prunes** only documents that certainly stay
//! below. Bounds and scores are single-precision sums in different orders, so they round differently. Up to 64
//! roundings of half a unit in the last place shift a sum by less than 2^-18 of itself; the threshold for pruning is
//! lower by 2^-16. For up to 1024 terms both are sixteen times as large.

use crate::query::Query;
use crate::search::TopK;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slack(f32);

impl Slack {
    /// For sums of at most 64 numbers.
    const OF_64: Self = Self(1.0 / 65536.0);
    /// For sums of at most [`Query::MAX_TERMS`] numbers.
    const OF_ALL: Self = Self(1.0 / 4096.0);

    /// For sums over `num_terms` terms.
    pub(crate) fn of(num_terms: usize) -> Self {
        const { assert!(Query::MAX_TERMS <= 1024, "2 * 1024 roundings of 2^-24 are half of 2^-12") };
        if num_terms <= 64 { Self::OF_64 } else { Self::OF_ALL }
    }

    /// The value that an upper bound must exceed for a document to matter, if only scores above `threshold` enter.
    #[inline(always)]
    pub(crate) fn pruning(self, threshold: f32) -> f32 {
        threshold * (1.0 - self.0)
    }
}

/// The threshold of one search. It only rises.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    /// Only documents with a score above this can be among the k best.
    value: f32,
    /// Documents with a score bound of at most this cannot be among them.
    pruning: f32,
    slack: Slack,
}

impl Threshold {
    /// A threshold just below `seed`, a score that at least k documents reach (0 if none is known).
    pub(crate) fn new(seed: f32, slack: Slack) -> Self {
        // The k documents that reach the seed must still enter.
        let value = seed.next_down().max(0.0);
        Self { value, pruning: slack.pruning(value), slack }
    }

    /// The value that an upper bound of a score must exceed for a document to matter.
    #[inline]
    pub(crate) fn pruning(&self) -> f32 {
        self.pruning
    }

    /// Offers a document if its score is above the threshold, and raises the threshold to the k-th best score.
    #[inline]
    pub(crate) fn offer(&mut self, doc: u32, score: f32, best: &mut TopK) {
        if score > self.value {
            best.offer(doc, score);
            self.lift(best);
        }
    }

    #[inline]
    fn lift(&mut self, best: &TopK) {
        // Documents come in any order: of equal scores, the smaller document must still enter.
        let value = best.threshold().next_down();
        if value > self.value {
            self.value = value;
            self.pruning = self.slack.pruning(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn winners(k: usize, seed: f32, docs: &[u32]) -> Vec<u32> {
        let mut best = TopK::default();
        best.reset(k);
        let mut threshold = Threshold::new(seed, Slack::of(1));
        docs.iter().for_each(|&doc| threshold.offer(doc, 1.5, &mut best));
        let mut hits = Vec::new();
        best.drain_into(&mut hits);
        hits.iter().map(|hit| hit.doc.0).collect()
    }

    #[test]
    fn scores_equal_to_the_seed_enter_and_later_ties_do_not() {
        assert_eq!(winners(2, 1.5, &[0, 1, 2, 3]), [0, 1]);
    }

    #[test]
    fn out_of_order_the_smaller_document_still_wins_a_tie() {
        assert_eq!(winners(1, 0.0, &[9, 3, 7]), [3]);
    }
}
