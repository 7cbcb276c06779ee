//! Which thread runs on which core.
//!
//! A worker that moves between cores loses its cache, and a driver that lands on a worker's core takes its time. Where
//! there are enough cores, each thread is tied to one: the driver to the first, CPU workers to the next ones, then the
//! GPU's. A CPU lane that keeps several cores busy pins its helpers itself, next to its own core. With fewer cores than
//! threads nobody is tied, and the system's scheduler does what it can.

use crate::exec::cpu::multicore::Cores as MachineCores;

/// The cores given to a fleet's threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Cores {
    all: MachineCores,
    /// Whether there is one for the driver and one for each that the CPU lanes keep busy.
    are_enough: bool,
}

impl Cores {
    /// Cores for a driver and for CPU lanes that keep `busy` of them busy, then for GPU workers as far as cores last.
    pub(super) fn share(busy: usize) -> Self {
        let all = MachineCores::of_this_machine();
        let are_enough = all.len() > busy;
        Self { all, are_enough }
    }

    /// Whether the driver has a core that no CPU worker uses.
    pub(super) fn driver_owns_core(&self) -> bool {
        self.are_enough
    }

    /// Ties the calling thread, which is the driver, to its core.
    pub(super) fn pin_driver(&self) {
        self.pin(0);
    }

    /// Ties the calling thread, a worker, to its core: worker core 0 is the first after the driver's.
    pub(super) fn pin_worker(&self, core: usize) {
        self.pin(core + 1);
    }

    fn pin(&self, core: usize) {
        if self.are_enough {
            self.all.pin(core);
        }
    }
}
