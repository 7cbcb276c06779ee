//! Which thread runs on which core.
//!
//! A worker that moves between cores loses its cache, and a driver that lands on a worker's core takes its time. Where
//! there are enough cores, each thread is tied to one: the driver to the first, CPU workers to the next ones, then the
//! GPU's. With fewer cores than threads nobody is tied, and the system's scheduler does what it can.

use core_affinity::CoreId;

/// The cores given to a fleet's threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Cores {
    driver: Option<CoreId>,
    workers: Vec<CoreId>,
}

impl Cores {
    /// Cores for a driver and `cpus` CPU workers, then GPU workers as far as cores last.
    pub(super) fn share(cpus: usize) -> Self {
        let cores = core_affinity::get_core_ids().unwrap_or_default();
        match cores.split_first() {
            Some((&driver, workers)) if workers.len() >= cpus => {
                Self { driver: Some(driver), workers: workers.to_vec() }
            }
            _ => Self::default(),
        }
    }

    /// Whether the driver has a core that no CPU worker uses.
    pub(super) fn driver_owns_core(&self) -> bool {
        self.driver.is_some()
    }

    /// Ties the calling thread, which is the driver, to its core.
    pub(super) fn pin_driver(&self) {
        pin(self.driver);
    }

    /// The core of a worker, by its position in the machine.
    pub(super) fn worker(&self, processor: usize) -> Option<CoreId> {
        self.workers.get(processor).copied()
    }
}

/// Ties the calling thread to `core`. Where the system refuses (a container, say), it stays free to move.
pub(super) fn pin(core: Option<CoreId>) {
    if let Some(core) = core {
        let _ = core_affinity::set_for_current(core);
    }
}
