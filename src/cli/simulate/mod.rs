//! `tandem simulate`: delay against rate, and the capacity within a deadline, for several policies.

mod inputs;
mod report;

use std::path::PathBuf;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use self::inputs::{arrivals, counts, gpus_in_words, machine, rates, wants_gpu};
use self::report::{delay_chart, report};
use super::Failure;
use super::options::{ArrivalArguments, DeadlineArgument, PolicyArguments, check_processors};
use super::origin;
use super::output::{result_file, say};
use super::run_logs::{KeptRuns, LogArguments};
use crate::cost::MachineModel;
use crate::files::{Provenance, check_writable};
use crate::lab::{
    CapacitySearch, Estimates, GpuChoice, named_workload_in, play_all, run_length, settle_gpu_times, sim_queries,
};
use crate::query::Mode;
use crate::report::capacity::{CapacityRow, write_capacities};
use crate::report::number::counted;
use crate::report::source::Source;
use crate::report::summary::{SummaryRow, write_summaries};
use crate::report::table::fitted;
use crate::sched::{BuiltIn, PolicyFactory, PolicyKind};
use crate::sim::{Experiment, simulate};

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
    /// CPU workers
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: usize,
    /// GPUs [default: 1 where the workload has GPU times, or takes them with --gpu replay]
    #[arg(long, value_name = "N")]
    gpus: Option<usize>,
    /// Streams of each GPU, which answer queries side by side
    #[arg(long, value_name = "N", default_value_t = 1)]
    streams: usize,
    /// Whose times the GPU takes: `real`, those that were measured with the workload; `replay`, for a workload that was
    /// measured without a GPU, those of an NVIDIA H200, of these very queries where it answered them, else as a model that
    /// ships predicts them from the lists; `auto`, measured times where there are any, else no GPU
    #[arg(long, value_enum, default_value_t = GpuChoice::Auto, hide_possible_values = true, value_name = "auto|real|replay|none")]
    gpu: GpuChoice,
    /// Which of the workload's rows are asked
    #[arg(long, value_enum, default_value_t = Mode::Or)]
    mode: Mode,
    /// What policies know of costs: `model` (a tree per processor fitted to the workload, each query
    /// estimated by one that has not seen it), `oracle` (the measured times), a model file, or the name of a
    /// model that ships with Tandem
    #[arg(long, value_name = "WHAT", default_value = "model")]
    estimates: String,
    /// Where the results go
    #[arg(short, long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    #[command(flatten)]
    logs: LogArguments,
    #[command(flatten)]
    options: PolicyArguments,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_writable(&arguments.out.join("summary.csv"))?;
    arguments.options.checked()?;
    let deadline = arguments.deadline.checked()?;
    check_processors(&counts(arguments))?;
    let estimates = Estimates::named(&arguments.estimates)?;
    let (workload_name, mut workload) = named_workload_in(arguments.workload.as_deref(), arguments.mode)?;
    origin::warn_of_another(&estimates, &workload_name, &workload);
    let replayed = settle_gpu_times(&workload_name, &mut workload, arguments.gpu, wants_gpu(arguments))?;
    let machine = machine(arguments, &workload)?;
    let model = MachineModel { batches: workload.batches.batch_costs(), ..machine.clone().into() };
    let policies = arguments.options.policies(&arguments.policy, &model)?;
    let queries = sim_queries(&workload, &estimates, &machine)?;
    let n = arguments.arrivals.num_queries()?.unwrap_or_else(|| run_length(&queries, &model, deadline));
    let (arrivals, recorded_qps) = arrivals(arguments, &workload, n)?;
    let experiment = Experiment { model, queries, deadline, arrivals };
    let search = CapacitySearch::new(&experiment);
    let bound_qps = search.and_then(|search| search.bound_qps);
    let rates = rates(arguments, search.as_ref(), recorded_qps)?;
    let queries: usize = experiment.arrivals.iter().map(|arrivals| arrivals.queries.len()).sum();
    arguments.logs.check(queries.saturating_mul(policies.len() * rates.len()))?;
    let provenance = Provenance::new()
        .with_command_and_machine()
        .with("workload", &workload_name)
        .with("mode", arguments.mode)
        .with("estimates", &arguments.estimates);
    let provenance = match &replayed {
        Some(source) => provenance.with("gpu", format!("replay of {source}")),
        None => provenance,
    };

    let progress = progress_bar((policies.len() * (rates.len() * experiment.arrivals.len() + 1)) as u64);
    let factories: Vec<&dyn PolicyFactory> = policies.iter().map(|policy| policy as &dyn PolicyFactory).collect();
    let played = play_all(&experiment, &factories, &rates, &|| progress.inc(1))?;
    let summaries: Vec<SummaryRow> = played.into_iter().map(|run| SummaryRow::of(Source::Simulated, run)).collect();
    let capacities = search.map(|search| capacities(&search, &experiment, &policies, &progress));
    let capacities = capacities.transpose()?.unwrap_or_default();
    progress.finish_and_clear();

    let mut files = vec![arguments.out.join("summary.csv"), arguments.out.join("capacity.csv")];
    write_summaries(&files[0], &provenance, &summaries)?;
    write_capacities(&files[1], &provenance, &capacities)?;
    result_file("summary", &files[0]);
    result_file("capacity", &files[1]);
    let chart = arguments.out.join("delay");
    let what = origin::in_words(&workload_name, &workload.provenance, arguments.mode, replayed.is_some());
    delay_chart(&summaries, &policies, &rates, bound_qps, arguments.deadline.ms, what).write(&chart)?;
    files.extend([chart.with_extension("svg"), chart.with_extension("png")]);
    if arguments.logs.any() {
        files.extend(keep_logs(arguments, &experiment, &policies, &rates, &provenance)?);
    }
    let title = format!(
        "{workload_name}, mode {}: {} queries; {} CPU, {}; {}, {} queries each; deadline {} ms; estimates: {}{}",
        arguments.mode,
        workload.rows.len(),
        arguments.cpus,
        gpus_in_words(&experiment.model.machine),
        counted(experiment.arrivals.len(), "run", "runs"),
        experiment.arrivals[0].queries.len(),
        arguments.deadline.ms,
        arguments.estimates,
        replayed.map(|source| format!("\nNo GPU was measured: its times are {source}.")).unwrap_or_default(),
    );
    let report = report(&summaries, &capacities, &policies, &rates);
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    say(&fitted(&format!("{title}\n\n{report}\nwritten: {}\n", names.join(", "))))
}

fn progress_bar(runs: u64) -> ProgressBar {
    // Drawn only where it takes more than a moment, and only on terminals.
    let style = ProgressStyle::with_template("{bar:40} {pos}/{len} runs, {eta} left");
    let bar = ProgressBar::new(runs);
    if let Ok(style) = style {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

fn capacities(
    search: &CapacitySearch<'_>,
    experiment: &Experiment,
    policies: &[BuiltIn],
    progress: &ProgressBar,
) -> Result<Vec<CapacityRow>, Failure> {
    let row = |policy: &BuiltIn| {
        let found = search.of(policy)?;
        progress.inc(1);
        Ok(CapacityRow {
            source: Source::Simulated,
            policy: policy.name().to_owned(),
            deadline: experiment.deadline,
            low_qps: found.low_qps,
            high_qps: found.high_qps,
            bound_qps: search.bound_qps,
            flips: found.flips,
            region_qps: Some(search.region_qps),
            queries: experiment.arrivals[0].queries.len(),
            seeds: experiment.arrivals.len(),
        })
    };
    policies.iter().map(row).collect()
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
