//! A list store whose lists have places in a memory of the budget's size.
//!
//! ```text
//!   pin(lists) ──▶ ListStore: what is evicted and loaded ──▶ Space: places ──▶ moves first, then copies
//! ```

use super::space::{Move, Space};
use super::store::ListStore;
use crate::error::CacheError;

/// Changes in memory that bring pinned lists to their places: first all moves in order, then the copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Arrivals {
    pub(crate) hit_bytes: u64,
    pub(crate) misses: Vec<u32>,
    pub(crate) miss_bytes: u64,
    /// Moves of lists, made only if no gap is large enough.
    pub(crate) moves: Vec<Move>,
}

/// A [`ListStore`] whose lists have places.
#[derive(Clone, Debug)]
pub(crate) struct PlacedLists {
    store: ListStore,
    space: Space,
}

impl PlacedLists {
    pub(crate) fn new(num_lists: usize, budget_bytes: u64, half_life: f64) -> Self {
        Self { store: ListStore::new(num_lists, budget_bytes, half_life), space: Space::new(num_lists, budget_bytes) }
    }

    /// Returns the byte offset of a list; `None` if it is not held.
    pub(crate) fn place_of(&self, list: u32) -> Option<u64> {
        self.space.place_of(list)
    }

    /// Pins distinct lists with their bytes (at least 1) until they are [unpinned](Self::unpin). Pinned lists move only
    /// during the next call. Returns the errors of [`ListStore::pin`]; nothing has moved then.
    pub(crate) fn pin(&mut self, lists: &[(u32, u64)]) -> Result<Arrivals, CacheError> {
        let pinned = match self.store.pin(lists) {
            Ok(pinned) => pinned,
            Err(error) => {
                // The failed call may have evicted lists.
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

    /// Gives all lists a place, or none.
    fn place_all(&mut self, lists: &[(u32, u64)]) -> bool {
        for (number, &(list, bytes)) in lists.iter().enumerate() {
            if self.space.place(list, bytes).is_none() {
                lists[..number].iter().for_each(|&(placed, _)| self.space.free(placed));
                return false;
            }
        }
        true
    }

    /// Removes a pin from each list; a list without pins may be evicted. Panics if a list has no pin.
    pub(crate) fn unpin(&mut self, lists: &[(u32, u64)]) {
        self.store.unpin(lists);
    }
}
