//! The k best documents seen so far.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Hit;
use crate::ids::DocId;

/// Keeps the k best of the documents offered: higher scores first, equal scores by smaller document.
///
/// Scores are above zero, and such floats order as their bits do: one 64-bit key, score bits above the inverted document,
/// carries the whole order, here and on the GPU.
#[derive(Debug, Default)]
pub struct TopK {
    k: usize,
    heap: BinaryHeap<Reverse<u64>>,
}

impl TopK {
    /// Forgets what was offered; from now on keeps the best `k`.
    pub fn reset(&mut self, k: usize) {
        self.k = k;
        self.heap.clear();
        self.heap.reserve(k);
    }

    /// The key of a document: greater is better.
    #[must_use]
    #[inline]
    pub fn key(doc: u32, score: f32) -> u64 {
        u64::from(score.to_bits()) << 32 | u64::from(!doc)
    }

    /// The document and score of a key.
    #[must_use]
    pub fn hit(key: u64) -> Hit {
        Hit { doc: DocId(!(key as u32)), score: f32::from_bits((key >> 32) as u32) }
    }

    /// The score that a document must at least have to enter, 0 while there is room. Documents must be offered in
    /// ascending order for a score equal to it to be turned away rightly; [`TopK::offer`] settles it in any order.
    #[must_use]
    #[inline]
    pub fn threshold(&self) -> f32 {
        if self.heap.len() < self.k {
            return 0.0;
        }
        self.heap.peek().map_or(0.0, |&Reverse(key)| f32::from_bits((key >> 32) as u32))
    }

    /// Takes the document in if it is among the k best so far.
    #[inline]
    pub fn offer(&mut self, doc: u32, score: f32) {
        let key = Self::key(doc, score);
        if self.heap.len() < self.k {
            self.heap.push(Reverse(key));
        } else if let Some(mut worst) = self.heap.peek_mut()
            && key > worst.0
        {
            *worst = Reverse(key);
        }
    }

    /// How many documents are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether none is kept.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// Moves what is kept into `hits`, best first.
    pub fn drain_into(&mut self, hits: &mut Vec<Hit>) {
        hits.clear();
        // Popping gives the worst first.
        while let Some(Reverse(key)) = self.heap.pop() {
            hits.push(Self::hit(key));
        }
        hits.reverse();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_k_come_out_in_order_whatever_the_order_in() {
        let offers = [(9, 1.0), (3, 2.5), (7, 2.5), (1, 0.5), (5, f32::MIN_POSITIVE), (2, 2.5)];
        let mut expected = offers.to_vec();
        expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        for rotation in 0..offers.len() {
            for k in 1..=offers.len() + 1 {
                let mut best = TopK::default();
                best.reset(k);
                for &(doc, score) in offers.iter().cycle().skip(rotation).take(offers.len()) {
                    best.offer(doc, score);
                }
                let mut hits = Vec::new();
                best.drain_into(&mut hits);
                let found: Vec<_> = hits.iter().map(|hit| (hit.doc.0, hit.score)).collect();
                assert_eq!(found, expected[..k.min(offers.len())], "k {k}, rotation {rotation}");
                assert!(best.is_empty());
            }
        }
    }

    #[test]
    fn the_threshold_is_zero_while_there_is_room() {
        let mut best = TopK::default();
        best.reset(2);
        best.offer(1, 4.0);
        assert_eq!(best.threshold(), 0.0);
        best.offer(2, 3.0);
        assert_eq!(best.threshold(), 3.0);
    }
}
