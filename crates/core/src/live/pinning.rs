//! Pinning threads to cores.
//!
//! A worker that moves between cores loses its cache, and a driver on a worker's core takes its time. Where there are
//! enough cores, each thread is tied to one: the driver to the first, GPU lanes to the next ones, then the CPU workers. A
//! CPU lane that keeps several cores busy pins its helpers itself, next to its own core.
//!
//! ```text
//!   core      0       1      2     3     4    ...
//!   thread  driver   gpu    cpu   cpu   cpu   ...   CPU workers for which there is no core share those of the others
//! ```
//!
//! Two kinds of threads hold up many others: the driver, on which every lane waits, and a GPU lane's, which feeds a device
//! that does the work of many cores. CPU workers without a core of their own may therefore run on any core but theirs. On a
//! machine of few cores, with more workers than they carry, no thread is tied: a core for the driver alone would be too
//! large a part of the machine.

use crate::search::cpu::multicore::Cores as MachineCores;

/// On machines of this many cores the driver and the GPU lanes always have cores of their own.
const MANY_CORES: usize = 8;

#[derive(Clone, Debug, Default)]
pub(super) struct Cores {
    all: MachineCores,
    gpus: usize,
    /// Cores that the CPU lanes keep busy.
    busy: usize,
}

impl Cores {
    /// Divides the cores among a driver, `gpus` GPU lanes, and CPU lanes that keep `busy` cores busy.
    pub(super) fn share(gpus: usize, busy: usize) -> Self {
        Self { all: MachineCores::of_this_machine(), gpus, busy }
    }

    /// Cores that the CPU lanes keep busy.
    pub(super) fn busy(&self) -> usize {
        self.busy
    }

    /// Whether the driver, each GPU lane and each core that the CPU lanes keep busy can have one.
    pub(super) fn are_enough(&self) -> bool {
        self.all.len() > self.gpus + self.busy
    }

    /// Whether the driver and the GPU lanes have cores that no other thread uses.
    pub(super) fn driver_owns_core(&self) -> bool {
        self.are_enough() || self.all.len() >= MANY_CORES.max(2 + self.gpus)
    }

    pub(super) fn gpu_owns_core(&self) -> bool {
        self.driver_owns_core()
    }

    /// Whether a CPU worker has a core of its own: worker core 0 is the first after the GPU lanes'.
    pub(super) fn worker_owns_core(&self, core: usize) -> bool {
        self.are_enough() && 1 + self.gpus + core < self.all.len()
    }

    pub(super) fn pin_driver(&self) {
        if self.driver_owns_core() {
            self.all.pin(0);
        }
    }

    pub(super) fn pin_gpu(&self, lane: usize) {
        if self.gpu_owns_core() {
            self.all.pin(1 + lane);
        }
    }

    /// Ties the calling thread, a CPU worker's, to its core, or at least keeps it off the cores of the driver and the GPU
    /// lanes.
    pub(super) fn pin_worker(&self, core: usize) {
        if self.worker_owns_core(core) {
            self.all.pin(1 + self.gpus + core);
        } else if self.driver_owns_core() {
            self.all.keep_off_first(1 + self.gpus);
        }
    }
}
