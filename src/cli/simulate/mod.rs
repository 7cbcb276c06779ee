//! `tandem simulate`: delay against rate, and the capacity within a deadline, for several policies.

mod inputs;
mod report;

use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;

use self::inputs::{Asked, arrivals, default_queries, machine, rates, workload};
use self::report::{delay_chart, report};
use super::output::say;
use super::{Failure, choices, estimates};
use crate::files::{Provenance, check_writable};
use crate::query::Mode;
use crate::report::capacity::{CapacityRow, write_capacities};
use crate::report::number::{self, counted};
use crate::report::source::Source;
use crate::report::summary::{SummaryRow, Tally, write_summaries};
use crate::sched::{PolicyKind, PolicyOptions};
use crate::sim::{Arrivals, Experiment, SimError, simulate};

/// Options of `simulate`.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Measured queries: a workload file, or the name of one that ships with Tandem; left out, the first of those
    #[arg(long, value_name = "FILE")]
    workload: Option<String>,
    /// For a workload that was measured without a GPU: GPU times of an NVIDIA H200, of these very queries where it
    /// answered them, else as a model that ships predicts them from the lists; output and files say so
    #[arg(long)]
    replay_gpu: bool,
    /// Policies, between commas; left out, all that the machine can run
    #[arg(long, value_name = "NAME", value_enum, value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    /// Rates in queries per second: numbers and FROM:TO:COUNT, between commas; left out, 12 from 5 % to 105 % of what
    /// any scheduler could sustain, or with --trace the rate of the trace
    #[arg(long, value_name = "QPS")]
    rate: Option<String>,
    /// Queries in a run; left out, 10 000, or more where a machine this fast needs more to last for ten deadlines
    #[arg(long, value_name = "N")]
    queries: Option<usize>,
    /// Seeds, between commas, or FIRST:LAST; one run each at every rate
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: String,
    /// Time from a query's arrival to its deadline, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500.0)]
    deadline_ms: f64,
    /// CPU workers
    #[arg(long, value_name = "N", default_value_t = 1)]
    cpus: usize,
    /// GPU streams
    #[arg(long, value_name = "N", default_value_t = 1)]
    gpus: usize,
    /// Which of the workload's rows are asked
    #[arg(long, value_enum, default_value_t = Mode::Or)]
    mode: Mode,
    /// What policies know of costs: `model` (a tree per processor fitted to the workload, each query
    /// estimated by one that has not seen it), `oracle` (the measured times), a model file, or the name of a
    /// model that ships with Tandem
    #[arg(long, value_name = "WHAT", default_value = "model")]
    estimates: String,
    /// Play the arrivals and queries of this trace file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["queries", "arrivals", "seed"])]
    trace: Option<PathBuf>,
    /// How queries arrive: poisson, bursty, uniform, or a file of recorded arrivals
    #[arg(long, value_name = "PROCESS", default_value = "poisson")]
    arrivals: String,
    /// Where the results go
    #[arg(long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    /// Write every run's log as well: log.csv, or the folder `log` for several runs
    #[arg(long)]
    log: bool,
    #[command(flatten)]
    options: PolicyOptions,
}

/// More log rows than this would fill an ordinary disk.
const MAX_LOG_ROWS: usize = 50_000_000;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_writable(&arguments.out.join("summary.csv"))?;
    let machine = machine(arguments)?;
    let policies = choices::policies(&arguments.policy, &arguments.options, &machine)?;
    let Asked { name: workload_name, workload, replayed } = workload(arguments)?;
    let queries = estimates::sim_queries(&workload, &arguments.estimates, &machine)?;
    let deadline = choices::deadline(arguments.deadline_ms)?;
    let n = arguments.queries.unwrap_or_else(|| default_queries(&queries, &machine, deadline));
    let (arrivals, recorded_qps) = arrivals(arguments, &workload, n)?;
    let experiment = Experiment { machine, queries, deadline, arrivals, options: arguments.options };
    let bound_qps = experiment.bound_qps();
    let rates = rates(arguments, &experiment, bound_qps, recorded_qps)?;
    if arguments.log {
        check_log_rows(&experiment, policies.len() * rates.len())?;
    }
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
    let summaries = summaries(&experiment, &policies, &rates, &progress)?;
    let capacities = capacities(&experiment, &policies, bound_qps, &progress)?;
    progress.finish_and_clear();

    let mut files = vec![arguments.out.join("summary.csv"), arguments.out.join("capacity.csv")];
    write_summaries(&files[0], &provenance, &summaries)?;
    write_capacities(&files[1], &provenance, &capacities)?;
    let chart = arguments.out.join("delay");
    delay_chart(&summaries, &policies, &rates, bound_qps, arguments.deadline_ms).write(&chart)?;
    files.extend([chart.with_extension("svg"), chart.with_extension("png")]);
    if arguments.log {
        files.push(write_logs(&experiment, &policies, &rates, &provenance, &arguments.out)?);
    }
    let title = format!(
        "{workload_name}, mode {}: {} queries; {} CPU, {} GPU; {}, {} queries each; deadline {} ms; estimates: {}{}",
        arguments.mode,
        workload.rows.len(),
        arguments.cpus,
        arguments.gpus,
        counted(experiment.arrivals.len(), "run", "runs"),
        experiment.arrivals[0].queries.len(),
        arguments.deadline_ms,
        arguments.estimates,
        replayed.map(|source| format!("\nNo GPU was measured: its times are {source}.")).unwrap_or_default(),
    );
    let report = report(&summaries, &capacities, &policies, &rates);
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    say(&format!("{title}\n\n{report}\nwritten: {}\n", names.join(", ")))
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

