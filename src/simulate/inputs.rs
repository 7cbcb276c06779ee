//! The inputs of a simulation: machine, queries, arrivals, rates.

use tandem_drive::lab::{GpuChoice, HostInfo};
use tandem_model::base::machine::{Class, Machine};
use tandem_model::cost::{MachineProfile, Workload};
use tandem_model::sim::Arrivals;
use tandem_model::study::{GPU_LANE_DEPTH, draw_all, traced};
use tandem_model::traffic::ArrivalProcess;

use super::Arguments;
use crate::failure::Failure;
use crate::options::arrivals::{not_in, own_rate};
use crate::options::priorities::check_assigned;
use crate::origin;
use tandem_report::number;

/// The largest number of queries over all seeds, limited by the time of a run; they need no memory.
const MAX_QUERIES: usize = 1_000_000_000;
/// The default seeds.
const SEEDS: &str = "1:10";

/// The numbers of processors, each with its option.
pub(super) fn counts(arguments: &Arguments) -> [(&'static str, usize); 3] {
    [("--cpus", arguments.cpus.unwrap_or(1)), ("--gpus", arguments.gpus.unwrap_or(1)), ("--streams", arguments.streams)]
}

/// CPU workers and GPUs: a GPU if one is asked for or, by default, if its times are known.
pub(super) fn processors(
    arguments: &Arguments,
    workload: &Workload,
    profile: Option<&MachineProfile>,
) -> Result<(usize, usize), Failure> {
    let has_times = workload.rows.iter().any(|row| row.measured[Class::GPU].is_some());
    let gpus = match (arguments.gpu, arguments.gpus) {
        (GpuChoice::None, Some(1..)) => {
            return Err(Failure::input("--gpu is none, and --gpus asks for some: leave one of them out"));
        }
        (GpuChoice::None, _) => 0,
        (_, Some(gpus)) => gpus,
        (_, None) => usize::from(has_times),
    };
    let cpus = arguments.cpus.or(profile.and_then(MachineProfile::server_lanes));
    let cpus = cpus.unwrap_or_else(|| if origin::is_of_here(workload) { workers_of_here(gpus, arguments) } else { 1 });
    if cpus + gpus * arguments.streams == 0 {
        return Err(Failure::input("the machine has no processors: give --cpus or --gpus at least 1"));
    }
    Ok((cpus, gpus))
}

/// CPU workers if this machine is simulated: its cores less those of the driver and GPU lanes.
fn workers_of_here(gpus: usize, arguments: &Arguments) -> usize {
    let host = HostInfo::detect();
    host.workers(host.gpu_lanes(arguments.gpu, gpus, arguments.streams))
}

/// `3 CPU workers`, with the reason for a default.
pub(super) fn cpus_in_words(
    arguments: &Arguments,
    workload: &Workload,
    machine: &Machine,
    profile: Option<&MachineProfile>,
) -> String {
    let words = number::counted(machine.count(Class::CPU), "CPU worker", "CPU workers");
    match arguments.cpus {
        Some(_) => words,
        None if profile.and_then(MachineProfile::server_lanes).is_some() => {
            format!("{words} (of the server's profile)")
        }
        None if origin::is_of_here(workload) => format!("{words} (this machine's; --cpus)"),
        None => format!("{words} (--cpus)"),
    }
}

/// `1 GPU (lanes 4 batches deep)`, `2 GPUs of 4 streams (lanes 4 batches deep)`.
pub(super) fn gpus_in_words(machine: &Machine) -> String {
    let gpus = machine.num_devices(Class::GPU);
    let words = number::counted(gpus, "GPU", "GPUs");
    let depth = format!("(lanes {GPU_LANE_DEPTH} batches deep)");
    match machine.count(Class::GPU).checked_div(gpus) {
        Some(streams @ 2..) => format!("{words} of {streams} streams {depth}"),
        Some(_) => format!("{words} {depth}"),
        None => words,
    }
}

/// Whether a GPU is asked for.
pub(super) fn wants_gpu(arguments: &Arguments) -> bool {
    arguments.gpus.is_some_and(|gpus| gpus > 0)
}

/// The runs, of `n` queries each, and the rate of the trace or recording where one is played in real time.
pub(super) fn arrivals(
    arguments: &Arguments,
    process: &ArrivalProcess,
    workload: &Workload,
    n: usize,
) -> Result<(Vec<Arrivals>, Option<f64>), Failure> {
    if let Some(path) = &arguments.arrivals.trace {
        let priorities = arguments.priorities.parsed()?;
        let (arrivals, rate_qps) = traced(path, workload, priorities, not_in(workload.mode()))?;
        check_assigned(&arrivals)?;
        return Ok((vec![arrivals], Some(rate_qps)));
    }
    let seeds = arguments.arrivals.seeds(SEEDS)?;
    if n.saturating_mul(seeds.len()) > MAX_QUERIES {
        let message =
            format!("--num-queries {n} with {} seed(s) is too much: at most {MAX_QUERIES} in all", seeds.len());
        return Err(Failure::input(message));
    }
    let own_qps = own_rate(process, None)?;
    Ok((arguments.priorities.assign(draw_all(process, &seeds, n, workload.rows.len()))?, own_qps))
}

/// The rates asked for, or the trace's; `None` if there are neither.
pub(super) fn named_rates(arguments: &Arguments, recorded_qps: Option<f64>) -> Result<Option<Vec<f64>>, Failure> {
    Ok(arguments.arrivals.rates()?.or(recorded_qps.map(|rate_qps| vec![rate_qps])))
}
