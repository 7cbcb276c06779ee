//! `tandem bench`: index, codecs, executors and simulator against this machine's own limits, one table last.

mod codecs;
mod dispatcher;
mod estimates;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(not(feature = "gpu"))]
#[path = "no_gpu.rs"]
mod gpu;
mod ingest;
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
use crate::files::{Digits, Provenance, Record, check_writable, write_csv};
use crate::index::Index;
use crate::measure::{CopyRate, Times, copy_rate};
use crate::query::Query;
use crate::sched::PolicyKind;

/// Options of `bench`.
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
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    policy: Vec<PolicyKind>,
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
    /// The rate at which memory is copied
    Memory,
    /// What a posting takes, by part of the index
    Index,
    /// How small codecs make lists, and how fast they give them back
    Codecs,
    /// What queries cost, by operator and processor
    Operators,
    /// What an estimate of a query's cost takes
    Estimates,
    /// What a simulated query costs, by policy; and beside Lindley's recursion and SimPy
    Simulator,
    /// What a job costs the dispatcher, by policy, and how many it carries with a thread for each lane (not by default)
    Dispatcher,
    /// How many queries cores answer while others index (not by default)
    Ingest,
    /// The GPU's kernels against its limits, and from how many postings on it gains over the CPU
    Gpu,
    /// Of that, only what queries cost on the GPU
    GpuQueries,
    /// Several GPUs together, by queries and by documents, against one
    GpuCluster,
    /// Whether the GPU's memory is given back, over a million queries
    GpuMemory,
}

const DEFAULT_PARTS: [Part; 6] =
    [Part::Memory, Part::Index, Part::Codecs, Part::Operators, Part::Estimates, Part::Simulator];

/// Copied for the copy rate: several times any cache.
const COPY_BYTES: usize = 256 << 20;

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
            Part::Memory => memory(arguments.rounds as usize),
            Part::Index => sizes::measure(arguments)?,
            Part::Codecs => codecs::measure(arguments)?,
            Part::Operators => operators::measure(arguments)?,
            Part::Estimates => estimates::measure(arguments)?,
            Part::Ingest => ingest::measure(arguments)?,
            Part::Gpu => gpu::measure(arguments)?,
            Part::GpuQueries => gpu::measure_queries(arguments)?,
            Part::GpuCluster => gpu::cluster::measure(arguments)?,
            Part::GpuMemory => gpu::memory::measure(arguments)?,
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

fn memory(rounds: usize) -> (String, Vec<Measurement>) {
    let CopyRate { one_thread, all_threads } = copy_rate(COPY_BYTES, rounds);
    let row = |(name, value): (&str, f64)| Measurement {
        part: "memory",
        name: name.to_owned(),
        metric: "bytes_per_s",
        value,
    };
    let note = format!("memory: {} MiB copied, each byte counted once\n", COPY_BYTES >> 20);
    (note, [("one thread", one_thread), ("all threads", all_threads)].map(row).into())
}

/// The metrics of a distribution of times.
fn metrics(times: &Times) -> [(&'static str, f64); 4] {
    [
        ("mean_us", times.mean_us()),
        ("p50_us", times.quantile_us(0.5)),
        ("p95_us", times.quantile_us(0.95)),
        ("p99_us", times.quantile_us(0.99)),
    ]
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
    let mut queries = super::defaults::read_queries(&log, &index)?;
    queries.truncate(arguments.limit as usize);
    if queries.is_empty() {
        return Err(Failure::input(format!("{}: no query has a term of the index", log.display())));
    }
    Ok((index, queries))
}
