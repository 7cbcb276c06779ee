//! The k best documents seen so far.

use tandem_base::base::ids::DocId;

use super::Hit;

/// Keeps the k best of the documents offered: higher scores first, equal scores by smaller document.
///
/// Scores are positive, and positive floats order as their bits do. So one 64-bit key, score bits above the inverted
/// document, carries the whole order on CPU and GPU. Below 64, the k keys are a heap with the least on top. From 64 on,
/// k / 2 more keys are collected before the k best are selected, so the threshold lags a little.
#[derive(Debug, Default)]
pub struct TopK {
    k: usize,
    keys: Vec<u64>,
    /// The number of collected keys that triggers a selection, for large k.
    limit: usize,
    /// The key that a new one must exceed, 0 while there is room.
    floor: u64,
}

/// From this k on, keys are selected in bulk instead of kept in a heap.
const MANY: usize = 64;

impl TopK {
    /// Drops all documents and sets `k`.
    pub fn reset(&mut self, k: usize) {
        self.k = k;
        self.keys.clear();
        self.limit = k;
        self.floor = 0;
        self.keys.reserve(k + k / 2);
    }

    /// The key of a document. Better documents have greater keys.
    #[inline]
    pub fn key(doc: u32, score: f32) -> u64 {
        u64::from(score.to_bits()) << 32 | u64::from(!doc)
    }

    /// The document and score of a key.
    pub fn hit(key: u64) -> Hit {
        Hit { doc: DocId(!(key as u32)), score: score_of(key) }
    }

    /// A lower bound of the score that a document needs to enter, 0 while there is room. A document with an equal score
    /// can be skipped only if documents are offered in ascending order.
    #[inline]
    pub fn threshold(&self) -> f32 {
        score_of(self.floor)
    }

    /// Whether k documents are kept, so that a new one must be better than one of them.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.keys.len() >= self.k
    }

    /// Adds the document if it is among the k best so far.
    #[inline]
    pub fn offer(&mut self, doc: u32, score: f32) {
        let key = Self::key(doc, score);
        if key <= self.floor {
            return;
        }
        if self.k >= MANY {
            self.keys.push(key);
            if self.keys.len() >= self.limit {
                self.select();
            }
        } else if self.is_full() {
            if let Some(least) = self.keys.first_mut() {
                *least = key;
                self.sift_down(0);
                self.floor = self.keys[0];
            }
        } else {
            self.keys.push(key);
            if self.is_full() {
                for parent in (0..self.k / 2).rev() {
                    self.sift_down(parent);
                }
                self.floor = self.keys[0];
            }
        }
    }

    #[inline(never)]
    fn select(&mut self) {
        let (_, &mut least, _) = self.keys.select_nth_unstable_by(self.k - 1, |a, b| b.cmp(a));
        self.keys.truncate(self.k);
        self.floor = least;
        self.limit = self.k + self.k / 2;
    }

    /// The number of documents kept at most.
    pub fn k(&self) -> usize {
        self.k
    }

    /// The number of documents kept.
    pub fn len(&self) -> usize {
        self.keys.len().min(self.k)
    }

    /// Whether no document is kept.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Moves the documents into `hits`, best first.
    pub fn drain_into(&mut self, hits: &mut Vec<Hit>) {
        if self.keys.len() > self.k {
            self.select();
        }
        self.keys.sort_unstable_by(|a, b| b.cmp(a));
        hits.clear();
        hits.extend(self.keys.drain(..).map(Self::hit));
        self.limit = self.k;
        self.floor = 0;
    }

    /// Sifts the key at `hole` down until no child is less.
    fn sift_down(&mut self, mut hole: usize) {
        let keys = self.keys.as_mut_slice();
        let key = keys[hole];
        loop {
            let left = 2 * hole + 1;
            if left >= keys.len() {
                break;
            }
            let right = (left + 1).min(keys.len() - 1);
            let least = if keys[right] < keys[left] { right } else { left };
            if keys[least] >= key {
                break;
            }
            keys[hole] = keys[least];
            hole = least;
        }
        keys[hole] = key;
    }
}

fn score_of(key: u64) -> f32 {
    f32::from_bits((key >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(offers: &[(u32, f32)]) -> Vec<(u32, f32)> {
        let mut sorted = offers.to_vec();
        sorted.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        sorted
    }

    fn drained(best: &mut TopK) -> Vec<(u32, f32)> {
        let mut hits = Vec::new();
        best.drain_into(&mut hits);
        hits.iter().map(|hit| (hit.doc.0, hit.score)).collect()
    }

    #[test]
    fn the_best_k_come_out_in_order_whatever_the_order_in() {
        let offers = [(9, 1.0), (3, 2.5), (7, 2.5), (1, 0.5), (5, f32::MIN_POSITIVE), (2, 2.5)];
        let expected = sorted(&offers);
        for rotation in 0..offers.len() {
            for k in 1..=offers.len() + 1 {
                let mut best = TopK::default();
                best.reset(k);
                for &(doc, score) in offers.iter().cycle().skip(rotation).take(offers.len()) {
                    best.offer(doc, score);
                }
                assert_eq!(drained(&mut best), expected[..k.min(offers.len())], "k {k}, rotation {rotation}");
                assert!(best.is_empty());
            }
        }
    }

    #[test]
    fn many_are_selected_as_few_are_kept_in_a_heap() {
        // Few distinct scores, in an order that mixes them well.
        let offers: Vec<(u32, f32)> =
            (0..5000_u32).map(|doc| (doc, 1.0 + (doc.wrapping_mul(2_654_435_761) >> 24) as f32)).collect();
        let expected = sorted(&offers);
        let mut best = TopK::default();
        for k in [1, MANY - 1, MANY, MANY + 1, 1000, 4999, 5000, 6000] {
            best.reset(k);
            for (offered, &(doc, score)) in offers.iter().enumerate() {
                best.offer(doc, score);
                assert_eq!(best.len(), k.min(offered + 1));
            }
            assert!(k > offers.len() || best.threshold() <= expected[k - 1].1);
            assert_eq!(drained(&mut best), expected[..k.min(offers.len())], "k {k}");
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
