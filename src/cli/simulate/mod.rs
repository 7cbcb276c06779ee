//! `tandem simulate`: delay against rate, and the capacity within a deadline, for several policies.

mod inputs;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use self::inputs::{
    DEFAULT_RATES, arrivals, counts, cpus_in_words, gpus_in_words, is_of_here, machine, named_rates, rates_around,
    wants_gpu,
};
use self::report::{capacity_table, delay_chart, delay_table, loss_table};
use super::Failure;
use super::kept::Kept;
use super::options::{
    ArrivalArguments, ClusterArguments, DeadlineArgument, FaultArguments, MachineFileArgument, MemoryBudgetArgument,
    ObjectiveArguments, PagesArguments, PolicyArguments, check_processors, cluster_in_words, no_rates,
};
use super::origin;
use super::output::say;
use super::run_logs::{KeptRuns, LogArguments};
use crate::cost::{Cost, Following, MachineModel, Workload};
use crate::files::{Provenance, check_writable};
use crate::lab::{
    Capacities, CapacitySearch, Estimates, GpuChoice, LabError, QueryLengths, RunLength, following, in_stream,
    named_workload_in, play_all, settle_gpu_times, sim_queries,
};
use crate::machine::{Class, FaultPlan, Machine, PerClass};
use crate::query::Mode;
use crate::report::capacity::{CapacityRow, write_capacities};
use crate::report::source::Source;
use crate::report::summary::{SummaryRow, write_summaries};
use crate::report::table::fitted;
use crate::sched::{BuiltIn, PolicyFactory, PolicyKind};
use crate::sim::{Arrivals, Experiment, SimQuery, simulate};

/// What there is to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Part {
    /// The highest rate that each policy sustains
    Capacity,
    /// What queries wait at each rate
    Delays,
    /// A figure of these delays
    Plot,
}

/// Options of `simulate`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Measured queries: a workload file, or the name of one that ships with Tandem; left out, the first of those
    #[arg(long, value_name = "FILE")]
    workload: Option<String>,
    /// Policies, between commas; left out, all that the machine can run
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    #[command(flatten)]
    arrivals: ArrivalArguments,
    #[command(flatten)]
    deadline: DeadlineArgument,
    #[command(flatten)]
    objective: ObjectiveArguments,
    /// What to find out
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',', default_values_t = [Part::Capacity, Part::Delays, Part::Plot])]
    what: Vec<Part>,
    /// CPU workers [default: for a workload measured on this machine all its cores but the driver's and the GPUs', for
    /// others 1]
    #[arg(long, value_name = "N")]
    cpus: Option<usize>,
    /// GPUs [default: 1 where the workload has GPU times, or takes them with --gpu replay]
    #[arg(long, value_name = "N")]
    gpus: Option<usize>,
    /// Streams of each GPU, which answer queries side by side
    #[arg(long, value_name = "N", default_value_t = 1)]
    streams: usize,
    #[command(flatten)]
    gpu_memory: MemoryBudgetArgument,
    #[command(flatten)]
    pages: PagesArguments,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Whose times the GPU takes: `real`, those that were measured with the workload; `replay`, for a workload that was
    /// measured without a GPU, those of an NVIDIA H200, of these very queries where it answered them, else as a model that
    /// ships predicts them from the lists; `auto`, measured times where there are any, else no GPU
    #[arg(long, value_enum, default_value_t = GpuChoice::Auto, hide_possible_values = true, value_name = "auto|real|replay|none")]
    gpu: GpuChoice,
    /// Which of the workload's rows are asked
    #[arg(long, value_enum, default_value_t = Mode::Or)]
    mode: Mode,
    /// What policies know of costs: `model` (boosted trees fitted to the workload, each query
    /// estimated by some that have not seen it), `cart`, `m5`, `forest`, `work` (other kinds, likewise), `oracle` (the measured times), a model file, or the name of a
    /// model that ships with Tandem
    #[arg(long, value_name = "WHAT", default_value = "model")]
    estimates: String,
    #[command(flatten)]
    machine: MachineFileArgument,
    #[command(flatten)]
    faults: FaultArguments,
    /// Where the results go
    #[arg(short, long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    #[command(flatten)]
    logs: LogArguments,
    #[command(flatten)]
    options: PolicyArguments,
}

