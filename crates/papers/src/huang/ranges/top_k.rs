//! The best k of a range, and the merge of all ranges.
//!
//! A key is a number of score and document ([`TopK::key`]); the better one is greater. A range keeps its best keys in a
//! heap with the least on top, whose score is the threshold. Ranges are merged by insertion: the keys of each, best
//! first, go into one sorted list until one does not enter it.

use tandem_engine::search::TopK;

/// The best k of a range; `top_k.cuh` in the kernels.
#[derive(Clone, Debug, Default)]
pub(crate) struct RangeTopK {
    k: usize,
    keys: Vec<u64>,
}

impl RangeTopK {
    pub(crate) fn new(k: usize) -> Self {
        Self { k, keys: Vec::new() }
    }

    /// Returns the score that a later document must exceed to enter; 0 while there is room.
    #[inline]
    pub(crate) fn threshold(&self) -> f32 {
        if self.keys.len() < self.k { 0.0 } else { f32::from_bits((self.keys[0] >> 32) as u32) }
    }

    /// Offers a document that comes after all earlier ones.
    #[inline]
    pub(crate) fn offer(&mut self, doc: u32, score: f32) {
        let key = TopK::key(doc, score);
        if self.keys.len() < self.k {
            self.keys.push(key);
            self.rise(self.keys.len() - 1);
        } else if key > self.keys[0] {
            self.keys[0] = key;
            self.sink(self.keys.len());
        }
    }

    pub(crate) fn into_sorted(mut self) -> Vec<u64> {
        // The least key goes behind the shrinking heap, which leaves descending keys.
        for len in (1..self.keys.len()).rev() {
            self.keys.swap(0, len);
            self.sink(len);
        }
        self.keys
    }

    /// Moves the key at `place` up until its parent is less.
    fn rise(&mut self, mut place: usize) {
        while place > 0 && self.keys[place] < self.keys[(place - 1) / 2] {
            self.keys.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    /// Moves the first of `len` keys down until no child is less.
    fn sink(&mut self, len: usize) {
        let mut place = 0;
        loop {
            let left = 2 * place + 1;
            if left >= len {
                return;
            }
            let child = if left + 1 < len && self.keys[left + 1] < self.keys[left] { left + 1 } else { left };
            if self.keys[place] <= self.keys[child] {
                return;
            }
            self.keys.swap(place, child);
            place = child;
        }
    }
}

/// Inserts `keys`, best first, into the sorted `merged` of at most `k`; `merge.cuh` in the kernels.
pub(crate) fn insert_merge(merged: &mut Vec<u64>, keys: &[u64], k: usize) {
    for &key in keys {
        if merged.len() == k && merged[k - 1] > key {
            return;
        }
        let place = merged.partition_point(|&other| other > key);
        merged.truncate(k - 1);
        merged.insert(place, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_model::base::random::mix;

    #[test]
    fn what_is_kept_of_ranges_and_merged_is_what_sorting_all_gives() {
        for k in [1, 2, 7, 64, 1000] {
            for per_range in [0, 1, 5, 300] {
                // Few distinct scores give many ties.
                let score = |doc: u32| 1.0 + (mix(doc.into()) % 13) as f32;
                let mut merged = Vec::new();
                for range in 0..8_u32 {
                    let mut best = RangeTopK::new(k);
                    for doc in range * 1000..range * 1000 + per_range {
                        best.offer(doc, score(doc));
                    }
                    insert_merge(&mut merged, &best.into_sorted(), k);
                }
                let docs = (0..8_u32).flat_map(|range| range * 1000..range * 1000 + per_range);
                let mut expected: Vec<u64> = docs.map(|doc| TopK::key(doc, score(doc))).collect();
                expected.sort_unstable_by(|a, b| b.cmp(a));
                expected.truncate(k);
                assert_eq!(merged, expected, "k {k}, {per_range} a range");
            }
        }
    }
}
