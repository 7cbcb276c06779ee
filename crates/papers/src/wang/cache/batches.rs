//! Batches: queries in the order in which they come, with the lists that the cache lacks, until a buffer is full.

use super::{CacheError, Prefixes, Sizes};

/// What a query takes in a buffer besides lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// For itself, with its results.
    pub(crate) query_bytes: u64,
    /// For each of its terms.
    pub(crate) term_bytes: u64,
}

impl Footprint {
    /// Of a query of so many terms.
    #[must_use]
    pub(crate) fn of(self, num_terms: usize) -> u64 {
        self.query_bytes + self.term_bytes * num_terms as u64
    }
}

/// What goes to the device at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    /// Queries, by their place in the log.
    pub(crate) queries: Vec<u32>,
    /// Lists that come along, each once, in the order in which they were met.
    pub(crate) lists: Vec<u32>,
    /// Bytes of these lists.
    pub(crate) list_bytes: u64,
    /// All that it takes of the buffer.
    pub(crate) bytes: u64,
    /// Terms of its queries.
    pub(crate) num_terms: usize,
}

/// What a walk through a log came to, without a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Walk {
    /// Queries in batches.
    pub(crate) queries: u64,
    /// Batches.
    pub(crate) batches: u64,
    /// Bytes of lists that were brought along.
    pub(crate) list_bytes: u64,
    /// Bytes that were brought along, queries and terms included.
    pub(crate) bytes: u64,
    /// Lists that queries in batches named, each query's counted,
    pub(crate) requests: u64,
    /// and those of them that were cached, whole or in part.
    pub(crate) hits: u64,
    /// Queries that no buffer of this size holds: a CPU answers them.
    pub(crate) oversized: u64,
}

impl Walk {
    /// Queries a batch: `n`.
    #[must_use]
    pub(crate) fn queries_a_batch(&self) -> f64 {
        self.queries as f64 / self.batches.max(1) as f64
    }

    /// Megabytes moved a query: `dq`.
    #[must_use]
    pub(crate) fn mb_a_query(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.queries.max(1) as f64
    }

    /// The share of requests that found their list in the cache; 0 if there were none.
    #[must_use]
    pub(crate) fn hit_rate(&self) -> f64 {
        self.hits as f64 / self.requests.max(1) as f64
    }
}

/// Makes batches of one log. Equal arguments give equal batches.
#[derive(Debug)]
pub(crate) struct BatchMaker<'a> {
    sizes: &'a dyn Sizes,
    prefixes: &'a Prefixes,
    footprint: Footprint,
    buffer_bytes: u64,
    /// By list: the batch that has it, counted from 1.
    brought: Vec<u32>,
    number: u32,
    next: u32,
    oversized: Vec<u32>,
}

impl std::fmt::Debug for dyn Sizes + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sizes").field("num_lists", &self.num_lists()).finish()
    }
}

impl<'a> BatchMaker<'a> {
    /// From the log's first query on, for a buffer of so many bytes beside a cache that holds `prefixes`.
    #[must_use]
    pub(crate) fn new(sizes: &'a dyn Sizes, prefixes: &'a Prefixes, footprint: Footprint, buffer_bytes: u64) -> Self {
        let brought = vec![0; sizes.num_lists()];
        Self { sizes, prefixes, footprint, buffer_bytes, brought, number: 0, next: 0, oversized: Vec::new() }
    }

    /// Fills `batch` with the next queries of `log` (each by its lists), at most `limit` of them; false if none is left.
    ///
    /// A query that would not fit if it were alone is left out, and is [oversized](Self::oversized).
    pub(crate) fn next<Q: AsRef<[u32]>>(&mut self, log: &[Q], limit: usize, batch: &mut Batch) -> bool {
        batch.queries.clear();
        batch.lists.clear();
        (batch.list_bytes, batch.bytes, batch.num_terms) = (0, 0, 0);
        self.number += 1;
        while let Some(lists) = log.get(self.next as usize).map(AsRef::as_ref) {
            if batch.queries.len() >= limit {
                break;
            }
            let needed = self.footprint.of(lists.len()) + self.missing(lists, self.number);
            if batch.bytes + needed > self.buffer_bytes {
                if self.alone(lists) > self.buffer_bytes {
                    self.oversized.push(self.next);
                    self.next += 1;
                    continue;
                }
                break;
            }
            for &list in lists {
                if !self.prefixes.is_cached(list) && self.brought[list as usize] != self.number {
                    self.brought[list as usize] = self.number;
                    batch.lists.push(list);
                    batch.list_bytes += self.sizes.whole_bytes(list);
                }
            }
            batch.bytes += needed;
            batch.num_terms += lists.len();
            batch.queries.push(self.next);
            self.next += 1;
        }
        !batch.queries.is_empty()
    }

    /// Bytes of a query's lists that neither the cache holds nor batch `number` has.
    fn missing(&self, lists: &[u32], number: u32) -> u64 {
        let is_missing = |list: u32| !self.prefixes.is_cached(list) && self.brought[list as usize] != number;
        lists.iter().filter(|&&list| is_missing(list)).map(|&list| self.sizes.whole_bytes(list)).sum()
    }

    /// What a batch of this query alone takes.
    fn alone(&self, lists: &[u32]) -> u64 {
        // No batch has the number 0.
        let missing = lists.iter().filter(|&&list| !self.prefixes.is_cached(list));
        self.footprint.of(lists.len()) + missing.map(|&list| self.sizes.whole_bytes(list)).sum::<u64>()
    }

    /// Queries so far that no batch takes.
    #[cfg(any(feature = "gpu", test))]
    #[must_use]
    pub(crate) fn oversized(&self) -> &[u32] {
        &self.oversized
    }

    /// Goes through the whole log and only counts.
    ///
    /// # Errors
    /// [`CacheError::BufferTooSmall`] if no query fits.
    pub(crate) fn walk<Q: AsRef<[u32]>>(mut self, log: &[Q], limit: usize) -> Result<Walk, CacheError> {
        let (mut walk, mut batch) = (Walk::default(), Batch::default());
        while self.next(log, limit, &mut batch) {
            walk.batches += 1;
            walk.queries += batch.queries.len() as u64;
            walk.list_bytes += batch.list_bytes;
            walk.bytes += batch.bytes;
            walk.requests += batch.num_terms as u64;
            let lists = batch.queries.iter().flat_map(|&query| log[query as usize].as_ref());
            walk.hits += lists.filter(|&&list| self.prefixes.is_cached(list)).count() as u64;
        }
        walk.oversized = self.oversized.len() as u64;
        if walk.queries == 0 && !log.is_empty() {
            let needed_bytes = log.iter().map(|lists| self.alone(lists.as_ref())).min().unwrap_or(0);
            return Err(CacheError::BufferTooSmall {
                buffer_bytes: self.buffer_bytes,
                needed_bytes,
                num_queries: log.len(),
            });
        }
        Ok(walk)
    }
}
