//! The score that a document must exceed, kept with slack for pruning.
//!
//! Two numbers are easily confused. A document **enters** when its exact score is above the threshold. A bound **prunes**
//! only what surely stays below: bounds are sums of single-precision numbers in another order than the scores', so that
//! both are rounded differently. Up to 64 roundings of half a unit in the last place shift a sum by less than 2^-18 of
//! itself; the threshold for pruning is lower by 2^-16. Sums of more terms, up to 1024, are shifted by sixteen times as
//! much, and so is their threshold.

use crate::query::Query;
use crate::search::TopK;

/// The benefit of the doubt that bounds of sums are given for roundings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slack(f32);

impl Slack {
    /// What sums of at most 64 numbers need.
    pub(crate) const OF_64: Self = Self(1.0 / 65536.0);
    /// What sums of at most [`Query::MAX_TERMS`] need.
    const OF_ALL: Self = Self(1.0 / 4096.0);

    /// What sums over so many terms need.
    pub(crate) fn of(num_terms: usize) -> Self {
        const { assert!(Query::MAX_TERMS <= 1024, "2 * 1024 roundings of 2^-24 are half of 2^-12") };
        if num_terms <= 64 { Self::OF_64 } else { Self::OF_ALL }
    }

    /// What an upper bound must exceed for the document to be looked at, when only scores above `threshold` enter.
    #[inline(always)]
    pub(crate) fn pruning(self, threshold: f32) -> f32 {
        threshold * (1.0 - self.0)
    }

    /// A number that no sum of these numbers exceeds, in whatever order they are added, nor a difference with some of
    /// them.
    #[inline(always)]
    pub(crate) fn bound_of_sum(self, sum: f32) -> f32 {
        sum * (1.0 + self.0)
    }
}

/// The threshold of one search. It only rises.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    /// Only documents with a score above this can be among the k best.
    value: f32,
    /// Documents with a score bound of at most this are surely not among them.
    pruning: f32,
    slack: Slack,
    /// Whether documents are offered in ascending order.
    in_order: bool,
}

impl Threshold {
    /// A threshold just below `seed`, a score that at least k documents reach (0 where none is known), for bounds that
    /// need this `slack`.
    ///
    /// `in_order` tells that documents will be offered in ascending order: then one whose score equals the k-th best is
    /// surely turned away, being the larger of the two.
    pub(crate) fn new(seed: f32, slack: Slack, in_order: bool) -> Self {
        // The k documents that reach the seed must still enter themselves.
        let value = seed.next_down().max(0.0);
        Self { value, pruning: slack.pruning(value), slack, in_order }
    }

    /// What an upper bound of a score must exceed for the document to be looked at.
    #[inline]
    pub(crate) fn pruning(&self) -> f32 {
        self.pruning
    }

    /// Offers a document if its score is above the threshold, and lifts the threshold to the k-th best score.
    #[inline]
    pub(crate) fn offer(&mut self, doc: u32, score: f32, best: &mut TopK) {
        if score > self.value {
            best.offer(doc, score);
            self.lift(best);
        }
    }

    /// Lifts the threshold to the k-th best score so far.
    #[inline]
    fn lift(&mut self, best: &TopK) {
        let threshold = best.threshold();
        let value = if self.in_order { threshold } else { threshold.next_down() };
        if value > self.value {
            self.value = value;
            self.pruning = self.slack.pruning(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_equal_to_the_seed_enter_and_later_ties_do_not() {
        let mut best = TopK::default();
        best.reset(2);
        let mut threshold = Threshold::new(1.5, Slack::OF_64, true);
        for doc in 0..4 {
            threshold.offer(doc, 1.5, &mut best);
        }
        let mut hits = Vec::new();
        best.drain_into(&mut hits);
        assert!(hits.iter().map(|hit| hit.doc.0).eq([0, 1]));
    }

    #[test]
    fn out_of_order_the_smaller_document_still_wins_a_tie() {
        let mut best = TopK::default();
        best.reset(1);
        let mut threshold = Threshold::new(0.0, Slack::OF_64, false);
        for doc in [9, 3, 7] {
            threshold.offer(doc, 2.0, &mut best);
        }
        let mut hits = Vec::new();
        best.drain_into(&mut hits);
        assert_eq!(hits[0].doc.0, 3);
    }
}
