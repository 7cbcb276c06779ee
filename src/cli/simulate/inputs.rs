//! What is simulated: the machine, the queries, their arrivals, the rates.

use rayon::prelude::*;

use super::Arguments;
use crate::cli::Failure;
use crate::cli::options::{GpuChoice, read_workload_in};
use crate::cli::traced::traced;
use crate::cost::MachineModel;
use crate::cost::{RecordedGpu, Workload, replay_gpu_times};
use crate::machine::{Class, Machine};
use crate::query::{draw_queries, unit_arrivals};
use crate::report::number;
use crate::sim::{Arrivals, Experiment, SimQuery, bounds};
use crate::time::Nanos;

/// More queries than this, over all seeds, would not fit an ordinary memory.
const MAX_QUERIES: usize = 100_000_000;
/// A run is at least this long where its length is left open,
const DEFAULT_QUERIES: usize = 10_000;
/// and lasts for this many deadlines at the rate that the machine sustains: a backlog that grows by a tenth of the time
/// then reaches the deadline, so that a run tells rates of 10 % too much from sustainable ones,
const DEFAULT_DEADLINES: f64 = 10.0;
/// but it is no longer than this.
const MAX_DEFAULT_QUERIES: usize = 2_000_000;
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

/// What is asked.
pub(super) struct Asked {
    /// The workload's name.
    pub(super) name: String,
    /// Its rows in the mode asked for.
    pub(super) workload: Workload,
    /// Where the GPU times come from, if not from the workload.
    pub(super) replayed: Option<RecordedGpu>,
}

/// The rows asked; with `--gpu replay` and times that it brings.
pub(super) fn asked(arguments: &Arguments) -> Result<Asked, Failure> {
    let (name, mut rows) = read_workload_in(arguments.workload.as_deref(), arguments.mode)?;
    let is_measured = rows.rows.iter().any(|row| row.measured[Class::GPU].is_some());
    if arguments.gpu == GpuChoice::Replay && is_measured {
        let message = format!("{name}: holds GPU times of its own; --gpu replay is for workloads without");
        return Err(Failure::input(message));
    }
    let wants = arguments.gpu == GpuChoice::Real || arguments.gpus.is_some_and(|gpus| gpus > 0);
    if wants && !is_measured && arguments.gpu != GpuChoice::Replay {
        let message = format!(
            "{name}: no GPU was measured: measure it on a machine that has one, leave it out, or take recorded times \
             with --gpu replay"
        );
        return Err(Failure::input(message));
    }
    let replayed = (arguments.gpu == GpuChoice::Replay).then(|| replay_gpu_times(&mut rows)).transpose()?;
    Ok(Asked { name, workload: rows, replayed })
}

/// How long a run is where it is left open: see [`DEFAULT_DEADLINES`].
pub(super) fn default_queries(queries: &[SimQuery], model: &MachineModel, deadline: Nanos) -> usize {
    let region = bounds::region(queries.iter().map(|query| query.service), model);
    let wanted = region.map_or(0.0, |region| DEFAULT_DEADLINES * deadline.as_secs() * region.rate_qps);
    (number::significant(wanted, 2) as usize).clamp(DEFAULT_QUERIES, MAX_DEFAULT_QUERIES)
}

/// The runs, of `n` queries each, and the rate of the trace where one is played.
pub(super) fn arrivals(
    arguments: &Arguments,
    workload: &Workload,
    n: usize,
) -> Result<(Vec<Arrivals>, Option<f64>), Failure> {
    if let Some(path) = &arguments.arrivals.trace {
        let (arrivals, rate_qps) = traced(path, workload, arguments.mode)?;
        return Ok((vec![arrivals], Some(rate_qps)));
    }
    let seeds = arguments.arrivals.seeds()?;
    if n.saturating_mul(seeds.len()) > MAX_QUERIES {
        let message =
            format!("--num-queries {n} with {} seed(s) is too much: at most {MAX_QUERIES} in all", seeds.len());
        return Err(Failure::input(message));
    }
    let process = arguments.arrivals.process()?;
    let draw = |&seed: &u64| Arrivals {
        seed,
        unit: unit_arrivals(&process, seed, n),
        queries: draw_queries(seed, n, workload.rows.len()),
    };
    Ok((seeds.par_iter().map(draw).collect(), None))
}

pub(super) fn rates(
    arguments: &Arguments,
    experiment: &Experiment,
    bound_qps: Option<f64>,
    recorded_qps: Option<f64>,
) -> Result<Vec<f64>, Failure> {
    if let Some(rates) = arguments.arrivals.rates()? {
        return Ok(rates);
    }
    if let Some(rate_qps) = recorded_qps {
        return Ok(vec![rate_qps]);
    }
    let region_qps = experiment.region().map(|region| region.rate_qps);
    let Some(top) = bound_qps.filter(|&bound| bound > 0.0).or(region_qps) else {
        return Err(Failure::input("all queries of the workload cost nothing: name rates with --rate"));
    };
    let (from, to) = DEFAULT_RATE_SHARES;
    let share = |i: u32| from + (to - from) * f64::from(i) / f64::from(DEFAULT_RATES - 1);
    Ok((0..DEFAULT_RATES).map(|i| number::significant(top * share(i), 4)).collect())
}
