//! What is simulated: the machine, the queries, their arrivals, the rates.

use super::Arguments;
use crate::cli::Failure;
use crate::cli::options::{no_rates, not_in};
use crate::cost::Workload;
use crate::lab::{CapacitySearch, GpuChoice, draw_all, traced};
use crate::machine::{Class, Machine};
use crate::report::number;
use crate::sim::Arrivals;

/// More queries than this, over all seeds, would not fit an ordinary memory.
const MAX_QUERIES: usize = 100_000_000;
/// How many rates are tried, and from which to which share of the bound, where none are named.
const DEFAULT_RATES: u32 = 12;
const DEFAULT_RATE_SHARES: (f64, f64) = (0.05, 1.05);

/// The numbers of processors, each with its option.
pub(super) fn counts(arguments: &Arguments) -> [(&'static str, usize); 3] {
    [("--cpus", arguments.cpus), ("--gpus", arguments.gpus.unwrap_or(1)), ("--streams", arguments.streams)]
}

/// The machine: with a GPU if one is asked for, or unasked where its times are known.
pub(super) fn machine(arguments: &Arguments, workload: &Workload) -> Result<Machine, Failure> {
    let has_times = workload.rows.iter().any(|row| row.measured[Class::GPU].is_some());
    let gpus = match (arguments.gpu, arguments.gpus) {
        (GpuChoice::None, Some(1..)) => {
            return Err(Failure::input("--gpu is none, and --gpus asks for some: leave one of them out"));
        }
        (GpuChoice::None, _) => 0,
        (_, Some(gpus)) => gpus,
        (_, None) => usize::from(has_times),
    };
    if arguments.cpus + gpus * arguments.streams == 0 {
        return Err(Failure::input("the machine has no processors: give --cpus or --gpus at least 1"));
    }
    Ok(Machine::new(arguments.cpus, 0).with_gpus(gpus, arguments.streams, 1))
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

/// The runs, of `n` queries each, and the rate of the trace where one is played.
pub(super) fn arrivals(
    arguments: &Arguments,
    workload: &Workload,
    n: usize,
) -> Result<(Vec<Arrivals>, Option<f64>), Failure> {
    if let Some(path) = &arguments.arrivals.trace {
        let (arrivals, rate_qps) = traced(path, workload, not_in(arguments.mode))?;
        return Ok((vec![arrivals], Some(rate_qps)));
    }
    let seeds = arguments.arrivals.seeds()?;
    if n.saturating_mul(seeds.len()) > MAX_QUERIES {
        let message =
            format!("--num-queries {n} with {} seed(s) is too much: at most {MAX_QUERIES} in all", seeds.len());
        return Err(Failure::input(message));
    }
    Ok((draw_all(&arguments.arrivals.process()?, &seeds, n, workload.rows.len()), None))
}

/// The rates asked for, the trace's, or some between little load and what no scheduler sustains.
pub(super) fn rates(
    arguments: &Arguments,
    search: Option<&CapacitySearch<'_>>,
    recorded_qps: Option<f64>,
) -> Result<Vec<f64>, Failure> {
    if let Some(rates) = arguments.arrivals.rates()? {
        return Ok(rates);
    }
    if let Some(rate_qps) = recorded_qps {
        return Ok(vec![rate_qps]);
    }
    let Some(search) = search else { return Err(no_rates()) };
    let top = search.bound_qps.filter(|&bound| bound > 0.0).unwrap_or(search.region_qps);
    let (from, to) = DEFAULT_RATE_SHARES;
    let share = |i: u32| from + (to - from) * f64::from(i) / f64::from(DEFAULT_RATES - 1);
    Ok((0..DEFAULT_RATES).map(|i| number::significant(top * share(i), 4)).collect())
}
