//! `tandem simulate`: delay against rate, and the capacity within a deadline, for several policies.

mod inputs;
mod simulation;

use std::path::PathBuf;

use tandem_drive::lab::GpuChoice;
use tandem_drive::live;
use tandem_model::files::{Provenance, check_writable};
use tandem_model::sched::PolicyKind;
use tandem_model::sim::simulate;
use tandem_model::study::{Comparison, Gap, PolicyResults, gaps, in_pieces, paired};
use tandem_model::traffic::Mode;

use self::simulation::Simulation;
use super::defaults::Bars;
use super::output::{is_verbose, result, say, say_screen};
use super::result_writer::ResultWriter;
use super::run_logs::{KeptRuns, LogArguments};
use super::settings::SetArguments;
use super::{interrupts, origin, pairs};
use crate::failure::Failure;
use crate::options::arrivals::ArrivalArguments;
use crate::options::machine::{ClusterArguments, FaultArguments, MachineProfileArgument};
use crate::options::names::choice;
use crate::options::priorities::PriorityArgument;
use crate::options::question::{DeadlineArgument, ObjectiveArguments};
use tandem_report::gap::{gap_table, write_gaps};
use tandem_report::policies::{tables, write};

/// A part of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Part {
    /// The highest rate that each policy sustains
    Capacity,
    /// The delays of queries at each rate
    Delays,
    /// A figure of these delays, delay.svg
    Plot,
    /// The delays against bounds that hold for any schedule
    Gap,
}

/// Simulate policies: the highest rate within a deadline, and delay by rate.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem simulate\n  tandem simulate --workload mine.csv --gpus 0 --cpus 16 --deadline-ms 200\n  tandem simulate --policy stealing,mct --rate 10000:90000:9 --what delays"
)]
pub(super) struct Arguments {
    /// Measured queries: a workload file, a table of service times with a column such as `cpu_us`, `took` or
    /// `latency_ms` (docs/guide/files.md), or the name of a shipped workload [default: the shipped Wikipedia slice]
    #[arg(long, value_name = "FILE")]
    workload: Option<String>,
    /// Policies, separated by commas [default: gpu-only, cpu-only, best-of, stealing and combined, or those that the machine can
    /// run; without GPU cpu-only, which serves queries first come, first served, and what others would gain]
    #[arg(long, value_name = "NAME", value_parser = choice::<PolicyKind>(), value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    /// Two policies that are played on the same arrivals and queries: their differences, with intervals over seeds
    #[arg(long, value_name = "A,B", value_parser = choice::<PolicyKind>(), value_delimiter = ',', conflicts_with_all = ["policy", "what"])]
    compare: Vec<PolicyKind>,
    #[command(flatten)]
    arrivals: ArrivalArguments,
    #[command(flatten)]
    deadline: DeadlineArgument,
    #[command(flatten)]
    priorities: PriorityArgument,
    #[command(flatten)]
    objective: ObjectiveArguments,
    /// Results to compute
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',', default_values_t = [Part::Capacity, Part::Delays, Part::Plot])]
    what: Vec<Part>,
    /// Number of CPU workers [default: if the workload was measured on this machine, its cores less those of the driver and
    /// the GPUs; else 1]
    #[arg(long, value_name = "N")]
    cpus: Option<usize>,
    /// Number of GPUs [default: 1 if the workload has GPU times or --gpu is replay]
    #[arg(long, value_name = "N")]
    gpus: Option<usize>,
    /// Streams of each GPU, which answer queries concurrently
    #[arg(long, value_name = "N", default_value_t = 1)]
    streams: usize,
    #[command(flatten)]
    cluster: ClusterArguments,
    /// Source of GPU times. `real`: measured with the workload. `replay`, for a workload without GPU times: recorded on an
    /// NVIDIA H200 for the same queries, else predicted by a shipped model. `auto`: measured times if there are any, else no GPU
    #[arg(long, value_parser = choice::<GpuChoice>(), default_value = GpuChoice::Auto.name(), hide_possible_values = true, value_name = "auto|real|replay|none")]
    gpu: GpuChoice,
    /// How the terms of a query combine; selects rows of the workload [default: its only mode, else or]
    #[arg(long, value_parser = choice::<Mode>())]
    mode: Option<Mode>,
    /// Cost estimates that policies see: `model` (boosted trees fitted to the workload; each query is estimated by a model that
    /// was fitted without it, or a column `predicted_us` if there is one), other kinds of model likewise (`cart`, `lengths`, `m5`,
    /// `work`), `oracle` (the measured times), a model file, or the name of a shipped model. A table of service times
    /// without predictions always uses `oracle`
    #[arg(long, value_name = "WHAT", default_value = "model")]
    estimates: String,
    #[command(flatten)]
    machine: MachineProfileArgument,
    #[command(flatten)]
    faults: FaultArguments,
    /// Folder of the results
    #[arg(short, long, value_name = "DIR", default_value = "out")]
    out: PathBuf,
    #[command(flatten)]
    logs: LogArguments,
    #[command(flatten)]
    settings: SetArguments,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_writable(&arguments.out.join("summary.csv"))?;
    let simulation = Simulation::new(arguments)?;
    // Before this line, an interrupt has no results to keep.
    interrupts::catch();
    if !arguments.compare.is_empty() {
        return compare(&simulation);
    }
    let headed = simulation.say_title();
    let mut results = PolicyResults::default();
    let played = simulation.comparison.play(&mut results, &Bars::quiet()).map_err(Failure::from);
    if results.is_empty() {
        return played;
    }
    // Results found before a failure are kept.
    let gaps = if arguments.what.contains(&Part::Gap) { gaps(&simulation.comparison, &results) } else { Vec::new() };
    let mut tables = tables(&simulation.comparison, &results, is_verbose());
    if !gaps.is_empty() {
        tables.push_str(&gap_table(&gaps));
    }
    let mut notes = simulation.notes(&results);
    if let Some(peak) = simulation.peak()? {
        result("peak", peak.json());
        notes.push_str(&format!("{}\n\n", peak.words()));
    }
    let kept = keep(&simulation, &mut results, &gaps);
    let printed = say_screen(&format!("{notes}{tables}"), "the folder of results");
    let named = say(&format!("\n{}\n", kept.in_words()));
    played.and(kept.finish()).and(headed).and(printed).and(named)
}

