//! The machine that this runs on: how many cores are left for workers, and how many GPUs there are.

use crate::lab::GpuChoice;
use crate::search::cpu::multicore::Cores;
use crate::search::device::list_gpus;

/// What this machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostInfo {
    /// Cores that this process may use; of cores with two threads, both count.
    pub cores: usize,
    /// GPUs that can be used.
    pub gpus: usize,
}

impl HostInfo {
    /// Looks.
    #[must_use]
    pub fn detect() -> Self {
        let cores = Cores::of_this_machine().len().max(1);
        Self { cores, gpus: list_gpus().map_or(0, |gpus| gpus.len()) }
    }

    /// Lanes that need a thread of their own if so many GPUs of so many streams are wanted in this way: a lane that
    /// replays recorded times needs none.
    #[must_use]
    pub fn gpu_lanes(&self, choice: GpuChoice, gpus: usize, streams: usize) -> usize {
        match choice {
            GpuChoice::Auto | GpuChoice::Real => gpus.min(self.gpus) * streams,
            GpuChoice::Replay | GpuChoice::None => 0,
        }
    }

    /// CPU workers for which there is a core beside the driver's and those of so many GPU lanes; at least one.
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
