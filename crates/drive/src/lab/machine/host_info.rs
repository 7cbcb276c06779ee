//! The host: cores for workers, and GPUs.

use tandem_engine::search::cpu::multicore::Cores;
use tandem_engine::search::device::list_gpus;

use crate::lab::GpuChoice;

/// The processors of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostInfo {
    /// Logical cores that this process may use.
    pub cores: usize,
    /// Number of usable GPUs.
    pub gpus: usize,
}

impl HostInfo {
    /// Detects the processors of this machine.
    #[must_use]
    pub fn detect() -> Self {
        let cores = Cores::of_this_machine().len().max(1);
        Self { cores, gpus: list_gpus().map_or(0, |gpus| gpus.len()) }
    }

    /// Number of GPU lanes that need a thread of their own. Lanes with recorded times need none.
    #[must_use]
    pub fn gpu_lanes(&self, choice: GpuChoice, gpus: usize, streams: usize) -> usize {
        match choice {
            GpuChoice::Auto | GpuChoice::Real => gpus.min(self.gpus) * streams,
            GpuChoice::Replay | GpuChoice::None => 0,
        }
    }

    /// CPU workers that leave a core for the driver and for each GPU lane; at least one.
    #[must_use]
    pub fn workers(&self, gpu_lanes: usize) -> usize {
        self.cores.saturating_sub(1 + gpu_lanes).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_and_gpu_lanes_have_cores_of_their_own_where_there_are_enough() {
        let host = HostInfo { cores: 16, gpus: 2 };
        let lanes = |choice| host.gpu_lanes(choice, 4, 2);
        assert_eq!([lanes(GpuChoice::Auto), lanes(GpuChoice::Replay), lanes(GpuChoice::None)], [4, 0, 0]);
        assert_eq!([0, 1, 4].map(|lanes| host.workers(lanes)), [15, 14, 11]);
        assert_eq!(HostInfo { cores: 2, gpus: 1 }.workers(1), 1);
    }
}
