//! `tandem profile`: measures the cost of every query on each processor, and checks that all return the same documents.

pub(super) mod machine;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;
use tandem_drive::lab::Multicore;
use tandem_drive::profile::{ProfileOptions, profile};
use tandem_engine::index::Index;
use tandem_engine::query::{LogOptions, Query};
use tandem_engine::search::cpu::{Algorithm, CpuExecutor};
use tandem_engine::search::device::GpuError;
use tandem_engine::search::gpu::UploadReport;
use tandem_engine::search::{ExecError, Executor};
use tandem_model::base::interrupt::interrupted;
use tandem_model::base::machine::Class;
use tandem_model::base::quantile::{median, nearest_rank};
use tandem_model::cost::batches::BatchModel;
use tandem_model::cost::{SpeedUp, Workload};
use tandem_model::files::{Provenance, check_writable};
use tandem_model::traffic::Mode;

use super::defaults;
use super::interrupts;
use super::output::{is_verbose, result};
use super::settings::SetArguments;
use crate::failure::Failure;
use crate::options::input::IndexAndLog;
use crate::options::machine::GpuMemoryArguments;
use crate::options::names::choice;
use crate::options::question::check_k;

/// Measure the cost of every query on each processor of this machine.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem profile my-index --queries log.tsv -o mine.workload.csv\n  tandem profile --machine"
)]
pub(super) struct Arguments {
    #[command(flatten)]
    log: IndexAndLog,
    /// Workload file to write; names that end in .gz or .zst are compressed
    #[arg(short, long, value_name = "FILE", default_value = "out/profile.workload.csv")]
    out: PathBuf,
    /// How the terms of a query combine, separated by commas
    #[arg(long, value_parser = choice::<Mode>(), value_delimiter = ',', default_values = Mode::ALL.map(Mode::name))]
    mode: Vec<Mode>,
    /// Algorithm by which the CPU finds the best documents with any of the terms; all give the same result
    #[arg(long, value_parser = choice::<Algorithm>(), default_value = Algorithm::Auto.name())]
    algorithm: Algorithm,
    /// Number of CPU cores that answer a query together, with --multicore fgqp
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: u16,
    #[command(flatten)]
    gpu_memory: GpuMemoryArguments,
    /// How CPU cores share queries; with `inter` and `adaptive` one core is measured
    #[arg(long, value_name = "METHOD", value_parser = choice::<Multicore>(), default_value = Multicore::Inter.name())]
    multicore: Multicore,
    /// Also measure each query on 2 to N CPU cores that share it; policies that run a query on several CPU workers need its
    /// speed-up
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1024))]
    speed_up: Option<u16>,
    /// Classes of processors to measure, separated by commas [default: all of this machine]
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kinds())]
    on: Vec<Class>,
    /// Number of documents that a query asks for, 1 to 10000; GPUs return at most 1000
    #[arg(short, value_name = "K", default_value_t = ProfileOptions::default().k)]
    k: usize,
    /// Number of measured runs per query; the median counts
    #[arg(long, value_name = "N", default_value_t = ProfileOptions::default().repeats)]
    repeats: usize,
    /// Number of queries, from the beginning of the log [default: all]
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Seed of the random order of queries
    #[arg(long, default_value_t = ProfileOptions::default().seed)]
    seed: u64,
    #[command(flatten)]
    machine: machine::MachineArguments,
    #[command(flatten)]
    settings: SetArguments,
}

fn kinds() -> impl TypedValueParser<Value = Class> {
    PossibleValuesParser::new(Class::ALL.map(Class::name))
        .map(|name| if name == Class::GPU.name() { Class::GPU } else { Class::CPU })
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let options = check(arguments)?;
    interrupts::catch();
    let (index, queries_path) = arguments.log.open("what to measure on this index")?;
    let form = LogOptions { limit: arguments.limit, ..arguments.log.form() };
    let mut queries = defaults::read_queries(&queries_path, &form, &index)?;
    queries.truncate(arguments.limit.unwrap_or(usize::MAX));
    if let Some(path) = &arguments.machine.machine {
        return machine::run(arguments, path, &index, queries);
    }
    let mut executors = executors(arguments, &index, &queries)?;
    let devices: Vec<String> = executors.iter().map(|e| format!("{} ({})", e.class(), e.device())).collect();
    errln!(
        "{} queries in {} modes on {}: checked once, then measured {} times",
        queries.len(),
        options.modes.len(),
        devices.join(" and "),
        options.repeats,
    );

    let bar = defaults::progress("profile", options.searches(executors.len(), queries.len()));
    let measured = profile(&mut executors, &queries, &index, &options, &mut |done| bar.set_position(done));
    bar.finish_and_clear();
    let mut workload = measured?;
    workload.speed_up = speed_up(arguments, (&index, &queries), &options, &workload)?;
    let num_executors = executors.len();
    let refused = refusals(&workload, &executors);
    workload.provenance = provenance(&workload, &queries_path);
    workload.write(&arguments.out)?;
    print_table(&workload, num_executors > 1);
    refused.iter().for_each(|line| outln!("{line}"));
    workload.provenance.get("interrupted").into_iter().for_each(|rows| outln!("interrupted: {rows}"));
    if is_verbose() {
        print_batches(&workload);
    }
    result("workload", arguments.out.display().to_string());
    let batches = workload.batches.0.iter().filter_map(|(class, model)| Some((class.name(), model.as_ref()?)));
    result("batches", batches.collect::<BTreeMap<_, _>>());
    outln!("workload: {}", arguments.out.display());
    Ok(())
}

