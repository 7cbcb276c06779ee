//! `tandem capacity`: what this machine sustains, in one number, and whether it held.

mod node;
mod words;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::defaults::{Bars, warn_of_few_cores};
use super::kept::Kept;
use super::options::{
    DeadlineArgument, GpuMemoryArguments, IndexAndLog, MachineFileArgument, ObjectiveArguments, ProcessArguments,
    SearchArguments, any_rate, check_k, parse_seeds,
};
use super::settings::SetArguments;
use super::{Failure, interrupts};
use crate::options::names::choice;
use tandem_core::files::{Provenance, check_writable};
use tandem_core::lab::{Answer, GpuChoice, GpuSource, Node, Question, answer, short_runs};
use tandem_core::sched::{PolicyFactory, PolicyKind};
use tandem_report::capacity::{CapacityRow, write_capacities};
use tandem_report::table::fitted;

/// A live run of a day is as much as anybody asks for.
const LIVE_SECONDS_MOST: f64 = 86_400.0;

/// The rate that this machine sustains on an index within a deadline: one number, its interval, and whether it held.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    log: IndexAndLog,
    /// What `profile` measured of these queries on this index; left out, what an earlier run kept in the output folder, or
    /// else they are measured now
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Queries to measure, from the beginning of the log
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(20..))]
    limit: u32,
    #[command(flatten)]
    deadline: DeadlineArgument,
    #[command(flatten)]
    objective: ObjectiveArguments,
    #[command(flatten)]
    search: SearchArguments,
    /// Policies to choose from, between commas; left out, all that this machine can run
    #[arg(long, value_name = "NAME", value_parser = choice::<PolicyKind>(), value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    #[command(flatten)]
    process: ProcessArguments,
    /// Seeds of the simulated arrivals, between commas, or FIRST:LAST
    #[arg(long, value_name = "SEEDS", default_value = "1:10")]
    seeds: String,
    /// A live run takes at most so long, unless it takes a hundred deadlines: fewer queries than the objective asks for are
    /// said to be few
    #[arg(long, value_name = "S", default_value_t = 60.0)]
    live_seconds: f64,
    /// CPU cores that work [default: all that are left beside the driver and the GPUs' lanes]
    #[arg(long, value_name = "N")]
    cpus: Option<usize>,
    /// Take --cpus beyond the cores of this machine
    #[arg(long)]
    force: bool,
    /// Whether GPUs take part
    #[arg(long, value_parser = choice::<GpuChoice>(), default_value = GpuChoice::Auto.name())]
    gpu: GpuChoice,
    /// GPUs [default: all of this machine's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    gpus: Option<u16>,
    #[command(flatten)]
    machine: MachineFileArgument,
    #[command(flatten)]
    gpu_memory: GpuMemoryArguments,
    /// Where the results go
    #[arg(short, long, value_name = "DIR", default_value = "out/capacity")]
    out: PathBuf,
    #[command(flatten)]
    settings: SetArguments,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let question = check(arguments)?;
    let mut node = node::start(arguments)?;
    warn_of_few_cores(&node);
    let policies = arguments.settings.policies(&arguments.policy, node.model(), &node.lengths())?;
    let factories: Vec<&dyn PolicyFactory> = policies.iter().map(|policy| policy as &dyn PolicyFactory).collect();
    outln!("{}", words::machine(&node));
    interrupts::catch();
    let found = answer(&mut node, &factories, &question, &Bars::default())?;
    let rates: Vec<f64> = found.capacities.iter().map(|found| found.objective.qps).collect();
    let mut warnings: Vec<String> = arguments.process.caveat(&question.process, &rates).into_iter().collect();
    let shares = found.capacities.iter().map(|found| found.objective.covered_share);
    warnings.extend(short_runs("capacities are likely too high", question.process.time_scale(), shares));
    for warning in &warnings {
        outln!("\n{}", fitted(&format!("warning: {warning}")));
    }
    warnings.extend(words::warnings(&found));
    let path = arguments.out.join("capacity.csv");
    let mut kept = Kept::new();
    if !found.capacities.is_empty() {
        let refuted = found.refuted.iter().map(|(policy, at)| ("refuted", format!("{policy} {:.0} q/s", at.qps)));
        let warnings = warnings.iter().map(|warning| ("warning", warning.clone()));
        let provenance = provenance(arguments, &node, &question);
        let provenance = refuted.chain(warnings).fold(provenance, |all, (key, value)| all.with(key, value));
        kept.rows("capacity", &path, write_capacities(&path, &provenance, &rows(&found)));
    }
    outln!("\n{}", words::answer(&found, &question.objective.within(question.deadline)));
    if let Some(best) = found.capacities.first()
        && let Some(note) = arguments.process.note(&question.process, &[best.objective.qps])
    {
        outln!("{note}");
    }
    if !found.capacities.is_empty() {
        outln!("{}; took {:.0} s", kept.in_words(), started.elapsed().as_secs_f64());
    }
    kept.finish()
}

/// Checks what can be before anything is opened, and gives the question.
fn check(arguments: &Arguments) -> Result<Question, Failure> {
    check_k(arguments.search.k)?;
    arguments.settings.checked()?;
    if arguments.gpu == GpuChoice::Replay {
        return Err(Failure::input(
            "--gpu replay: recorded times say nothing of this machine; `tandem simulate --gpu replay` plays them",
        ));
    }
    arguments.gpu.check()?;
    arguments.machine.check()?;
    node::wanted(arguments)?;
    let process = arguments.process.process(&arguments.settings)?;
    any_rate(&process)?;
    let question = Question {
        deadline: arguments.deadline.checked()?,
        objective: arguments.objective.checked()?,
        process,
        seeds: parse_seeds(&arguments.seeds)?,
        live_most: live_most(arguments.live_seconds)?,
    };
    check_writable(&arguments.out.join("capacity.csv"))?;
    Ok(question)
}

fn live_most(seconds: f64) -> Result<Duration, Failure> {
    let is_usable = (0.1..=LIVE_SECONDS_MOST).contains(&seconds);
    is_usable
        .then(|| Duration::from_secs_f64(seconds))
        .ok_or_else(|| Failure::input(format!("--live-seconds is {seconds}, expected 0.1 to {LIVE_SECONDS_MOST}")))
}

/// One row a policy and objective; the best one's has its live runs.
fn rows(found: &Answer) -> Vec<CapacityRow> {
    let mut rows: Vec<CapacityRow> = Vec::new();
    for capacities in &found.capacities {
        rows.extend(capacities.iter().map(|one| CapacityRow::simulated(one.clone())));
    }
    if let Some(best) = rows.first_mut() {
        (best.live, best.held_qps) = (found.live, found.held_qps());
    }
    rows
}

fn provenance(arguments: &Arguments, node: &Node, question: &Question) -> Provenance {
    let gpu = match node.gpu() {
        GpuSource::Real(device) => device.clone(),
        _ => String::from("none"),
    };
    let provenance = Provenance::new().with_command_and_machine();
    let index = node.workload().provenance.get("index").unwrap_or_default().to_owned();
    arguments
        .gpu_memory
        .named(&arguments.settings)
        .into_iter()
        .fold(provenance, |all, memory| all.with("gpu memory", memory))
        .with("index", index)
        .with("mode", arguments.search.mode)
        .with("arrivals", arguments.process.named(&question.process))
        .with("objective", question.objective.within(question.deadline))
        .with("cpu_workers", node.machine().count(tandem_core::base::machine::Class::CPU))
        .with("gpu", gpu)
}
