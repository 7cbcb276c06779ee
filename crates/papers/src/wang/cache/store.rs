//! A budget of bytes with pins and evictions.
//!
//! The store only names lists and counts bytes; its callers move postings. Executors and simulations therefore see the
//! same hits and misses.
//!
//! ```text
//!   pin(lists) ──▶ held already: hits          unpin(lists) ──▶ may go again
//!              └─▶ not held: misses, brought in; the eviction names what goes for them, nothing that is pinned
//! ```

use std::collections::BTreeSet;

use crate::error::CacheError;

/// Evicts the list that saves the fewest copies per byte. A request for a held list saves its bytes, so that the saving
/// per byte is the frequency of requests. Old requests count half after `half_life` newer ones. `touch` and `victim`
/// take O(log n).
#[derive(Clone, Debug)]
struct LeastSaved {
    /// Requests for each list, weighted by the growth at their time.
    saved: Vec<f64>,
    /// Held lists by their saving. The bits of non-negative floats order as their values do.
    held: BTreeSet<(u64, u32)>,
    growth: f64,
    weight: f64,
}

/// Weight at which all weights are scaled down, long before they overflow.
const RESCALE_AT: f64 = 1e100;

impl LeastSaved {
    fn new(num_lists: usize, half_life: f64) -> Self {
        let growth = 0.5_f64.powf(-1.0 / half_life.max(1.0));
        Self { saved: vec![0.0; num_lists], held: BTreeSet::new(), growth, weight: 1.0 }
    }

    fn key(&self, list: u32) -> (u64, u32) {
        (self.saved[list as usize].to_bits(), list)
    }

    fn touch(&mut self, list: u32) {
        self.weight *= self.growth;
        if self.weight > RESCALE_AT {
            self.saved.iter_mut().for_each(|saved| *saved /= RESCALE_AT);
            self.weight /= RESCALE_AT;
            self.held = self.held.iter().map(|&(_, list)| self.key(list)).collect();
        }
        let was_held = self.held.remove(&self.key(list));
        self.saved[list as usize] += self.weight;
        if was_held {
            self.held.insert(self.key(list));
        }
    }

    /// Returns the next list to evict among those that `may_go`.
    fn victim(&self, may_go: impl Fn(u32) -> bool) -> Option<u32> {
        self.held.iter().map(|&(_, list)| list).find(|&list| may_go(list))
    }

    /// Records that a list was added or evicted.
    fn moved(&mut self, list: u32, is_held: bool) {
        if is_held {
            self.held.insert(self.key(list));
        } else {
            self.held.remove(&self.key(list));
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pinned {
    pub(crate) hit_bytes: u64,
    pub(crate) miss_bytes: u64,
    pub(crate) misses: Vec<u32>,
    pub(crate) evicted: Vec<u32>,
}

/// Lists under a budget.
#[derive(Clone, Debug)]
pub(crate) struct ListStore {
    budget_bytes: u64,
    used_bytes: u64,
    /// Bytes of each held list, else 0.
    held_bytes: Vec<u64>,
    pins: Vec<u32>,
    eviction: LeastSaved,
}

impl ListStore {
    pub(crate) fn new(num_lists: usize, budget_bytes: u64, half_life: f64) -> Self {
        let eviction = LeastSaved::new(num_lists, half_life);
        Self { budget_bytes, used_bytes: 0, held_bytes: vec![0; num_lists], pins: vec![0; num_lists], eviction }
    }

    /// Returns the held bytes, never more than the budget.
    #[cfg(test)]
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    pub(crate) fn holds(&self, list: u32) -> bool {
        self.held_bytes[list as usize] > 0
    }

    /// Pins distinct lists with their bytes (at least 1); they are held until they are [unpinned](Self::unpin). Returns
    /// [`CacheError::DoesNotFit`] if the pinned lists exceed the budget, or the eviction finds no victim. No list is
    /// pinned then, but some may have been evicted.
    pub(crate) fn pin(&mut self, lists: &[(u32, u64)]) -> Result<Pinned, CacheError> {
        let mut pinned = Pinned::default();
        for &(list, bytes) in lists {
            self.eviction.touch(list);
            self.pins[list as usize] += 1;
            if self.holds(list) {
                pinned.hit_bytes += bytes;
            } else {
                pinned.miss_bytes += bytes;
                pinned.misses.push(list);
            }
        }
        while self.used_bytes + pinned.miss_bytes > self.budget_bytes {
            let (held_bytes, pins) = (&self.held_bytes, &self.pins);
            let may_go = |list: u32| held_bytes[list as usize] > 0 && pins[list as usize] == 0;
            let Some(victim) = self.eviction.victim(may_go) else {
                self.unpin(lists);
                return Err(CacheError::DoesNotFit {
                    wanted_bytes: pinned.miss_bytes,
                    room_bytes: self.budget_bytes - self.used_bytes,
                    budget_bytes: self.budget_bytes,
                });
            };
            self.used_bytes -= std::mem::take(&mut self.held_bytes[victim as usize]);
            self.eviction.moved(victim, false);
            pinned.evicted.push(victim);
        }
        for &(list, bytes) in lists {
            if !self.holds(list) {
                self.held_bytes[list as usize] = bytes;
                self.used_bytes += bytes;
                self.eviction.moved(list, true);
            }
        }
        Ok(pinned)
    }

    /// Removes a pin from each list; a list without pins may be evicted. Panics if a list has no pin.
    pub(crate) fn unpin(&mut self, lists: &[(u32, u64)]) {
        for &(list, _) in lists {
            let pins = &mut self.pins[list as usize];
            assert!(*pins > 0, "list {list} is not pinned");
            *pins -= 1;
        }
    }
}
