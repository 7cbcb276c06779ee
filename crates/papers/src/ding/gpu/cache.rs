//! Contents of the GPU's cache of lists, counted without a GPU.

use tandem_engine::query::Query;

use super::lists::{HostLists, List};
use crate::error::CacheError;
use crate::wang::cache::placed::{Arrivals, PlacedLists};

/// Requests after which older ones count half, those of a few thousand queries. The paper does not name its eviction
/// policy; this one evicts the list with the fewest requests.
const HALF_LIFE: f64 = 10_000.0;

/// Requests of a stream of queries to a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Requests {
    pub(crate) queries: usize,
    /// Lists that the queries named.
    pub(crate) lists: usize,
    /// Named lists that were in the cache.
    pub(crate) hits: usize,
    pub(crate) bytes: u64,
    /// Bytes that were copied to the cache.
    pub(crate) moved_bytes: u64,
    /// Number of compactions, made if no gap was large enough.
    pub(crate) compactions: usize,
}

impl Requests {
    /// Returns the percent of named lists that were in the cache.
    pub(crate) fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.lists.max(1) as f64
    }

    /// Returns the percent of bytes that were in the cache.
    pub(crate) fn byte_hit_percent(&self) -> f64 {
        100.0 * (1.0 - self.moved_bytes as f64 / self.bytes.max(1) as f64)
    }
}

/// A cache of lists with places in a memory of `budget_bytes`.
#[derive(Debug)]
pub(crate) struct ListCache {
    placed: PlacedLists,
    pub(crate) requests: Requests,
}

impl ListCache {
    pub(crate) fn new(lists: &HostLists, budget_bytes: u64) -> Self {
        Self { placed: PlacedLists::new(lists.len(), budget_bytes, HALF_LIFE), requests: Requests::default() }
    }

    /// Pins the lists of a query until they are [released](Self::release). Returns the pinned lists, and the moves and
    /// copies. Returns [`CacheError::DoesNotFit`] if they exceed the budget together with other pinned lists.
    pub(crate) fn admit(
        &mut self,
        lists: &HostLists,
        query: &Query,
    ) -> Result<(Vec<(u32, u64)>, Arrivals), CacheError> {
        let of_query = query.terms.iter().map(|term| lists.list(term.term));
        let wanted: Vec<(u32, u64)> = of_query.map(|list| (list.number, list.bytes())).collect();
        let arrivals = self.placed.pin(&wanted)?;
        let requests = &mut self.requests;
        requests.queries += 1;
        requests.lists += wanted.len();
        requests.hits += wanted.len() - arrivals.misses.len();
        requests.bytes += arrivals.hit_bytes + arrivals.miss_bytes;
        requests.moved_bytes += arrivals.miss_bytes;
        requests.compactions += usize::from(!arrivals.moves.is_empty());
        Ok((wanted, arrivals))
    }

    pub(crate) fn release(&mut self, wanted: &[(u32, u64)]) {
        self.placed.unpin(wanted);
    }

    /// Returns the byte offset of a pinned list. Panics if the list is not held.
    pub(crate) fn place_of(&self, list: &List) -> u64 {
        self.placed.place_of(list.number).expect("a query's lists stay until it is done")
    }
}

/// Counts the requests of `queries` to a cache of `budget_bytes`; those of `warm_up` go first and do not count. Returns
/// [`CacheError::DoesNotFit`] if the lists of a query exceed the cache.
pub(crate) fn requests_of(
    lists: &HostLists,
    budget_bytes: u64,
    warm_up: &[Query],
    queries: &[Query],
) -> Result<Requests, CacheError> {
    let mut cache = ListCache::new(lists, budget_bytes);
    for (stream, queries) in [warm_up, queries].into_iter().enumerate() {
        if stream == 1 {
            cache.requests = Requests::default();
        }
        for query in queries {
            let (wanted, _) = cache.admit(lists, query)?;
            cache.release(&wanted);
        }
    }
    Ok(cache.requests)
}

impl HostLists {
    pub(crate) fn bytes_of(&self, query: &Query) -> u64 {
        query.terms.iter().map(|term| self.list(term.term).bytes()).sum()
    }
}