/// One row a policy, rate and seed, in this order, whichever run ends first.
fn summaries(
    experiment: &Experiment,
    policies: &[PolicyKind],
    rates: &[f64],
    progress: &ProgressBar,
) -> Result<Vec<SummaryRow>, Failure> {
    let mut runs = Vec::new();
    for &policy in policies {
        for &rate_qps in rates {
            runs.extend(experiment.arrivals.iter().map(|arrivals| (policy, rate_qps, arrivals)));
        }
    }
    let one = |&(policy, rate_qps, arrivals): &(PolicyKind, f64, &Arrivals)| {
        let tally = Tally::new(&experiment.machine, arrivals.queries.len());
        let tally = experiment.play(policy, rate_qps, arrivals, tally, |_| false)?;
        progress.inc(1);
        let row = |summary| SummaryRow {
            source: Source::Simulated,
            policy: policy.name(),
            rate_qps,
            seed: arrivals.seed,
            summary,
        };
        Ok(tally.summary().map(row))
    };
    let rows: Vec<Result<Option<SummaryRow>, SimError>> = runs.par_iter().map(one).collect();
    Ok(rows.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>()?)
}

fn capacities(
    experiment: &Experiment,
    policies: &[PolicyKind],
    bound_qps: Option<f64>,
    progress: &ProgressBar,
) -> Result<Vec<CapacityRow>, Failure> {
    let region_qps = experiment.region().map(|region| region.rate_qps);
    let Some(grid) = experiment.grid(bound_qps) else { return Ok(Vec::new()) };
    let row = |&policy: &PolicyKind| {
        let found = experiment.capacity(policy, &grid)?;
        progress.inc(1);
        Ok(CapacityRow {
            source: Source::Simulated,
            policy: policy.name(),
            deadline: experiment.deadline,
            low_qps: found.low_qps,
            high_qps: found.high_qps,
            bound_qps,
            flips: found.flips,
            region_qps,
            queries: experiment.arrivals[0].queries.len(),
            seeds: experiment.arrivals.len(),
        })
    };
    policies.iter().map(row).collect()
}

/// Refuses, before anything is simulated, logs that would fill the disk.
fn check_log_rows(experiment: &Experiment, runs: usize) -> Result<(), Failure> {
    let queries: usize = experiment.arrivals.iter().map(|arrivals| arrivals.queries.len()).sum();
    match queries.saturating_mul(runs) {
        0..=MAX_LOG_ROWS => Ok(()),
        rows => Err(Failure::input(format!(
            "--log would write {rows} rows, at most {MAX_LOG_ROWS}: name fewer rates or policies"
        ))),
    }
}

/// Writes the logs and gives the file, or the folder for several.
fn write_logs(
    experiment: &Experiment,
    policies: &[PolicyKind],
    rates: &[f64],
    provenance: &Provenance,
    out: &Path,
) -> Result<PathBuf, Failure> {
    let runs = policies.len() * rates.len();
    let is_single = runs * experiment.arrivals.len() == 1;
    for &policy in policies {
        for &rate_qps in rates {
            for arrivals in &experiment.arrivals {
                let log = simulate(experiment.run(policy, rate_qps, arrivals)?)?;
                let path = choices::log_path(out, is_single, policy, rate_qps, arrivals.seed);
                let of_run = provenance
                    .clone()
                    .with("policy", policy)
                    .with("rate_qps", number::text(rate_qps, 9))
                    .with("seed", arrivals.seed);
                log.write(&path, &of_run)?;
            }
        }
    }
    Ok(out.join(if is_single { "log.csv" } else { "log" }))
}
