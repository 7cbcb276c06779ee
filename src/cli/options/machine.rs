//! `--cpus`, `--gpus`, `--streams`: the machine.

use crate::cli::Failure;

/// More processors of a class than this are surely a slip.
pub(in crate::cli) const MAX_PROCESSORS: usize = 1024;

/// Refuses numbers of processors that are surely slips; each with the option that gives it.
pub(in crate::cli) fn check_processors(counts: &[(&str, usize)]) -> Result<(), Failure> {
    match counts.iter().find(|(_, count)| *count > MAX_PROCESSORS) {
        Some((option, count)) => Err(Failure::input(format!("{option} is {count}, expected at most {MAX_PROCESSORS}"))),
        None => Ok(()),
    }
}

/// The GPUs that are driven.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(in crate::cli) struct GpuArguments {
    /// GPUs, by their numbers from 0
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    gpus: u16,
    /// Streams of each GPU, which answer queries side by side
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    streams: u16,
}

impl GpuArguments {
    /// GPUs, and streams of each.
    pub(in crate::cli) fn counts(self) -> (usize, usize) {
        (usize::from(self.gpus), usize::from(self.streams))
    }
}
