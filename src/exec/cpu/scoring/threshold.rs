//! The score that a document must exceed, kept with slack for pruning.
//!
//! Two numbers are easily confused. A document **enters** when its exact score is above the threshold. A bound **prunes**
//! only what surely stays below: bounds are sums of single-precision numbers in another order than the scores', so that
//! both are rounded differently. Up to 64 roundings of half a unit in the last place shift a sum by less than 2^-18 of
//! itself; the threshold for pruning is lower by 2^-16.

use crate::exec::TopK;

/// One minus the share by which bounds are given the benefit of the doubt.
const PRUNING: f32 = 1.0 - 1.0 / 65536.0;

/// What an upper bound must exceed for the document to be looked at, when only scores above `threshold` enter.
#[inline]
pub(crate) fn pruning(threshold: f32) -> f32 {
    threshold * PRUNING
}

/// The threshold of one search. It only rises.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threshold {
    /// Only documents with a score above this can be among the k best.
    value: f32,
    /// Documents with a score bound of at most this are surely not among them.
    pruning: f32,
    /// Whether documents are offered in ascending order.
    in_order: bool,
}

impl Threshold {
    /// A threshold just below `seed`, a score that at least k documents reach (0 where none is known).
    ///
    /// `in_order` tells that documents will be offered in ascending order: then one whose score equals the k-th best is
    /// surely turned away, being the larger of the two.
    pub(crate) fn new(seed: f32, in_order: bool) -> Self {
        // The k documents that reach the seed must still enter themselves.
        let value = seed.next_down().max(0.0);
        Self { value, pruning: pruning(value), in_order }
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
            self.pruning = pruning(value);
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
        let mut threshold = Threshold::new(1.5, true);
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
        let mut threshold = Threshold::new(0.0, false);
        for doc in [9, 3, 7] {
            threshold.offer(doc, 2.0, &mut best);
        }
        let mut hits = Vec::new();
        best.drain_into(&mut hits);
        assert_eq!(hits[0].doc.0, 3);
    }
}
