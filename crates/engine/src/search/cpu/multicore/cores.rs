//! Assignment of threads to cores.
//!
//! A thread that moves loses its caches. On most rented machines a "core" is one of two hardware threads of a physical
//! core, and the second adds a third at best. So one hardware thread of each physical core comes first.

use core_affinity::CoreId;

/// The cores that this process may use: first one hardware thread of every physical core, then the others.
#[derive(Clone, Debug, Default)]
pub struct Cores {
    order: Vec<CoreId>,
    physical: usize,
}

impl Cores {
    /// The cores of this machine. Call this before threads are pinned, since a pinned thread sees its own core only.
    pub fn of_this_machine() -> Self {
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        let (first, second): (Vec<CoreId>, Vec<CoreId>) = cores.iter().partition(|core| is_first_half(core.id));
        let physical = first.len();
        // The first threads (a driver, a GPU's lane) share their physical core last.
        Self { order: first.into_iter().chain(second.into_iter().rev()).collect(), physical }
    }

    /// As many physical cores, without asking this machine.
    pub fn numbered(count: usize) -> Self {
        Self { order: (0..count).map(|id| CoreId { id }).collect(), physical: count }
    }

    /// The number of hardware threads.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether this process may use hardware thread `id`.
    pub fn contains(&self, id: usize) -> bool {
        self.order.iter().any(|core| core.id == id)
    }

    /// Whether no core is known, so that nothing can be pinned.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The number of different physical cores.
    pub fn num_physical(&self) -> usize {
        self.physical
    }

    /// Pins the calling thread to core `number` of the order. It stays free to move beyond the last core, or if the
    /// system refuses.
    pub fn pin(&self, number: usize) {
        if let Some(&core) = self.order.get(number) {
            let _ = core_affinity::set_for_current(core);
        }
    }

    /// Lets the calling thread run on all cores but the first `count`. Nothing changes if there is no other core or the
    /// system refuses.
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

/// Whether a hardware thread is the first of its physical core, as far as the system reports it.
fn is_first_half(core: usize) -> bool {
    let path = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
    let siblings = std::fs::read_to_string(path).unwrap_or_default();
    let first = siblings.trim().split([',', '-']).next().and_then(|first| first.parse().ok());
    first.is_none_or(|first: usize| first == core)
}