/// Queries of a run whose delays are told, where nothing else is asked for.
const DELAY_QUERIES: usize = 50_000;
/// Where rates are not named, delays of a policy are told up to so many times its capacity: beyond they only grow.
const HOPELESS: f64 = 1.5;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_writable(&arguments.out.join("summary.csv"))?;
    arguments.options.checked()?;
    let deadline = arguments.deadline.checked()?;
    let objective = arguments.objective.checked()?;
    check_processors(&counts(arguments))?;
    let estimates = Estimates::named(&arguments.estimates)?;
    let (workload_name, mut workload) = named_workload_in(arguments.workload.as_deref(), arguments.mode)?;
    origin::warn_of_another(&estimates, &workload_name, &workload);
    let replayed = settle_gpu_times(&workload_name, &mut workload, arguments.gpu, wants_gpu(arguments))?;
    let workload = arguments.gpu_memory.apply(workload)?;
    let file = arguments.machine.read(is_of_here(&workload))?;
    let machine = machine(arguments, &workload, file.is_some())?;
    let model = MachineModel { batches: workload.batches.batch_costs(), ..machine.clone().into() };
    // Recorded times in a GPU's place are played as they are.
    let is_played = |class: Class| class.is_gpu() && replayed.is_some();
    let company = workload.contention.as_ref();
    let model = file.as_ref().map_or(model.clone(), |(_, file)| file.model(&model, company, is_played));
    let model = MachineModel { faults: faults(arguments, &machine)?, ..model };
    let alone = sim_queries(&workload, &estimates, &machine)?;
    let model = follow(arguments, (&workload, &alone), &estimates, model)?;
    let queries = in_stream(&alone, &model);
    let estimated: Vec<PerClass<Cost>> = queries.iter().map(|query| query.estimate).collect();
    let lengths = QueryLengths::of(&workload, &estimated, &model);
    let policies = arguments.options.policies(&arguments.policy, &model, &lengths)?;
    let cluster = arguments.cluster.cluster(&queries)?;
    let asked = arguments.arrivals.num_queries()?;
    let (arrivals, recorded_qps) = arrivals(arguments, &workload, asked.unwrap_or(DELAY_QUERIES))?;
    let experiment = Experiment { model, queries, deadline, arrivals, cluster };
    let region_qps = experiment.region().ok_or_else(no_rates)?.rate_qps;
    let named_rates = named_rates(arguments, recorded_qps)?;
    let queries: usize = experiment.arrivals.iter().map(Arrivals::len).sum();
    let num_rates = named_rates.as_ref().map_or(DEFAULT_RATES as usize, Vec::len);
    arguments.logs.check(queries.saturating_mul(policies.len() * num_rates))?;
    let provenance = Provenance::new()
        .with_command_and_machine()
        .with("workload", &workload_name)
        .with("mode", arguments.mode)
        .with("estimates", &arguments.estimates)
        .with("arrivals", arguments.arrivals.in_provenance()?)
        .with("objective", objective.within(deadline));
    let provenance = match &experiment.model.following {
        Some(following) => provenance.with("gpu memory", in_words(following)),
        None => provenance,
    };
    let provenance = file.iter().fold(provenance, |all, (name, _)| all.with("machine file", name));
    let provenance = match &replayed {
        Some(source) => provenance.with("gpu", format!("replay of {source}")),
        None => provenance,
    };

    let factories: Vec<&dyn PolicyFactory> = policies.iter().map(|policy| policy as &dyn PolicyFactory).collect();
    let mut notes = Vec::new();
    let capacities = if arguments.what.contains(&Part::Capacity) {
        match CapacitySearch::new(&experiment, objective, RunLength::Enough { at_least: asked.unwrap_or(0) }) {
            Ok(search) => capacities(&search.beside_no_miss(), &factories)?,
            // What there is of delays is told all the same.
            Err(e @ LabError::TooFewArrivals { .. }) if arguments.what.len() > 1 => {
                notes.push(format!("no capacity: {e}"));
                Vec::new()
            }
            Err(e) => return Err(e.into()),
        }
    } else {
        Vec::new()
    };
    let rates_are_named = named_rates.is_some();
    let rates = named_rates.unwrap_or_else(|| rates_around(&capacities, region_qps));
    let played = if arguments.what.contains(&Part::Delays) {
        let is_hopeless = |policy: &str, rate_qps: f64| {
            let mut found = capacities.iter().map(|found| &found.objective);
            found.any(|found| found.policy == policy && rate_qps > found.qps * HOPELESS)
        };
        let wanted = |policy: &str, rate_qps| rates_are_named || !is_hopeless(policy, rate_qps);
        let progress = progress_bar("delays", (policies.len() * rates.len() * experiment.arrivals.len()) as u64);
        let played = play_all(&experiment, &factories, &rates, wanted, &|| progress.inc(1))?;
        progress.finish_and_clear();
        played
    } else {
        Vec::new()
    };
    let summaries: Vec<SummaryRow> = played.into_iter().map(|run| SummaryRow::of(Source::Simulated, run)).collect();

    let mut kept = Kept::new();
    if !summaries.is_empty() {
        let path = arguments.out.join("summary.csv");
        kept.rows("summary", &path, write_summaries(&path, &provenance, &summaries));
    }
    if !capacities.is_empty() {
        let path = arguments.out.join("capacity.csv");
        let rows = capacities.iter().flat_map(Capacities::iter);
        let rows: Vec<CapacityRow> =
            rows.map(|found| CapacityRow { capacity: found.clone(), live: None, held_qps: None }).collect();
        kept.rows("capacity", &path, write_capacities(&path, &provenance, &rows));
    }
    if arguments.what.contains(&Part::Plot) && !summaries.is_empty() {
        let chart = arguments.out.join("delay");
        let what = origin::in_words(&workload_name, &workload.provenance, arguments.mode, replayed.is_some());
        let drawn = delay_chart(&summaries, &policies, &rates, Some(region_qps), arguments.deadline.ms, what);
        let pictures = vec![chart.with_extension("svg"), chart.with_extension("png")];
        kept.files(drawn.write(&chart).map(|()| pictures));
    }
    if arguments.logs.any() {
        kept.files(keep_logs(arguments, &experiment, &policies, &rates, &provenance));
    }
    let title = format!(
        "{workload_name}, mode {}: {} queries; {}, {}; deadline {} ms; estimates: {}{}{}",
        arguments.mode,
        workload.rows.len(),
        cpus_in_words(arguments, &workload, &experiment.model.machine),
        gpus_in_words(&experiment.model.machine),
        arguments.deadline.ms,
        arguments.estimates,
        file.map_or(String::new(), |(name, _)| format!("; served as {name} says")),
        replayed.map(|source| format!("\nNo GPU was measured: its times are {source}.")).unwrap_or_default(),
    );
    let title = match &experiment.model.following {
        Some(following) => format!("{title}\nGPU memory: {}", in_words(following)),
        None => title,
    };
    let title = match &experiment.cluster {
        Some(cluster) => format!("{title}\n{}", cluster_in_words(&cluster.shape())),
        None => title,
    };
    let mut text = format!("{title}\n\n");
    let found = capacities.iter().map(|found| found.objective.qps);
    let rates_played: Vec<f64> =
        found.chain(summaries.iter().map(|row| row.rate_qps)).filter(|&qps| qps > 0.0).collect();
    if arguments.arrivals.trace.is_none()
        && let Some(note) = arguments.arrivals.process.note(&arguments.arrivals.process.process()?, &rates_played)
    {
        text.push_str(&format!("{note}\n\n"));
    }
    if !capacities.is_empty() {
        text.push_str(&capacity_table(&capacities));
    }
    notes.iter().for_each(|note| text.push_str(&format!("{note}\n")));
    if !summaries.is_empty() {
        text.push_str(&delay_table(&summaries, &policies, &rates, &experiment));
        text.push_str(&loss_table(&summaries, arguments.faults.faults.is_some()));
    }
    let printed = say(&fitted(&format!("{text}\n{}\n", kept.in_words())));
    kept.finish().and(printed)
}

