//! Which lists lie in the GPU's cache, counted without a GPU.

use super::lists::{HostLists, List};
use crate::wang::cache::CacheError;
use crate::wang::cache::placed::{Arrivals, PlacedLists};
use crate::wang::cache::store::LeastSaved;
use tandem_core::query::Query;

/// Requests after which older ones count half: a few thousand queries' worth. The paper does not say which lists go; those that
/// were asked for least do, per byte.
const HALF_LIFE: f64 = 10_000.0;

/// What a stream of queries asked of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Requests {
    /// Queries.
    pub(crate) queries: usize,
    /// Lists that they named,
    pub(crate) lists: usize,
    /// and those of them that were in the cache.
    pub(crate) hits: usize,
    /// Bytes of the lists that they named,
    pub(crate) bytes: u64,
    /// and bytes that were brought along.
    pub(crate) moved_bytes: u64,
    /// How often all lists were put together, since no gap was long enough.
    pub(crate) compactions: usize,
}

impl Requests {
    /// Percent of the lists that were in the cache.
    pub(crate) fn hit_percent(&self) -> f64 {
        100.0 * self.hits as f64 / self.lists.max(1) as f64
    }

    /// Percent of the bytes that were.
    pub(crate) fn byte_hit_percent(&self) -> f64 {
        100.0 * (1.0 - self.moved_bytes as f64 / self.bytes.max(1) as f64)
    }
}

/// A cache of lists: their places in a memory of `budget_bytes`.
#[derive(Debug)]
pub(crate) struct ListCache {
    placed: PlacedLists<LeastSaved>,
    pub(crate) requests: Requests,
}

impl ListCache {
    /// An empty one.
    pub(crate) fn new(lists: &HostLists, budget_bytes: u64) -> Self {
        let eviction = LeastSaved::new(lists.len(), HALF_LIFE);
        Self { placed: PlacedLists::new(lists.len(), budget_bytes, eviction), requests: Requests::default() }
    }

    /// Makes the lists of a query stay until they are [released](Self::release), which is told what is returned; with what has
    /// to be moved and copied.
    ///
    /// # Errors
    /// [`CacheError::DoesNotFit`] beside what must stay.
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

    /// A query is done with its lists.
    pub(crate) fn release(&mut self, wanted: &[(u32, u64)]) {
        self.placed.unpin(wanted);
    }

    /// The byte at which a list begins that stays.
    ///
    /// # Panics
    /// If it is not held.
    pub(crate) fn place_of(&self, list: &List) -> u64 {
        self.placed.place_of(list.number).expect("a query's lists stay until it is done")
    }
}

/// What a cache of `budget_bytes` does for these queries, one after another; those of `warm_up` go before and don't count.
///
/// # Errors
/// [`CacheError::DoesNotFit`] if a query's lists are larger than the cache.
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
    /// Bytes of the query's lists.
    pub(crate) fn bytes_of(&self, query: &Query) -> u64 {
        query.terms.iter().map(|term| self.list(term.term).bytes()).sum()
    }
}
