//! `--cpus`, `--gpus`, `--streams`: the machine.

use crate::Failure;
use tandem_core::lab::{GpuChoice, HostInfo};

/// The largest accepted number of processors of a class.
pub(crate) const MAX_PROCESSORS: usize = 1024;

/// Refuses numbers of processors beyond [`MAX_PROCESSORS`]; each number comes with the option that gives it.
pub(crate) fn check_processors(counts: &[(&str, usize)]) -> Result<(), Failure> {
    match counts.iter().find(|(_, count)| *count > MAX_PROCESSORS) {
        Some((option, count)) => Err(Failure::input(format!("{option} is {count}, expected at most {MAX_PROCESSORS}"))),
        None => Ok(()),
    }
}

/// The number of CPU workers of a command that drives this machine: as asked for, or one per core that the driver and GPU
/// lanes leave. More workers than cores are refused unless `is_forced`.
pub(crate) fn workers_here(
    asked: Option<usize>,
    is_forced: bool,
    gpu: GpuChoice,
    (gpus, streams): (usize, usize),
) -> Result<usize, Failure> {
    let host = HostInfo::detect();
    let workers = asked.unwrap_or_else(|| host.workers(host.gpu_lanes(gpu, gpus, streams)));
    check_processors(&[("--cpus", workers)])?;
    if workers > host.cores && !is_forced {
        return Err(Failure::input(format!(
            "--cpus is {workers}, and this machine has {} cores: workers would wait for each other, which lengthens delays \
             (--set force=true drives them nevertheless; `tandem simulate --cpus {workers}` predicts a larger machine)",
            host.cores
        )));
    }
    Ok(workers)
}

/// The GPUs that are driven.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct GpuArguments {
    /// Number of GPUs, from device 0 on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    gpus: u16,
    /// Streams of each GPU, which answer queries concurrently
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    streams: u16,
}

impl GpuArguments {
    /// GPUs, and streams of each.
    pub(crate) fn counts(self) -> (usize, usize) {
        (usize::from(self.gpus), usize::from(self.streams))
    }
}