/// The machine with pages that follow the queries, if they are to: `queries` are the workload's, with all of them near.
fn follow(
    arguments: &Arguments,
    (workload, queries): (&Workload, &[SimQuery]),
    estimates: &Estimates,
    model: MachineModel,
) -> Result<MachineModel, Failure> {
    let Some((pages, options)) = arguments.gpu_memory.following(&arguments.pages, arguments.workload.as_deref())?
    else {
        return Ok(model);
    };
    if arguments.cluster.shape()?.is_some() {
        return Err(Failure::input(
            "--gpu-memory-epoch: pages are followed on one machine: leave --shards and --replicas out",
        ));
    }
    let found = following(workload, queries, estimates, &pages, options, &model)?;
    Ok(MachineModel { following: Some(Arc::new(found)), ..model })
}

/// What follows the queries.
fn in_words(following: &Following) -> String {
    let (near, all) = following.num_near();
    format!("{near} of {all} pages near at first, following the queries in epochs of {}", following.epoch_queries())
}

/// The fault plan. A lane that fails goes on with a CPU in its place, so that there must be costs on one.
fn faults(arguments: &Arguments, machine: &Machine) -> Result<FaultPlan, Failure> {
    if arguments.faults.faults.is_some() {
        if machine.count(Class::CPU) == 0 {
            let message = "--faults: lanes that fail go on with a CPU in their place: give --cpus at least 1";
            return Err(Failure::input(message));
        }
        if arguments.cluster.shape()?.is_some() {
            return Err(Failure::input("--faults: a plan is of one machine: leave --shards and --replicas out"));
        }
    }
    arguments.faults.plan(machine.len())
}

