//! What is simulated: the machine, the queries, their arrivals, the rates.

use super::Arguments;
use crate::cli::Failure;
use crate::cli::options::{not_in, own_rate};
use crate::cost::Workload;
use crate::files::this_machine;
use crate::lab::{Capacities, GPU_LANE_DEPTH, GpuChoice, HostInfo, draw_all, traced};
use crate::machine::{Class, Machine};
use crate::query::ArrivalProcess;
use crate::report::number;
use crate::sim::Arrivals;

/// More queries than this, over all seeds, would not fit an ordinary memory.
const MAX_QUERIES: usize = 100_000_000;
/// How many rates are tried where none are named, and from which share of the least capacity to which of the greatest.
pub(super) const DEFAULT_RATES: u32 = 12;
const DEFAULT_RATE_SHARES: (f64, f64) = (0.4, 1.05);
/// Without capacities, from which to which share of what is stable in the long run.
const SHARES_OF_REGION: (f64, f64) = (0.02, 1.0);
/// Arrivals of a simulation where no seeds are named.
const SEEDS: &str = "1:10";

/// The numbers of processors, each with its option.
pub(super) fn counts(arguments: &Arguments) -> [(&'static str, usize); 3] {
    [("--cpus", arguments.cpus.unwrap_or(1)), ("--gpus", arguments.gpus.unwrap_or(1)), ("--streams", arguments.streams)]
}

/// The machine: with a GPU if one is asked for, or unasked where its times are known. `as_served`: its GPU lanes are as
/// deep as they are when they are driven.
pub(super) fn machine(arguments: &Arguments, workload: &Workload, as_served: bool) -> Result<Machine, Failure> {
    let has_times = workload.rows.iter().any(|row| row.measured[Class::GPU].is_some());
    let gpus = match (arguments.gpu, arguments.gpus) {
        (GpuChoice::None, Some(1..)) => {
            return Err(Failure::input("--gpu is none, and --gpus asks for some: leave one of them out"));
        }
        (GpuChoice::None, _) => 0,
        (_, Some(gpus)) => gpus,
        (_, None) => usize::from(has_times),
    };
    let cpus =
        arguments.cpus.unwrap_or_else(|| if is_of_here(workload) { workers_of_here(gpus, arguments) } else { 1 });
    if cpus + gpus * arguments.streams == 0 {
        return Err(Failure::input("the machine has no processors: give --cpus or --gpus at least 1"));
    }
    Ok(Machine::new(cpus, 0).with_gpus(gpus, arguments.streams, if as_served { GPU_LANE_DEPTH } else { 1 }))
}

/// Whether the workload was measured on this machine.
pub(super) fn is_of_here(workload: &Workload) -> bool {
    workload.provenance.get("machine").is_some_and(|machine| machine == this_machine())
}

/// Cores that work where this machine is simulated, beside the driver and GPUs that it may have.
fn workers_of_here(gpus: usize, arguments: &Arguments) -> usize {
    let host = HostInfo::detect();
    host.workers(host.gpu_lanes(arguments.gpu, gpus, arguments.streams))
}

/// `3 CPU workers`, and why so many where that was left open.
pub(super) fn cpus_in_words(arguments: &Arguments, workload: &Workload, machine: &Machine) -> String {
    let words = number::counted(machine.count(Class::CPU), "CPU worker", "CPU workers");
    match arguments.cpus {
        Some(_) => words,
        None if is_of_here(workload) => format!("{words} (this machine's; --cpus)"),
        None => format!("{words} (--cpus)"),
    }
}

/// `1 GPU`, `2 GPUs of 4 streams`.
pub(super) fn gpus_in_words(machine: &Machine) -> String {
    let gpus = machine.num_devices(Class::GPU);
    let words = number::counted(gpus, "GPU", "GPUs");
    match machine.count(Class::GPU).checked_div(gpus) {
        Some(streams @ 2..) => format!("{words} of {streams} streams"),
        _ => words,
    }
}

/// Whether a GPU is asked for, in whatever words.
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
        let (arrivals, rate_qps) = traced(path, workload, not_in(arguments.mode))?;
        return Ok((vec![arrivals], Some(rate_qps)));
    }
    let seeds = arguments.arrivals.seeds(SEEDS)?;
    if n.saturating_mul(seeds.len()) > MAX_QUERIES {
        let message =
            format!("--num-queries {n} with {} seed(s) is too much: at most {MAX_QUERIES} in all", seeds.len());
        return Err(Failure::input(message));
    }
    let own_qps = own_rate(process, None)?;
    Ok((draw_all(process, &seeds, n, workload.rows.len()), own_qps))
}

/// The rates asked for, or the trace's; `None` where neither says.
pub(super) fn named_rates(arguments: &Arguments, recorded_qps: Option<f64>) -> Result<Option<Vec<f64>>, Failure> {
    Ok(arguments.arrivals.rates()?.or(recorded_qps.map(|rate_qps| vec![rate_qps])))
}

/// Rates from well below the least capacity to a little above the greatest, each the same factor above the one before.
pub(super) fn rates_around(capacities: &[Capacities], region_qps: f64) -> Vec<f64> {
    let found: Vec<f64> = capacities.iter().map(|found| found.objective.qps).filter(|&qps| qps > 0.0).collect();
    let least = found.iter().copied().min_by(f64::total_cmp).map(|qps| qps * DEFAULT_RATE_SHARES.0);
    let most = found.iter().copied().max_by(f64::total_cmp).map(|qps| qps * DEFAULT_RATE_SHARES.1);
    let from = least.unwrap_or(region_qps * SHARES_OF_REGION.0);
    let to = most.unwrap_or(region_qps * SHARES_OF_REGION.1);
    let rate = |i: u32| from * (to / from).powf(f64::from(i) / f64::from(DEFAULT_RATES - 1));
    (0..DEFAULT_RATES).map(|i| number::significant(rate(i), 3)).collect()
}
