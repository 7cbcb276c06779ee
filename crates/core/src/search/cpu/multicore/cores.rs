//! Which thread runs on which core.
//!
//! A thread that moves loses its caches. And on most rented machines two "cores" are halves of one, so that the second
//! half adds a third at best: cores that are whole are given out first.

use core_affinity::CoreId;

/// The cores that this process may use, in the order in which threads should take them: one half of every physical
/// core, then the other halves.
#[derive(Clone, Debug, Default)]
pub struct Cores {
    order: Vec<CoreId>,
    physical: usize,
}

impl Cores {
    /// The cores of this machine. Ask before threads are pinned: a pinned thread sees its own core only.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        let (first, second): (Vec<CoreId>, Vec<CoreId>) = cores.iter().partition(|core| is_first_half(core.id));
        let physical = first.len();
        // Who comes first (a driver, a GPU's lane) is to have both halves for as long as there are others.
        Self { order: first.into_iter().chain(second.into_iter().rev()).collect(), physical }
    }

    /// How many there are, halves counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether none is known, so that nothing can be pinned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// How many of them are halves of different physical cores.
    #[must_use]
    pub fn num_physical(&self) -> usize {
        self.physical
    }

    /// Ties the calling thread to core number `number` in that order. Beyond the last core, or where the system
    /// refuses, the thread stays free to move.
    pub fn pin(&self, number: usize) {
        if let Some(&core) = self.order.get(number) {
            let _ = core_affinity::set_for_current(core);
        }
    }

    /// Lets the calling thread run on all of them but the first `count`; where the system refuses or there is no other, it
    /// stays as it is.
    pub fn keep_off_first(&self, count: usize) {
        #[cfg(target_os = "linux")]
        {
            let mut others = rustix::thread::CpuSet::new();
            for core in self.order.iter().skip(count) {
                others.set(core.id);
            }
            if others.count() > 0 {
                let _ = rustix::thread::sched_setaffinity(None, &others);
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = count;
    }
}

/// Whether a core is the first of the halves that share one; as far as the system tells.
fn is_first_half(core: usize) -> bool {
    let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    let siblings = std::fs::read_to_string(path).unwrap_or_default();
    let first = siblings.trim().split([',', '-']).next().and_then(|first| first.parse().ok());
    first.is_none_or(|first: usize| first == core)
}