fn progress_bar(what: &'static str, runs: u64) -> ProgressBar {
    // Drawn only where it takes more than a moment, and only on terminals.
    let style = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len} runs, {eta} left");
    let bar = ProgressBar::new(runs).with_message(what);
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

fn capacities(search: &CapacitySearch<'_>, policies: &[&dyn PolicyFactory]) -> Result<Vec<Capacities>, Failure> {
    let progress = progress_bar("capacities", (policies.len() * search.seeds()) as u64);
    let found = search.of_all(policies, &|| progress.inc(1))?;
    progress.finish_and_clear();
    Ok(found)
}

/// Plays every run once more for its log, and gives the files.
fn keep_logs(
    arguments: &Arguments,
    experiment: &Experiment,
    policies: &[BuiltIn],
    rates: &[f64],
    provenance: &Provenance,
) -> Result<Vec<PathBuf>, Failure> {
    let is_single = policies.len() * rates.len() * experiment.arrivals.len() == 1;
    let mut kept = KeptRuns::new(&arguments.logs, &arguments.out, is_single);
    for policy in policies {
        for &rate_qps in rates {
            for arrivals in &experiment.arrivals {
                let log = simulate(experiment.run(policy, rate_qps, arrivals)?)?;
                let run = (policy.name(), rate_qps, arrivals.seed);
                kept.keep(run, provenance, &log, |path, of_run| log.write(path, of_run))?;
            }
        }
    }
    kept.finish(provenance)
}
