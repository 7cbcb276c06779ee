//! `tandem live`: drives the real executors with the same scheduler code that `simulate` plays.

mod lab;
mod session;

use std::path::PathBuf;
use std::time::Duration;

use self::lab::Lab;
use self::session::Session;
use super::choices::{self, GpuChoice, Multicore};
use super::output::say;
use super::traced::traced;
use super::{Failure, estimates};
use crate::exec::cpu::Algorithm;
use crate::files::check_writable;
use crate::gpu::list_gpus;
use crate::ids::QueryId;
use crate::live::catch_interrupts;
use crate::machine::{Class, PerClass};
use crate::query::{ArrivalProcess, Mode, Trace, draw_queries, unit_arrivals};
use crate::report::number;
use crate::report::rates::parse_rates;
use crate::sched::{PolicyKind, PolicyOptions};
use crate::sim::{Arrivals, bounds};
use crate::time::Nanos;

/// Options of `live`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folder of the index; left out, the one of the last `validate`, or a synthetic one made in `out/`
    index: Option<PathBuf>,
    /// Query log: one query a line, `id<TAB>query`; plain, .gz or .zst
    #[arg(long, value_name = "FILE")]
    queries: Option<PathBuf>,
    /// What `profile` measured of these queries on this index; left out, some of them are measured now
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Policies, between commas; left out, all that the machine can run
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    /// Rates in queries per second: numbers and FROM:TO:COUNT, between commas; left out, three below what this machine
    /// could sustain, or with --trace the rate of the trace
    #[arg(long, value_name = "QPS")]
    rate: Option<String>,
    /// How long queries arrive in each run
    #[arg(long, value_name = "S", default_value_t = 2.0)]
    seconds: f64,
    /// Queries in each run, whatever time they take [default: those of --seconds]
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    queries_count: Option<usize>,
    /// Draws arrivals and queries
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Time from a query's arrival to its deadline, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500.0)]
    deadline_ms: f64,
    /// CPU cores that work; the driver needs one of its own besides
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: usize,
    /// How these cores share queries
    #[arg(long, value_name = "METHOD", value_enum, default_value_t = Multicore::Inter)]
    multicore: Multicore,
    /// What stands in the GPU's place
    #[arg(long, value_enum, default_value_t = GpuChoice::Auto)]
    gpu: GpuChoice,
    /// How the terms of queries combine
    #[arg(long, value_enum, default_value_t = Mode::Or)]
    mode: Mode,
    /// How the CPU finds the best documents with any of the words; all give the same result
    #[arg(long, value_enum, default_value_t = Algorithm::Auto)]
    algorithm: Algorithm,
    /// What policies know of costs: `model` (a tree per processor fitted to the workload, each query
    /// estimated by one that has not seen it), `oracle` (the measured times), a model file, or the name of a
    /// model that ships with Tandem
    #[arg(long, value_name = "WHAT", default_value = "model")]
    estimates: String,
    /// Play the arrivals and queries of this trace file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["queries_count", "seconds", "arrivals", "seed"])]
    trace: Option<PathBuf>,
    /// How queries arrive: poisson, bursty, uniform, or a file of recorded arrivals
    #[arg(long, value_name = "PROCESS", default_value = "poisson")]
    arrivals: String,
    /// Where the results go
    #[arg(long, value_name = "DIR", default_value = "out/live")]
    out: PathBuf,
    /// Write every run's log as well: log.csv, or the folder `log` for several runs
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    options: PolicyOptions,
}

/// More arrivals in a run than this are surely a slip.
const MAX_ARRIVALS: usize = 10_000_000;
/// More CPU workers than this are surely a slip.
const MAX_CPUS: usize = 1024;
/// The longest run, a day.
const MAX_SECONDS: f64 = 86_400.0;
/// Rates that are tried where none are named, as shares of the rate above which no scheduler is stable.
const DEFAULT_SHARES: [f64; 3] = [0.3, 0.6, 0.9];
/// Workers run queries for this long before the first run: caches fill, clocks rise.
const WARM_UP: Duration = Duration::from_millis(500);

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check(arguments)?;
    let mut lab = Lab::set_up(arguments)?;
    let machine = lab.fleet.machine().clone();
    let policies = choices::policies(&arguments.policy, &arguments.options, &machine)?;
    let queries = estimates::sim_queries(&lab.workload, &arguments.estimates, &machine)?;
    let services = queries.iter().map(|query| query.service);
    let region_qps = bounds::region(services, &machine).map(|region| region.rate_qps);
    let estimates: Vec<(QueryId, PerClass<Nanos>)> = queries.iter().map(|query| (query.id, query.estimate)).collect();
    let traced = arguments.trace.as_deref().map(|path| traced(path, &lab.workload, arguments.mode));
    let (traced, traced_qps) = traced.transpose()?.unzip();
    let rates = named_rates(arguments)?
        .or(traced_qps.map(|rate_qps| vec![rate_qps]))
        .or_else(|| default_rates(region_qps))
        .ok_or_else(|| Failure::input("all queries of the workload cost nothing: name rates with --rate"))?;
    let plans = plans(arguments, &lab, &rates, traced)?;
    let runs = policies.len() * plans.len();

    catch_interrupts();
    lab.fleet.warm_up(WARM_UP)?;
    let mut session = Session::new(arguments, lab, runs);
    say(&format!("driving {}; Ctrl-C ends them and keeps what was measured\n", number::counted(runs, "run", "runs")))?;
    let driven = session.drive_all(&policies, &plans, &estimates);
    // Whatever has happened, what was measured is kept.
    let summary_path = arguments.out.join("summary.csv");
    session.write(&summary_path)?;
    session.print(&summary_path)?;
    driven
}

