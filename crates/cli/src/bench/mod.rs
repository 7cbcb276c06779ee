//! `tandem bench`: what the parts of the lab take on this machine, one table last.
//!
//! Other work on a shared machine slows it by a factor of two for tens of seconds. So whatever is compared takes turns in
//! short rounds, and of each piece of work the least time over the rounds counts: a disturbance must hit a piece in every
//! round to be seen.

mod codecs;
mod dispatcher;
mod estimates;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(not(feature = "gpu"))]
#[path = "no_gpu.rs"]
mod gpu;
mod ingest;
mod intervals;
mod operators;
mod simulator;
mod sizes;
mod summary;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Failure;
use super::options::{IndexAndLog, check_k};
use super::output::{result_file, say};
use crate::options::names::choice;
use tandem_core::files::{Digits, Provenance, Record, check_writable, write_csv};
use tandem_core::index::Index;
use tandem_core::query::Query;
use tandem_core::sched::PolicyKind;

/// Measure the parts of the lab: index, codecs, operators, estimates, simulator, dispatcher, GPU.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    log: IndexAndLog,
    /// Queries taken, from the beginning of the log
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Rounds, in which all that is compared takes turns; each query's least time counts
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Documents that a query asks for, one or several between commas
    #[arg(short, value_name = "K", value_delimiter = ',', default_values_t = [10, 1000])]
    k: Vec<usize>,
    /// What to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = DEFAULT_PARTS)]
    what: Vec<Part>,
    /// Of the simulator: queries of a run, one or several numbers between commas; runs of over 200000 have fewer rounds
    #[arg(long, value_name = "LIST", default_value = "2e5")]
    num_queries: String,
    /// Of the simulator: policies, between commas; left out, all
    #[arg(long, value_name = "NAME", value_parser = choice::<PolicyKind>(), value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    /// Of intervals: searches for each queue, with other seeds
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    cases: u16,
    /// CPU lanes of the dispatcher's machine
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=1024))]
    lanes: u16,
    /// Text that `ingest` indexes, again and again: as `index build` takes it; several files are one collection
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    ingest: Vec<PathBuf>,
    /// Where bench.csv goes
    #[arg(short, long, value_name = "DIR", default_value = "out/bench")]
    out: PathBuf,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// What a posting takes, by part of the index
    Index,
    /// How small codecs make lists, and how fast they give them back
    Codecs,
    /// What queries cost, by operator and processor
    Operators,
    /// What an estimate of a query's cost takes
    Estimates,
    /// What a simulated query costs, by policy
    Simulator,
    /// How often the intervals of capacities contain the truth, on queues with a closed form (not by default; minutes)
    Intervals,
    /// What a job costs the dispatcher, by policy, and how many it carries with a thread for each lane (not by default)
    Dispatcher,
    /// How many queries cores answer while others index (not by default)
    Ingest,
    /// The GPU's kernels against its limits
    Gpu,
    /// Of that, only what queries cost on the GPU
    GpuQueries,
}

const DEFAULT_PARTS: [Part; 5] = [Part::Index, Part::Codecs, Part::Operators, Part::Estimates, Part::Simulator];

/// A line of bench.csv: what was measured, of what, in what unit.
struct Measurement {
    part: &'static str,
    name: String,
    metric: &'static str,
    value: f64,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.k.iter().try_for_each(|&k| check_k(k))?;
    let sizes = simulator::sizes(&arguments.num_queries)?;
    let path = arguments.out.join("bench.csv");
    check_writable(&path)?;
    let mut measurements = Vec::new();
    let mut notes = String::new();
    for part in &arguments.what {
        let (note, rows) = match part {
            Part::Index => sizes::measure(arguments)?,
            Part::Codecs => codecs::measure(arguments)?,
            Part::Operators => operators::measure(arguments)?,
            Part::Estimates => estimates::measure(arguments)?,
            Part::Ingest => ingest::measure(arguments)?,
            Part::Intervals => intervals::measure(arguments.cases)?,
            Part::Gpu => gpu::measure(arguments)?,
            Part::GpuQueries => gpu::measure_queries(arguments)?,
            Part::Dispatcher => dispatcher::measure(arguments)?,
            Part::Simulator => simulator::measure(&sizes, &arguments.policy, arguments.rounds as usize)?,
        };
        notes += &note;
        measurements.extend(rows);
    }
    write(&path, &measurements)?;
    result_file("bench", &path);
    let table = summary::table(&measurements);
    // The GPU's parts have tables of their own.
    let table = if table.is_empty() { String::new() } else { format!("\n{table}") };
    say(&format!("{notes}{table}\nwritten: {}\n", path.display()))
}

/// A line of `bench.csv`, as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    part: Cow<'static, str>,
    name: String,
    metric: Cow<'static, str>,
    value: Digits<6>,
}

impl Record for Line {}

fn write(path: &Path, measurements: &[Measurement]) -> Result<(), Failure> {
    let line = |measurement: &Measurement| Line {
        part: measurement.part.into(),
        name: measurement.name.clone(),
        metric: measurement.metric.into(),
        value: Digits(measurement.value),
    };
    Ok(write_csv(path, &Provenance::new().with_command_and_machine(), measurements.iter().map(line))?)
}

/// The index, and where the log lies.
fn index(arguments: &Arguments) -> Result<(Arc<Index>, PathBuf), Failure> {
    arguments.log.open("what to ask of this index")
}

/// The index and the first queries of the log.
fn input(arguments: &Arguments) -> Result<(Arc<Index>, Vec<Query>), Failure> {
    let (index, log) = index(arguments)?;
    let mut queries = super::defaults::read_queries(&log, &arguments.log.form(), &index)?;
    queries.truncate(arguments.limit as usize);
    if queries.is_empty() {
        return Err(Failure::input(format!("{}: no query has a term of the index", log.display())));
    }
    Ok((index, queries))
}
