//! What is simulated: the machine, the queries, their arrivals, the rates.

use rayon::prelude::*;

use super::Arguments;
use crate::cli::traced::traced;
use crate::cli::{Failure, choices};
use crate::cost::{RecordedGpu, Workload, replay_gpu_times};
use crate::machine::{Class, Machine};
use crate::query::{ArrivalProcess, draw_queries, unit_arrivals};
use crate::report::number;
use crate::report::rates::parse_rates;
use crate::sim::{Arrivals, Experiment, SimQuery, bounds};
use crate::time::Nanos;

/// More queries than this, over all seeds, would not fit an ordinary memory.
const MAX_QUERIES: usize = 100_000_000;
/// More processors of a kind than this are surely a slip.
const MAX_PROCESSORS: usize = 1024;
/// More seeds than this are surely a slip.
const MAX_SEEDS: u64 = 1000;
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

pub(super) fn machine(arguments: &Arguments) -> Result<Machine, Failure> {
    for (option, count) in [("--cpus", arguments.cpus), ("--gpus", arguments.gpus)] {
        if count > MAX_PROCESSORS {
            return Err(Failure::input(format!("{option} is {count}, at most {MAX_PROCESSORS} can be simulated")));
        }
    }
    if arguments.cpus + arguments.gpus == 0 {
        return Err(Failure::input("the machine has no processors: give --cpus or --gpus at least 1"));
    }
    Ok(Machine::new(arguments.cpus, arguments.gpus))
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

/// The rows asked, with `--replay-gpu` and times that it brings.
pub(super) fn workload(arguments: &Arguments) -> Result<Asked, Failure> {
    let (name, mut rows) = choices::workload_in(arguments.workload.as_deref(), arguments.mode)?;
    let is_measured = rows.rows.iter().any(|row| row.measured[Class::GPU].is_some());
    if arguments.replay_gpu && is_measured {
        let message = format!("{name}: holds GPU times of its own; --replay-gpu is for workloads without");
        return Err(Failure::input(message));
    }
    if !arguments.replay_gpu && !is_measured && arguments.gpus > 0 {
        let message = format!(
            "{name}: no GPU was measured, and the machine has one: measure it there, leave it out with --gpus 0, or \
             take recorded times with --replay-gpu"
        );
        return Err(Failure::input(message));
    }
    let replayed = arguments.replay_gpu.then(|| replay_gpu_times(&mut rows)).transpose()?;
    Ok(Asked { name, workload: rows, replayed })
}

/// How long a run is where it is left open: see [`DEFAULT_DEADLINES`].
pub(super) fn default_queries(queries: &[SimQuery], machine: &Machine, deadline: Nanos) -> usize {
    let region = bounds::region(queries.iter().map(|query| query.service), machine);
    let wanted = region.map_or(0.0, |region| DEFAULT_DEADLINES * deadline.as_secs() * region.rate_qps);
    (number::significant(wanted, 2) as usize).clamp(DEFAULT_QUERIES, MAX_DEFAULT_QUERIES)
}

/// The runs, of `n` queries each, and the rate of the trace where one is played.
pub(super) fn arrivals(
    arguments: &Arguments,
    workload: &Workload,
    n: usize,
) -> Result<(Vec<Arrivals>, Option<f64>), Failure> {
    if let Some(path) = &arguments.trace {
        let (arrivals, rate_qps) = traced(path, workload, arguments.mode)?;
        return Ok((vec![arrivals], Some(rate_qps)));
    }
    let seeds = parse_seeds(&arguments.seed)?;
    if n == 0 {
        return Err(Failure::input("--queries is 0, expected at least 1"));
    }
    if n.saturating_mul(seeds.len()) > MAX_QUERIES {
        let message = format!("--queries {n} with {} seed(s) is too much: at most {MAX_QUERIES} in all", seeds.len());
        return Err(Failure::input(message));
    }
    let process = ArrivalProcess::named(&arguments.arrivals)?;
    let draw = |&seed: &u64| Arrivals {
        seed,
        unit: unit_arrivals(&process, seed, n),
        queries: draw_queries(seed, n, workload.rows.len()),
    };
    Ok((seeds.par_iter().map(draw).collect(), None))
}

/// `3`, `1,2,5` or `1:20`, both ends included.
fn parse_seeds(text: &str) -> Result<Vec<u64>, Failure> {
    let number = |text: &str| {
        let fault = || Failure::input(format!("--seed {text:?} is not a whole number from 0 to 18446744073709551615"));
        text.trim().parse::<u64>().map_err(|_| fault())
    };
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once(':') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last || last - first >= MAX_SEEDS || seeds.len() as u64 + (last - first) >= MAX_SEEDS {
            return Err(Failure::input(format!("--seed {text}: expected 1 to {MAX_SEEDS} seeds, ascending")));
        }
        seeds.extend(first..=last);
    }
    Ok(seeds)
}

pub(super) fn rates(
    arguments: &Arguments,
    experiment: &Experiment,
    bound_qps: Option<f64>,
    recorded_qps: Option<f64>,
) -> Result<Vec<f64>, Failure> {
    if let Some(text) = &arguments.rate {
        return parse_rates(text).map_err(|why| Failure::input(format!("--rate: {why}")));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers_lists_and_ranges() {
        let seeds = |text: &str| parse_seeds(text).ok();
        assert_eq!(seeds("7"), Some(vec![7]));
        assert_eq!(seeds("1,5:7"), Some(vec![1, 5, 6, 7]));
        for bad in ["", "-1", "3:1", "0:18446744073709551615", "x", "1:", "0:999,5"] {
            assert_eq!(seeds(bad), None, "{bad:?}");
        }
    }
}