/// The origin of the measurements.
fn provenance(workload: &Workload, queries_path: &Path) -> Provenance {
    let provenance = Provenance::new().with_command_and_machine().with("queries", queries_path.display());
    let keys = ["cpu", "gpu", "index", "docs", "k", "repeats", "seed", "interrupted"];
    let measured = keys.into_iter().filter_map(|key| Some((key, workload.provenance.get(key)?)));
    measured.fold(provenance, |all, (key, value)| all.with(key, value))
}

/// Checks options before any file is opened.
fn check(arguments: &Arguments) -> Result<ProfileOptions, Failure> {
    check_k(arguments.k)?;
    arguments.machine.machine.iter().try_for_each(|path| check_writable(path))?;
    if arguments.settings.idle.is_some() && arguments.machine.machine.is_none() {
        return Err(Failure::input("--set idle: needs --machine"));
    }
    for (option, value) in [("repeats", Some(arguments.repeats)), ("limit", arguments.limit)] {
        if value == Some(0) {
            return Err(Failure::input(format!("--{option} is 0, expected 1 or more")));
        }
    }
    if arguments.speed_up.is_some() && !(arguments.on.is_empty() || arguments.on.contains(&Class::CPU)) {
        return Err(Failure::input("--speed-up measures CPU cores, and --on leaves them out"));
    }
    check_writable(&arguments.out)?;
    let modes = Mode::ALL.into_iter().filter(|mode| arguments.mode.contains(mode)).collect();
    Ok(ProfileOptions {
        modes,
        k: arguments.k,
        repeats: arguments.repeats,
        seed: arguments.seed,
        ..ProfileOptions::default()
    })
}

/// The speed-up of the workload's queries on several cores, if requested.
fn speed_up(
    arguments: &Arguments,
    (index, queries): (&Arc<Index>, &[Query]),
    options: &ProfileOptions,
    workload: &Workload,
) -> Result<Option<SpeedUp>, Failure> {
    let Some(most) = arguments.speed_up.filter(|_| !interrupted()) else { return Ok(None) };
    let times = |workload: &Workload| -> Vec<Option<f64>> {
        workload.rows.iter().map(|row| row.measured[Class::CPU].map(|measured| measured.median_us)).collect()
    };
    let cpu = CpuExecutor::new(Arc::clone(index), index.built_with()).with_algorithm(arguments.algorithm);
    let options = ProfileOptions { batches: None, ..options.clone() };
    let mut by_cores = vec![times(workload)];
    for cores in 2..=usize::from(most) {
        errln!("{cores} cores share each query");
        let bar = defaults::progress("speed-up", options.searches(1, queries.len()));
        let mut team = Multicore::Fgqp.lanes(&cpu, cores, 0)?;
        let measured = profile(&mut team, queries, index, &options, &mut |done| bar.set_position(done));
        bar.finish_and_clear();
        let measured = measured?;
        if interrupted() {
            return Ok(None);
        }
        by_cores.push(times(&measured));
    }
    // A query counts if it was measured on every number of cores.
    let is_known = |query: &usize| by_cores.iter().all(|times| times[*query].is_some());
    let known: Vec<usize> = (0..workload.rows.len()).filter(is_known).collect();
    let mut by_cores: Vec<Vec<f64>> =
        by_cores.iter().map(|times| known.iter().filter_map(|&query| times[query]).collect()).collect();
    let alone = by_cores.remove(0);
    let found = SpeedUp::measured(&alone, &by_cores);
    for size in &found.sizes {
        let end = size.up_to_us.map_or(String::from("longer"), |us| format!("up to {us:.1} us"));
        let by_lanes: Vec<String> = size.by_lanes.iter().map(|speed_up| format!("{speed_up:.2}")).collect();
        outln!("speed-up on 1 to {most} cores, queries {end}: {}", by_lanes.join(", "));
    }
    Ok(Some(found))
}

