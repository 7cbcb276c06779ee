//! Lists under a budget, each with a place in a memory of just that size.
//!
//! ```text
//!   pin(lists) ──▶ ListStore: what goes, what must come ──▶ Space: where it comes ──▶ moves first, then copies
//! ```

use super::space::{Move, Space};
use super::{CacheError, Eviction, ListStore};

/// What must happen in memory so that pinned lists are where they belong: all moves, in order, then the copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrivals {
    /// Bytes that were held already.
    pub(crate) hit_bytes: u64,
    /// Lists to be copied to their places.
    pub(crate) misses: Vec<u32>,
    /// Bytes of them.
    pub(crate) miss_bytes: u64,
    /// Lists that lie elsewhere from now on: made only where no gap was long enough.
    pub(crate) moves: Vec<Move>,
}

/// A [`ListStore`] whose lists have places.
#[derive(Clone, Debug)]
pub(crate) struct PlacedLists<E> {
    store: ListStore<E>,
    space: Space,
}

impl<E: Eviction> PlacedLists<E> {
    /// Nothing is held yet.
    #[must_use]
    pub(crate) fn new(num_lists: usize, budget_bytes: u64, eviction: E) -> Self {
        Self { store: ListStore::new(num_lists, budget_bytes, eviction), space: Space::new(num_lists, budget_bytes) }
    }

    /// The byte at which the list begins; `None` if it is not held.
    #[must_use]
    pub(crate) fn place_of(&self, list: u32) -> Option<u64> {
        self.space.place_of(list)
    }

    /// Pins lists, each with its bytes (at least 1) and named once, until they are [unpinned](Self::unpin). Until the next call
    /// none of them moves; in the next call pinned ones may.
    ///
    /// # Errors
    /// As of [`ListStore::pin`]; nothing has moved then.
    pub(crate) fn pin(&mut self, lists: &[(u32, u64)]) -> Result<Arrivals, CacheError> {
        let pinned = match self.store.pin(lists) {
            Ok(pinned) => pinned,
            Err(error) => {
                // Some may have gone before it was found that they don't suffice.
                let store = &self.store;
                self.space.retain(|list| store.holds(list));
                return Err(error);
            }
        };
        pinned.evicted.iter().for_each(|&list| self.space.free(list));
        let is_missing = |list: &(u32, u64)| self.space.place_of(list.0).is_none();
        let missing: Vec<(u32, u64)> = lists.iter().copied().filter(is_missing).collect();
        let mut moves = Vec::new();
        if !self.place_all(&missing) {
            moves = self.space.compact();
            let fits = self.place_all(&missing);
            assert!(fits, "{} bytes within the budget have no place", pinned.miss_bytes);
        }
        Ok(Arrivals { hit_bytes: pinned.hit_bytes, misses: pinned.misses, miss_bytes: pinned.miss_bytes, moves })
    }

    /// Gives each list a place, or none of them.
    fn place_all(&mut self, lists: &[(u32, u64)]) -> bool {
        for (number, &(list, bytes)) in lists.iter().enumerate() {
            if self.space.place(list, bytes).is_none() {
                lists[..number].iter().for_each(|&(placed, _)| self.space.free(placed));
                return false;
            }
        }
        true
    }

    /// Takes a pin from each of these lists; what has none left may go.
    ///
    /// # Panics
    /// If one has none.
    pub(crate) fn unpin(&mut self, lists: &[(u32, u64)]) {
        self.store.unpin(lists);
    }
}
