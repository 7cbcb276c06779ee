//! A budget of bytes, what is held in it, and what goes when room is needed.
//!
//! The machine is pure: it names lists and counts bytes; whoever moves postings does what it says. So an executor and a
//! simulation that use it see the same hits and misses.
//!
//! ```text
//!   pin(lists) ──▶ held already: hits          unpin(lists) ──▶ may go again
//!              └─▶ not held: misses, brought in; Eviction names what goes for them, nothing that is pinned
//! ```

use std::collections::BTreeSet;

use super::CacheError;

/// Decides what goes. Equal histories give equal decisions.
pub(crate) trait Eviction {
    /// A query has asked for a list of so many bytes.
    fn touch(&mut self, list: u32, bytes: u64);

    /// The list to go next, among those that `may_go`; `None` if nothing goes.
    fn victim(&mut self, may_go: &dyn Fn(u32) -> bool) -> Option<u32>;

    /// A list has been brought in, or has gone.
    fn moved(&mut self, list: u32, is_held: bool);
}

/// Nothing goes: a static cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeepAll;

impl Eviction for KeepAll {
    fn touch(&mut self, _list: u32, _bytes: u64) {}

    fn victim(&mut self, _may_go: &dyn Fn(u32) -> bool) -> Option<u32> {
        None
    }

    fn moved(&mut self, _list: u32, _is_held: bool) {}
}

/// What saves least goes: a list saves its bytes each time that it is asked for, so a byte held saves as often as its list
/// is asked for. Old requests count half after `half_life` newer ones. A touch or a victim takes O(log n).
#[derive(Clone, Debug)]
pub(crate) struct LeastSaved {
    /// By list: requests, each weighted by the growth at its time.
    saved: Vec<f64>,
    /// Those that are held, by what they save: bits of numbers that are not negative ascend as the numbers do.
    held: BTreeSet<(u64, u32)>,
    growth: f64,
    weight: f64,
}

/// The weight at which all are scaled down: long before a number has no more room.
const RESCALE_AT: f64 = 1e100;

impl LeastSaved {
    /// For so many lists.
    #[must_use]
    pub(crate) fn new(num_lists: usize, half_life: f64) -> Self {
        let growth = 0.5_f64.powf(-1.0 / half_life.max(1.0));
        Self { saved: vec![0.0; num_lists], held: BTreeSet::new(), growth, weight: 1.0 }
    }

    fn key(&self, list: u32) -> (u64, u32) {
        (self.saved[list as usize].to_bits(), list)
    }
}

impl Eviction for LeastSaved {
    fn touch(&mut self, list: u32, _bytes: u64) {
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

    fn victim(&mut self, may_go: &dyn Fn(u32) -> bool) -> Option<u32> {
        self.held.iter().map(|&(_, list)| list).find(|&list| may_go(list))
    }

    fn moved(&mut self, list: u32, is_held: bool) {
        if is_held {
            self.held.insert(self.key(list));
        } else {
            self.held.remove(&self.key(list));
        }
    }
}

/// What pinning came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pinned {
    /// Bytes that were held already.
    pub(crate) hit_bytes: u64,
    /// Bytes that must be brought in.
    pub(crate) miss_bytes: u64,
    /// Lists that must be brought in.
    pub(crate) misses: Vec<u32>,
    /// Lists that went.
    pub(crate) evicted: Vec<u32>,
}

/// Lists under a budget.
#[derive(Clone, Debug)]
pub(crate) struct ListStore<E> {
    budget_bytes: u64,
    used_bytes: u64,
    /// By list: its bytes if it is held, else 0.
    held_bytes: Vec<u64>,
    /// By list: pins on it.
    pins: Vec<u32>,
    eviction: E,
}

impl<E: Eviction> ListStore<E> {
    /// Nothing is held yet.
    #[must_use]
    pub(crate) fn new(num_lists: usize, budget_bytes: u64, eviction: E) -> Self {
        Self { budget_bytes, used_bytes: 0, held_bytes: vec![0; num_lists], pins: vec![0; num_lists], eviction }
    }

    /// Bytes that are held; never more than the budget.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Whether the list is held.
    #[must_use]
    pub(crate) fn holds(&self, list: u32) -> bool {
        self.held_bytes[list as usize] > 0
    }

    /// Pins lists, each with its bytes (at least 1) and named once: they are held until they are
    /// [unpinned](Self::unpin).
    ///
    /// # Errors
    /// [`CacheError::DoesNotFit`] if what is pinned and these don't fit, or the eviction gives up nothing; then no list was
    /// pinned, though some may have gone.
    pub(crate) fn pin(&mut self, lists: &[(u32, u64)]) -> Result<Pinned, CacheError> {
        let mut pinned = Pinned::default();
        for &(list, bytes) in lists {
            self.eviction.touch(list, bytes);
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
            let Some(victim) = self.eviction.victim(&may_go) else {
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

    /// Takes a pin from each of these lists; what has none left may go.
    ///
    /// # Panics
    /// If one has none.
    pub(crate) fn unpin(&mut self, lists: &[(u32, u64)]) {
        for &(list, _) in lists {
            let pins = &mut self.pins[list as usize];
            assert!(*pins > 0, "list {list} is not pinned");
            *pins -= 1;
        }
    }
}