/// Writes the results. If a file can't be written, the others still are.
fn keep(simulation: &Simulation<'_>, results: &mut PolicyResults, gaps: &[Gap]) -> ResultWriter {
    let Simulation { arguments, workload_name, workload, replayed, comparison, .. } = simulation;
    let caveats = simulation.caveats(results);
    let provenance = caveats.iter().fold(simulation.provenance(), |all, caveat| all.with("warning", caveat));
    result("warnings", [caveats, simulation.other_queries(), comparison.warnings(results)].concat());
    let origin = origin::in_words(workload_name, &workload.provenance, workload.mode(), replayed.is_some());
    let origin = arguments.what.contains(&Part::Plot).then_some(origin.as_str());
    let mut kept = ResultWriter::new();
    for (name, files) in write(comparison, results, &arguments.out, &provenance, origin) {
        kept.named(name, files);
    }
    if !gaps.is_empty() {
        let path = arguments.out.join("gap.csv");
        kept.rows("gap", &path, write_gaps(&path, &provenance, gaps));
    }
    if arguments.logs.any() {
        kept.files(keep_logs(simulation, results, &provenance));
    }
    kept
}

/// Simulates every run again for its log, up to an interrupt, and returns the files.
fn keep_logs(
    simulation: &Simulation<'_>,
    results: &mut PolicyResults,
    provenance: &Provenance,
) -> Result<Vec<PathBuf>, Failure> {
    let Simulation { arguments, comparison, .. } = simulation;
    let (policies, experiment) = (&comparison.policies, &comparison.experiment);
    let num_runs = policies.len() * results.rates_qps.len() * experiment.arrivals.len();
    let mut kept = KeptRuns::new(&arguments.logs, &arguments.out, num_runs == 1);
    for policy in policies {
        for &rate_qps in &results.rates_qps {
            for arrivals in &experiment.arrivals {
                if live::interrupted() {
                    results.notes.push(String::from("interrupted: the logs of some runs are missing"));
                    return kept.finish(provenance);
                }
                let arrivals = &comparison.arrivals_at(arrivals, rate_qps);
                let log = simulate(experiment.run(policy.as_ref(), rate_qps, arrivals)?)?;
                let run = (policy.name(), rate_qps, arrivals.seed);
                kept.keep(run, provenance, &log, |path, of_run| log.write(path, of_run))?;
            }
        }
    }
    kept.finish(provenance)
}

/// Plays the pair, and prints and writes its differences.
fn compare(simulation: &Simulation<'_>) -> Result<(), Failure> {
    let Comparison { experiment, policies, objective, length, rates_qps, .. } = &simulation.comparison;
    let pair = pairs::of_two(policies)?.map(AsRef::as_ref);
    let rate_qps = pairs::one_rate(rates_qps.as_deref())?;
    let headed = simulation.say_title();
    let pieces = 3 * experiment.arrivals.len();
    let found = in_pieces(&Bars::quiet(), "pairs", pieces, |done| {
        paired(experiment, (*objective, *length), pair, rate_qps, done)
    })?;
    let mut kept = ResultWriter::new();
    let names = pair.map(|policy| policy.name());
    pairs::write(&mut kept, &simulation.arguments.out, &simulation.provenance(), names, &found);
    let printed = say_screen(&pairs::table(names, &found, "seed"), "the folder of results");
    let named = say(&format!("\n{}\n", kept.in_words()));
    kept.finish().and(headed).and(printed).and(named)
}