/// One executor per requested class; by default, per class of this machine.
fn executors(arguments: &Arguments, index: &Arc<Index>, queries: &[Query]) -> Result<Vec<Box<dyn Executor>>, Failure> {
    let bm25 = index.built_with();
    let wanted = |kind| arguments.on.is_empty() || arguments.on.contains(&kind);
    let mut executors: Vec<Box<dyn Executor>> = Vec::new();
    if wanted(Class::CPU) {
        let cpu = CpuExecutor::new(Arc::clone(index), bm25).with_algorithm(arguments.algorithm);
        executors.extend(arguments.multicore.lanes(&cpu, usize::from(arguments.cpus), 0)?.into_iter().take(1));
    }
    if wanted(Class::GPU) {
        let memory = arguments.gpu_memory.open(&arguments.settings, index, queries)?;
        match defaults::gpu_executor(index, bm25, memory.as_ref()) {
            Ok(gpu) => {
                let UploadReport { device_bytes, host_bytes, copied_bytes, seconds } = gpu.upload_report();
                errln!(
                    "the index takes {:.2} GB of the GPU's memory and {:.2} GB of the host's; {:.2} GB were copied, in \
                     {seconds:.2} s",
                    device_bytes as f64 / 1e9,
                    host_bytes as f64 / 1e9,
                    copied_bytes as f64 / 1e9,
                );
                executors.push(Box::new(gpu));
            }
            Err(ExecError::Gpu(GpuError::NoGpu(why))) if arguments.on.is_empty() => {
                arguments.gpu_memory.refuse("there is no GPU to measure")?;
                errln!("no GPU to measure: {why}");
            }
            Err(e) => return Err(e.into()),
        }
    } else {
        arguments.gpu_memory.refuse("no GPU is measured")?;
    }
    Ok(executors)
}

/// Notes on rows that a processor left empty because it has lower limits on terms or documents.
fn refusals(workload: &Workload, executors: &[Box<dyn Executor>]) -> Vec<String> {
    let line = |class: Class| {
        let empty = workload.rows.iter().filter(|row| row.measured[class].is_none()).count();
        let rows = workload.rows.len();
        (empty > 0)
            .then(|| format!("{class}: {empty} of {rows} queries have too many terms or results for it and no time"))
    };
    executors.iter().filter_map(|executor| line(executor.class())).collect()
}

/// The fitted costs of batches, with their error.
fn print_batches(workload: &Workload) {
    for (class, model) in workload.batches.0.iter() {
        let Some(BatchModel { cost, samples, mean_relative_error, p95_relative_error, .. }) = model else { continue };
        outln!(
            "batches on {class}: {samples} of 1 to {}; predicted within {:.1} % in the mean, {:.1} % for 95 of 100 (those \
             left out of the fit); the thread is at them for {:.1} us and {:.2} us a query",
            cost.most_queries,
            mean_relative_error * 100.0,
            p95_relative_error * 100.0,
            cost.host_fixed_us,
            cost.host_each_us,
        );
    }
}

/// Service times by class and mode, in microseconds.
fn print_table(workload: &Workload, compared: bool) {
    let mut costs = Vec::new();
    outln!("mode    kind  queries   mean us  median us   p95 us    p99 us    max us  spread");
    for mode in Mode::ALL {
        for kind in Class::ALL {
            let rows = workload.rows.iter().filter(|row| row.mode == mode);
            let measured: Vec<_> = rows.filter_map(|row| row.measured[kind]).collect();
            if measured.is_empty() {
                continue;
            }
            let mut us: Vec<f64> = measured.iter().map(|m| m.median_us).collect();
            us.sort_by(f64::total_cmp);
            let at = |share| nearest_rank(&us, share).unwrap_or(f64::NAN);
            let spread = median(measured.iter().map(|m| m.spread_us / m.median_us).collect());
            outln!(
                "{:<6}  {:<4}  {:>7}  {:>8.1}  {:>9.1}  {:>7.1}  {:>8.1}  {:>8.1}  {:>4.1} %",
                mode.name(),
                kind.name(),
                us.len(),
                us.iter().sum::<f64>() / us.len() as f64,
                at(0.5),
                at(0.95),
                at(0.99),
                at(1.0),
                spread * 100.0,
            );
            costs.push(json!({
                "mode": mode.name(),
                "kind": kind.name(),
                "queries": us.len(),
                "spread_share": spread,
                "mean_us": us.iter().sum::<f64>() / us.len() as f64,
                "p50_us": at(0.5),
                "p95_us": at(0.95),
                "p99_us": at(0.99),
                "max_us": at(1.0),
            }));
        }
    }
    result("costs", costs);
    outln!("spread: median over queries of their interquartile range over repetitions");
    if compared {
        outln!("all processors returned the same documents with the same scores");
    }
}
