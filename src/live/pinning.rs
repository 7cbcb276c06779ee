//! Which thread runs on which core.
//!
//! A worker that moves between cores loses its cache, and a driver that lands on a worker's core takes its time. Where
//! there are enough cores, each thread is tied to one: the driver to the first, CPU workers to the next ones, then the
//! GPU's. A CPU lane that keeps several cores busy pins its helpers itself, next to its own core.
//!
//! Whoever finds no core left may run anywhere but on the driver's: one thread that lets all others wait costs more than
//! its share of a core. Only on a machine of few cores, with more CPU workers than they carry, is nobody tied: there a
//! core for the driver alone would be too large a part of the machine.

use crate::exec::cpu::multicore::Cores as MachineCores;

/// From so many cores on the driver has one of its own, whatever else there is.
const MANY_CORES: usize = 8;

/// The cores given to a fleet's threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Cores {
    all: MachineCores,
    /// Cores that the CPU lanes keep busy.
    busy: usize,
}

impl Cores {
    /// Cores for a driver and for CPU lanes that keep `busy` of them busy, then for GPU workers as far as cores last.
    pub(super) fn share(busy: usize) -> Self {
        Self { all: MachineCores::of_this_machine(), busy }
    }

    /// Whether there is a core for the driver and one for each that the CPU lanes keep busy.
    pub(super) fn are_enough(&self) -> bool {
        self.all.len() > self.busy
    }

    /// Whether the driver has a core that no worker uses.
    pub(super) fn driver_owns_core(&self) -> bool {
        self.are_enough() || self.all.len() >= MANY_CORES
    }

    /// Whether a worker has a core of its own: worker core 0 is the first after the driver's.
    pub(super) fn worker_owns_core(&self, core: usize) -> bool {
        self.are_enough() && core + 1 < self.all.len()
    }

    /// Ties the calling thread, which is the driver, to its core.
    pub(super) fn pin_driver(&self) {
        if self.driver_owns_core() {
            self.all.pin(0);
        }
    }

    /// Ties the calling thread, a worker, to its core, or at least keeps it off the driver's.
    pub(super) fn pin_worker(&self, core: usize) {
        if self.worker_owns_core(core) {
            self.all.pin(core + 1);
        } else if self.driver_owns_core() {
            self.all.keep_off(0);
        }
    }
}
