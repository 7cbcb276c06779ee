//! Batches of consecutive queries with the lists that the cache misses, up to the size of a buffer.

use super::prefixes::Prefixes;
use super::sizes::Sizes;
use crate::error::CacheError;

/// Bytes of a query in a buffer without lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// Bytes per query, with its results.
    pub(crate) query_bytes: u64,
    pub(crate) term_bytes: u64,
}

impl Footprint {
    /// Returns the bytes of a query of `num_terms` terms.
    pub(crate) fn of(self, num_terms: usize) -> u64 {
        self.query_bytes + self.term_bytes * num_terms as u64
    }
}

/// Queries and lists that go to the device together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) queries: Vec<u32>,
    /// Distinct lists to copy, in the order of their first query.
    pub(crate) lists: Vec<u32>,
    pub(crate) list_bytes: u64,
    /// Bytes in the buffer, with queries and terms.
    pub(crate) bytes: u64,
    pub(crate) num_terms: usize,
}

/// Counts over the batches of a log, made without a device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BatchTrace {
    pub(crate) queries: u64,
    pub(crate) batches: u64,
    pub(crate) list_bytes: u64,
    /// Bytes that were copied, with queries and terms.
    pub(crate) bytes: u64,
    /// Lists that queries name, counted per query.
    pub(crate) requests: u64,
    /// Requested lists of which the cache holds at least a beginning.
    pub(crate) hits: u64,
    /// Queries too large for the buffer, which a CPU answers.
    pub(crate) oversized: u64,
}

impl BatchTrace {
    /// Returns queries per batch, `n`.
    pub(crate) fn queries_per_batch(&self) -> f64 {
        self.queries as f64 / self.batches.max(1) as f64
    }

    /// Returns megabytes moved per query, `dq`.
    pub(crate) fn mb_per_query(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.queries.max(1) as f64
    }

    /// Returns the share of requests that hit the cache; 0 without requests.
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
    /// Last batch that has each list, counted from 1.
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
    /// Starts at the first query of a log, with a cache of `prefixes` and a buffer of `buffer_bytes`.
    pub(crate) fn new(sizes: &'a dyn Sizes, prefixes: &'a Prefixes, footprint: Footprint, buffer_bytes: u64) -> Self {
        let brought = vec![0; sizes.num_lists()];
        Self { sizes, prefixes, footprint, buffer_bytes, brought, number: 0, next: 0, oversized: Vec::new() }
    }

    /// Fills `batch` with the next queries of `log`, at most `limit`; returns false after the last query.
    ///
    /// A query that does not fit alone is left out and becomes [oversized](Self::oversized).
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

    /// Returns the bytes of a query's lists that neither the cache nor batch `number` has.
    fn missing(&self, lists: &[u32], number: u32) -> u64 {
        let is_missing = |list: u32| !self.prefixes.is_cached(list) && self.brought[list as usize] != number;
        lists.iter().filter(|&&list| is_missing(list)).map(|&list| self.sizes.whole_bytes(list)).sum()
    }

    /// Returns the bytes of a batch of this query alone.
    fn alone(&self, lists: &[u32]) -> u64 {
        let missing = lists.iter().filter(|&&list| !self.prefixes.is_cached(list));
        self.footprint.of(lists.len()) + missing.map(|&list| self.sizes.whole_bytes(list)).sum::<u64>()
    }

    /// Returns the queries so far that do not fit into a batch.
    pub(crate) fn oversized(&self) -> &[u32] {
        &self.oversized
    }

    /// Counts the batches of the whole log. [`CacheError::BufferTooSmall`] if no query fits.
    pub(crate) fn trace<Q: AsRef<[u32]>>(mut self, log: &[Q], limit: usize) -> Result<BatchTrace, CacheError> {
        let (mut trace, mut batch) = (BatchTrace::default(), Batch::default());
        while self.next(log, limit, &mut batch) {
            trace.batches += 1;
            trace.queries += batch.queries.len() as u64;
            trace.list_bytes += batch.list_bytes;
            trace.bytes += batch.bytes;
            trace.requests += batch.num_terms as u64;
            let lists = batch.queries.iter().flat_map(|&query| log[query as usize].as_ref());
            trace.hits += lists.filter(|&&list| self.prefixes.is_cached(list)).count() as u64;
        }
        trace.oversized = self.oversized.len() as u64;
        if trace.queries == 0 && !log.is_empty() {
            let needed_bytes = log.iter().map(|lists| self.alone(lists.as_ref())).min().unwrap_or(0);
            return Err(CacheError::BufferTooSmall {
                buffer_bytes: self.buffer_bytes,
                needed_bytes,
                num_queries: log.len(),
            });
        }
        Ok(trace)
    }
}
