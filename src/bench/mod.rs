//! `tandem bench`: measures parts of the program on this machine.
//!
//! Other work on a shared machine can double times for tens of seconds. Compared parts therefore take turns in short rounds, and
//! the least time over the rounds counts. A disturbance changes a result only if it hits the same part in every round.

#[cfg(feature = "gpu")]
mod gpu;
#[cfg(not(feature = "gpu"))]
#[path = "no_gpu.rs"]
mod gpu;
mod lanes;
mod operators;
mod simulator;
mod sizes;
mod summary;

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_model::base::interrupt::interrupted;
use tandem_model::files::{Digits, Provenance, Record, check_writable, write_csv};
use tandem_model::sched::PolicyKind;

use super::interrupts;
use super::output::{result_file, say, say_screen};
use crate::failure::Failure;
use crate::options::input::IndexAndLog;
use crate::options::machine::GpuMemoryArguments;
use crate::options::names::choice;
use crate::options::question::check_k;

/// Measure parts of the program: index, operators, simulator and GPU.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem bench --what operators,simulator\n  tandem bench my-index --queries log.tsv --what operators --rounds 20"
)]
pub(super) struct Arguments {
    #[command(flatten)]
    log: IndexAndLog,
    /// Number of queries, from the beginning of the log; with --gpu-memory, the others tell which parts of lists are read most
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Number of rounds, in which compared parts take turns; the least time of each query counts
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Numbers of documents that a query asks for, separated by commas
    #[arg(short, value_name = "K", value_delimiter = ',', default_values_t = [10, 1000])]
    k: Vec<usize>,
    /// Parts to measure, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = DEFAULT_PARTS)]
    what: Vec<Part>,
    /// Simulator: numbers of queries per run, separated by commas; runs of over 200000 have fewer rounds
    #[arg(long, value_name = "LIST", default_value = "2e5")]
    num_queries: String,
    /// Simulator: policies, separated by commas [default: all]
    #[arg(long, value_name = "NAME", value_parser = choice::<PolicyKind>(), value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    #[command(flatten)]
    gpu_memory: GpuMemoryArguments,
    /// Folder of bench.csv
    #[arg(short, long, value_name = "DIR", default_value = "out/bench")]
    out: PathBuf,
}

/// A part that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Size per posting, by part of the index
    Index,
    /// Times of queries, by operator and processor
    Operators,
    /// Time of a simulated query, by policy
    Simulator,
    /// Query rate of all lanes at once, without dispatcher (not by default)
    Lanes,
    /// GPU kernels against the limits of the device
    Gpu,
    /// Only the times of queries on the GPU
    GpuQueries,
}

const DEFAULT_PARTS: [Part; 3] = [Part::Index, Part::Operators, Part::Simulator];

/// A measurement: part, name, metric with its unit, and value.
struct Measurement {
    part: &'static str,
    name: String,
    metric: &'static str,
    value: f64,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.k.iter().try_for_each(|&k| check_k(k))?;
    if !arguments.what.iter().any(|part| matches!(part, Part::Gpu | Part::GpuQueries)) {
        arguments.gpu_memory.refuse("only --what gpu and gpu-queries use it")?;
    }
    let sizes = simulator::sizes(&arguments.num_queries)?;
    let path = arguments.out.join("bench.csv");
    check_writable(&path)?;
    let mut measurements = Vec::new();
    let mut notes = String::new();
    interrupts::catch();
    for (done, part) in arguments.what.iter().enumerate() {
        if interrupted() {
            notes += &format!("interrupted: {done} of {} parts are measured\n", arguments.what.len());
            break;
        }
        let (note, rows) = match part {
            Part::Index => sizes::measure(arguments)?,
            Part::Operators => operators::measure(arguments)?,
            Part::Gpu => gpu::measure(arguments)?,
            Part::GpuQueries => gpu::measure_queries(arguments)?,
            Part::Lanes => lanes::measure(arguments)?,
            Part::Simulator => simulator::measure(&sizes, &arguments.policy, arguments.rounds as usize)?,
        };
        notes += &note;
        measurements.extend(rows);
    }
    write(&path, &measurements)?;
    result_file("bench", &path);
    let table = summary::table(&measurements);
    // The parts of the GPU print their own tables.
    let table = if table.is_empty() { String::new() } else { format!("{table}\n") };
    say_screen(&format!("{table}{notes}"), &path.display().to_string())?;
    say(&format!("\nwritten: {}\n", path.display()))
}

/// A line of `bench.csv`, as it is written.
#[derive(Debug, Serialize, Deserialize)]
struct BenchLine {
    part: Cow<'static, str>,
    name: String,
    metric: Cow<'static, str>,
    value: Digits<6>,
}

impl Record for BenchLine {}

fn write(path: &Path, measurements: &[Measurement]) -> Result<(), Failure> {
    let line = |measurement: &Measurement| BenchLine {
        part: measurement.part.into(),
        name: measurement.name.clone(),
        metric: measurement.metric.into(),
        value: Digits(measurement.value),
    };
    Ok(write_csv(path, &Provenance::new().with_command_and_machine(), measurements.iter().map(line))?)
}

/// The index, and the path of the log.
fn index(arguments: &Arguments) -> Result<(Arc<Index>, PathBuf), Failure> {
    arguments.log.open("what to ask of this index")
}

/// The index and the first queries of the log.
fn input(arguments: &Arguments) -> Result<(Arc<Index>, Vec<Query>), Failure> {
    input_and_others(arguments).map(|(index, [queries, _])| (index, queries))
}

/// The index, the first queries of the log, and the others.
fn input_and_others(arguments: &Arguments) -> Result<(Arc<Index>, [Vec<Query>; 2]), Failure> {
    let (index, log) = index(arguments)?;
    let mut queries = super::defaults::read_queries(&log, &arguments.log.form(), &index)?;
    if queries.is_empty() {
        return Err(Failure::input(format!("{}: no query has a term of the index", log.display())));
    }
    let others = queries.split_off(queries.len().min(arguments.limit as usize));
    Ok((index, [queries, others]))
}
