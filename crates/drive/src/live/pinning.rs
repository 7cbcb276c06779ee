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

use tandem_engine::search::cpu::multicore::Cores as MachineCores;

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
        self.are_enough() && self.core_of_worker(core) < self.all.len()
    }

    pub(super) fn pin_driver(&self) {
        if self.driver_owns_core() {
            self.all.pin(0);
        }
    }

    pub(super) fn pin_gpu(&self, lane: usize) {
        if self.gpu_owns_core() {
            self.all.pin(Self::core_of_gpu(lane));
        }
    }

    /// Ties the calling thread, a CPU worker's, to its core, or at least keeps it off the cores of the driver and the GPU
    /// lanes.
    pub(super) fn pin_worker(&self, core: usize) {
        if self.worker_owns_core(core) {
            self.all.pin(self.core_of_worker(core));
        } else if self.driver_owns_core() {
            self.all.keep_off_first(self.core_of_worker(0));
        }
    }

    fn core_of_gpu(lane: usize) -> usize {
        1 + lane
    }

    fn core_of_worker(&self, core: usize) -> usize {
        Self::core_of_gpu(self.gpus) + core
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(all: usize, gpus: usize, busy: usize) -> Cores {
        Cores { all: MachineCores::numbered(all), gpus, busy }
    }

    #[test]
    fn threads_have_cores_of_their_own_where_there_are_enough() {
        let owners = |all, gpus, busy| {
            let cores = cores(all, gpus, busy);
            let workers = (0..busy).filter(|&core| cores.worker_owns_core(core)).count();
            (cores.driver_owns_core(), cores.gpu_owns_core(), workers)
        };
        assert_eq!(owners(4, 1, 2), (true, true, 2));
        assert_eq!(owners(4, 1, 3), (false, false, 0));
        // With many cores the driver and the GPU lanes keep theirs, and the workers share the rest.
        assert_eq!(owners(8, 1, 7), (true, true, 0));
        assert_eq!(owners(7, 1, 7), (false, false, 0));
        // A lane that keeps fewer cores busy than it has helpers leaves the last helper without one.
        assert!(cores(4, 1, 2).worker_owns_core(1) && !cores(4, 1, 2).worker_owns_core(2));
    }

    #[test]
    fn every_thread_has_another_core() {
        let cores = cores(6, 2, 3);
        let gpus = (0..2).map(Cores::core_of_gpu);
        let workers = (0..3).map(|core| cores.core_of_worker(core));
        assert_eq!(gpus.chain(workers).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    }
}
