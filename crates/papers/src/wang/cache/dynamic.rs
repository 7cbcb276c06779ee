//! A dynamic cache of blocks: the blocks that queries visited last, replaced by the least recently used.
//!
//! The paper leaves this for future work: "a dynamic caching algorithm which can respond to the inhomogeneity of the query stream". A block
//! that a query visits and the cache lacks is moved and admitted. The first blocks of a list are visited at least as often as later ones,
//! so that evicting the last block of the least recently used ones keeps beginnings of lists.

use std::collections::BTreeSet;

use super::sizes::Sizes;

/// Counts of a replayed log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Replayed {
    /// Lists that queries name, counted per query.
    pub(crate) requests: u64,
    /// Requested lists of which the cache holds all visited blocks.
    pub(crate) hits: u64,
    pub(crate) moved_bytes: u64,
}

/// A cache of beginnings of lists.
#[derive(Debug)]
pub(crate) struct DynamicCache<'a> {
    sizes: &'a dyn Sizes,
    budget_bytes: u64,
    /// Postings per block; `u32::MAX` caches whole lists.
    block_len: u32,
    bytes: u64,
    now: u64,
    /// Blocks held of each list, with the time of the last visit.
    visits: Vec<Vec<u64>>,
    /// Last blocks of all lists by the time of the last visit.
    ends: BTreeSet<(u64, u32)>,
    batch: Moves,
}

/// Moves of the current batch: a list is moved once, for any number of queries that miss it.
#[derive(Debug)]
struct Moves {
    buffer_bytes: u64,
    bytes: u64,
    number: u32,
    /// Last batch that moved blocks of each list, and the number of its first blocks that were there then.
    brought: Vec<(u32, usize)>,
}

impl<'a> DynamicCache<'a> {
    /// Makes an empty cache. A batch moves at most `buffer_bytes`; with 0 every read is a batch of its own.
    pub(crate) fn new(sizes: &'a dyn Sizes, budget_bytes: u64, buffer_bytes: u64, block_len: u32) -> Self {
        let visits = vec![Vec::new(); sizes.num_lists()];
        let batch = Moves { buffer_bytes, bytes: 0, number: 1, brought: vec![(0, 0); sizes.num_lists()] };
        Self { sizes, budget_bytes, block_len, bytes: 0, now: 0, visits, ends: BTreeSet::new(), batch }
    }

    /// Reads the first `postings` of a list for a query; moves and admits what the cache lacks.
    pub(crate) fn read(&mut self, list: u32, postings: u32, counts: &mut Replayed) {
        self.now += 1;
        counts.requests += 1;
        let wanted = postings.div_ceil(self.block_len) as usize;
        let held = self.visits[list as usize].len();
        self.forget_end(list);
        self.visits[list as usize].resize(held.max(wanted), 0);
        self.visits[list as usize][..wanted].fill(self.now);
        let end = wanted.max(held);
        counts.hits += u64::from(wanted <= held);
        counts.moved_bytes += self.moved_by_batch(list, held, end);
        self.bytes += self.bytes_of(list, end) - self.bytes_of(list, held);
        self.note_end(list);
        self.evict();
    }

    /// Returns the bytes of blocks `held..end` that the batch has not moved before, and moves them.
    fn moved_by_batch(&mut self, list: u32, held: usize, end: usize) -> u64 {
        self.batch.number += u32::from(self.batch.buffer_bytes == 0);
        let there = |batch: &Moves| match batch.brought[list as usize] {
            (number, blocks) if number == batch.number => blocks.max(held),
            _ => held,
        };
        let bytes_from = |cache: &Self, from: usize| cache.bytes_of(list, end.max(from)) - cache.bytes_of(list, from);
        let mut moved = bytes_from(&*self, there(&self.batch));
        if moved > 0 && self.batch.bytes + moved > self.batch.buffer_bytes {
            // The buffer is full: the next batch begins.
            self.batch.number += 1;
            self.batch.bytes = 0;
            moved = bytes_from(&*self, held);
        }
        self.batch.bytes += moved;
        self.batch.brought[list as usize] = (self.batch.number, end.max(there(&self.batch)));
        moved
    }

    /// Bytes of the first blocks of a list.
    fn bytes_of(&self, list: u32, blocks: usize) -> u64 {
        let postings = (blocks as u64 * u64::from(self.block_len)).min(u64::from(self.sizes.len(list)));
        self.sizes.bytes(list, postings as u32)
    }

    fn evict(&mut self) {
        while self.bytes > self.budget_bytes {
            let Some(&(_, list)) = self.ends.first() else { return };
            self.forget_end(list);
            let held = self.visits[list as usize].len();
            self.bytes -= self.bytes_of(list, held) - self.bytes_of(list, held - 1);
            self.visits[list as usize].pop();
            self.note_end(list);
        }
    }

    fn forget_end(&mut self, list: u32) {
        if let Some(&end) = self.visits[list as usize].last() {
            self.ends.remove(&(end, list));
        }
    }

    fn note_end(&mut self, list: u32) {
        if let Some(&end) = self.visits[list as usize].last() {
            self.ends.insert((end, list));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists of these lengths, a byte per posting.
    struct Bytes(Vec<u32>);

    impl Sizes for Bytes {
        fn num_lists(&self) -> usize {
            self.0.len()
        }

        fn len(&self, list: u32) -> u32 {
            self.0[list as usize]
        }

        fn bytes(&self, _: u32, postings: u32) -> u64 {
            postings.into()
        }
    }

    #[test]
    fn what_was_read_last_stays_and_ends_of_lists_go_first() {
        let sizes = Bytes(vec![40, 25, 30]);
        let mut cache = DynamicCache::new(&sizes, 50, 0, 10);
        let mut counts = Replayed::default();
        let mut moved = |list, postings| {
            let before = counts.moved_bytes;
            cache.read(list, postings, &mut counts);
            counts.moved_bytes - before
        };
        assert_eq!(moved(0, 35), 40);
        assert_eq!(moved(0, 12), 0);
        // 40 + 25 bytes exceed 50: list 0 loses the blocks that only the first query read.
        assert_eq!(moved(1, 25), 25);
        assert_eq!(moved(0, 20), 0);
        assert_eq!(moved(0, 40), 20);
        // List 1 kept its first block.
        assert_eq!(moved(1, 5), 0);
        assert_eq!(moved(1, 25), 15);
        assert_eq!((counts.requests, counts.hits, counts.moved_bytes), (7, 3, 100));
    }

    #[test]
    fn a_batch_moves_a_list_once() {
        let sizes = Bytes(vec![40, 40]);
        let mut cache = DynamicCache::new(&sizes, 40, 100, u32::MAX);
        let mut counts = Replayed::default();
        // Each list evicts the other, and both are in the buffer of 100 bytes.
        for list in [0, 1, 0, 1] {
            cache.read(list, 1, &mut counts);
        }
        assert_eq!((counts.hits, counts.moved_bytes), (0, 80));
    }

    #[test]
    fn a_list_larger_than_the_cache_leaves_nothing_behind() {
        let sizes = Bytes(vec![100]);
        let mut cache = DynamicCache::new(&sizes, 60, 0, u32::MAX);
        let mut counts = Replayed::default();
        cache.read(0, 1, &mut counts);
        cache.read(0, 1, &mut counts);
        assert_eq!((counts.hits, counts.moved_bytes, cache.bytes), (0, 200, 0));
    }
}