/// Checks what can be before anything is opened.
fn check(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { cpus, seconds, queries_count, .. } = *arguments;
    if cpus > MAX_CPUS {
        return Err(Failure::input(format!("--cpus is {cpus}, expected at most {MAX_CPUS}")));
    }
    if cpus == 0 && matches!(arguments.gpu, GpuChoice::None | GpuChoice::Replay) {
        return Err(Failure::input("nothing real to drive: with --cpus 0 take --gpu real, or use `tandem simulate`"));
    }
    if !(seconds > 0.0 && seconds <= MAX_SECONDS) {
        return Err(Failure::input(format!("--seconds is {seconds}, expected above 0 and at most {MAX_SECONDS}")));
    }
    choices::deadline(arguments.deadline_ms)?;
    arguments.gpu.check()?;
    let needs_gpu = |policy: &&PolicyKind| policy.required_classes().contains(&Class::GPU);
    if arguments.gpu == GpuChoice::None
        && let Some(policy) = arguments.policy.iter().find(needs_gpu)
    {
        return Err(Failure::input(format!("policy {policy} needs a GPU, and --gpu is none: leave one of them out")));
    }
    if cpus == 0 && list_gpus().is_err() {
        return Err(Failure::input("nothing real to drive: this machine has no GPU, and --cpus is 0"));
    }
    if queries_count == Some(0) {
        return Err(Failure::input("--queries-count is 0, expected at least 1"));
    }
    arguments.options.check()?;
    estimates::check(&arguments.estimates)?;
    ArrivalProcess::named(&arguments.arrivals)?;
    arguments.trace.as_deref().map(Trace::read).transpose()?;
    check_writable(&arguments.out.join("summary.csv"))?;
    let rates = named_rates(arguments)?.filter(|_| arguments.trace.is_none());
    rates.into_iter().flatten().try_for_each(|rate_qps| count(arguments, rate_qps).map(|_| ()))
}

/// How many queries a run at this rate has.
fn count(arguments: &Arguments, rate_qps: f64) -> Result<usize, Failure> {
    // A float too large saturates, and is refused.
    let count = arguments.queries_count.unwrap_or((rate_qps * arguments.seconds).ceil() as usize).max(1);
    if count > MAX_ARRIVALS {
        let fault = format!("{count} queries at {rate_qps} per second are too many, at most {MAX_ARRIVALS} a run");
        return Err(Failure::input(fault));
    }
    Ok(count)
}

fn named_rates(arguments: &Arguments) -> Result<Option<Vec<f64>>, Failure> {
    let rates = arguments.rate.as_deref().map(parse_rates).transpose();
    rates.map_err(|why| Failure::input(format!("--rate: {why}")))
}

fn default_rates(region_qps: Option<f64>) -> Option<Vec<f64>> {
    region_qps.map(|top| DEFAULT_SHARES.map(|share| number::significant(top * share, 2)).to_vec())
}

/// One rate's arrivals, which all policies share.
struct Plan {
    rate_qps: f64,
    arrivals: Arrivals,
}

fn plans(arguments: &Arguments, lab: &Lab, rates: &[f64], traced: Option<Arrivals>) -> Result<Vec<Plan>, Failure> {
    if let Some(arrivals) = traced {
        return Ok(rates.iter().map(|&rate_qps| Plan { rate_qps, arrivals: arrivals.clone() }).collect());
    }
    let process = ArrivalProcess::named(&arguments.arrivals)?;
    let plan = |&rate_qps: &f64| {
        let (count, seed) = (count(arguments, rate_qps)?, arguments.seed);
        let (unit, queries) =
            (unit_arrivals(&process, seed, count), draw_queries(seed, count, lab.workload.rows.len()));
        Ok(Plan { rate_qps, arrivals: Arrivals { seed, unit, queries } })
    };
    rates.iter().map(plan).collect()
}
