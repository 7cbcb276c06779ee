//! `tandem live`: drives the real executors with the policies that `simulate` simulates.

mod node;
mod session;

use std::path::PathBuf;
use std::time::Duration;

use tandem_drive::lab::{GpuChoice, Node};
use tandem_engine::search::device::list_gpus;
use tandem_model::base::machine::{Class, PlannedFault};
use tandem_model::files::check_writable;
use tandem_model::sched::{BuiltIn, PolicyKind};
use tandem_model::sim::Arrivals;
use tandem_model::study::{Estimates, traced};
use tandem_model::traffic::{Mode, Trace};

use self::session::Session;
use super::output::say;
use super::run_logs::LogArguments;
use super::settings::SetArguments;
use super::{interrupts, pairs};
use crate::failure::Failure;
use crate::options::arrivals::{ArrivalArguments, no_rates, not_in, own_rate};
use crate::options::input::IndexAndLog;
use crate::options::machine::{FaultArguments, GpuMemoryArguments, MachineProfileArgument, workers_here};
use crate::options::names::choice;
use crate::options::priorities::{PriorityArgument, check_assigned};
use crate::options::question::{DeadlineArgument, ObjectiveArguments, check_seconds};
use tandem_report::number;

/// Drive policies on this machine's cores and GPUs, and measure delays.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem live my-index --queries log.tsv --policy stealing --rate 500\n  tandem live my-index --queries log.tsv --rate 90000 --set shed=late"
)]
pub(super) struct Arguments {
    #[command(flatten)]
    log_of_queries: IndexAndLog,
    /// Workload that `profile` measured with these queries on this index [default: some of them are measured now]
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Policies, separated by commas [default: all that the machine can run]
    #[arg(long, value_name = "NAME", value_parser = choice::<PolicyKind>(), value_delimiter = ',')]
    policy: Vec<PolicyKind>,
    /// Two policies that take turns, A B B A, on the same arrivals and queries of each seed: their differences, with intervals
    /// over the pairs of runs, at one rate and with three seeds by default
    #[arg(long, value_name = "A,B", value_parser = choice::<PolicyKind>(), value_delimiter = ',', conflicts_with_all = ["policy", "log", "perfetto"])]
    compare: Vec<PolicyKind>,
    #[command(flatten)]
    arrivals: ArrivalArguments,
    /// Length of each run in seconds
    #[arg(long, value_name = "S", default_value_t = 2.0, conflicts_with_all = ["num_queries", "trace"])]
    seconds: f64,
    #[command(flatten)]
    deadline: DeadlineArgument,
    #[command(flatten)]
    priorities: PriorityArgument,
    #[command(flatten)]
    objective: ObjectiveArguments,
    /// Number of CPU workers; the driver needs another core [default: the cores less those of the driver and the GPUs]
    #[arg(long, value_name = "N")]
    cpus: Option<usize>,
    /// What the GPU lanes run on
    #[arg(long, value_parser = choice::<GpuChoice>(), default_value = GpuChoice::Auto.name())]
    gpu: GpuChoice,
    /// Number of GPUs, from device 0 on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    gpus: u16,
    #[command(flatten)]
    gpu_memory: GpuMemoryArguments,
    /// How the terms of a query combine
    #[arg(long, value_parser = choice::<Mode>(), default_value = Mode::Or.name())]
    mode: Mode,
    /// Cost estimates that policies see, as in `simulate`
    #[arg(long, value_name = "WHAT", default_value = "model")]
    estimates: String,
    #[command(flatten)]
    machine: MachineProfileArgument,
    /// Folder of the results
    #[arg(short, long, value_name = "DIR", default_value = "out/live")]
    out: PathBuf,
    #[command(flatten)]
    logs: LogArguments,
    #[command(flatten)]
    faults: FaultArguments,
    #[command(flatten)]
    settings: SetArguments,
}

/// The largest number of queries in a run: jobs have 32-bit numbers.
const MAX_ARRIVALS: usize = u32::MAX as usize;
/// The default seeds.
const SEEDS: &str = "1";
const SEEDS_OF_PAIRS: &str = "1:3";
/// The longest run, a day.
const MAX_SECONDS: f64 = 86_400.0;
/// The default rates, as shares of the highest stable rate.
const DEFAULT_SHARES: [f64; 3] = [0.3, 0.6, 0.9];
/// Length of the warm-up before the first run, which fills caches and raises clock rates.
const WARM_UP: Duration = Duration::from_millis(500);

impl Arguments {
    /// GPUs, and streams of each.
    fn gpus_and_streams(&self) -> (usize, usize) {
        (self.gpus.into(), self.settings.streams.into())
    }
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let estimates = check(arguments)?;
    let (mut node, workload_name) = node::start(arguments, &estimates)?;
    let named = if arguments.compare.is_empty() { &arguments.policy } else { &arguments.compare };
    let policies = arguments.settings.policies(named, node.model(), &node.lengths())?;
    let path = arguments.arrivals.trace.as_deref();
    let priorities = arguments.priorities.parsed()?;
    let traced = path.map(|path| traced(path, node.workload(), priorities, not_in(arguments.mode)));
    let (traced, traced_qps) = traced.transpose()?.unzip();
    traced.iter().try_for_each(check_assigned)?;
    let own_qps = own_rate(&arguments.arrivals.process.process(&arguments.settings)?, None)?;
    let rates = arguments
        .arrivals
        .rates()?
        .or(traced_qps.or(own_qps).map(|rate_qps| vec![rate_qps]))
        .or_else(|| default_rates(node.region_qps(), !arguments.compare.is_empty()))
        .ok_or_else(no_rates)?;
    let plans = plans(arguments, &node, &rates, traced)?;
    let turns = turns(&policies, &plans, arguments)?;
    let runs = turns.len();
    check_faults(&node, runs)?;
    let longest = plans.iter().map(|plan| plan.arrivals.len()).max().unwrap_or(0);
    let keep = arguments.logs.rows_of_each(runs);
    arguments.logs.check(0)?;
    if arguments.logs.any() && longest > keep {
        errln!("logs are samples of whole batches: about {keep} of {longest} queries per run");
    }
    let seconds: f64 = turns.iter().map(|(_, plan)| plan.arrivals.len() as f64 / plan.rate_qps).sum();
    interrupts::catch();
    node.warm_up(WARM_UP)?;
    let objective = arguments.objective.checked_for(arguments.priorities.parsed()?.as_ref())?;
    let criterion = objective.within(arguments.priorities.deadline(arguments.deadline)?);
    let mut session = Session::new(arguments, criterion, node, workload_name, (runs, keep));
    say(&format!(
        "driving {}, about {:.0} s in all; Ctrl-C ends them and keeps the results so far\n",
        number::counted(runs, "run", "runs"),
        seconds
    ))?;
    let driven = session.drive_all(&turns);
    // Results so far are kept after any error. If they cannot be written, they are still printed.
    let kept = session.finish();
    driven.and(kept)
}

/// Checks options before any file is opened, and reads the estimates.
fn check(arguments: &Arguments) -> Result<Estimates, Failure> {
    let cpus = workers(arguments)?;
    if cpus == 0 && matches!(arguments.gpu, GpuChoice::None | GpuChoice::Replay) {
        return Err(Failure::input("nothing real to drive: with --cpus 0 take --gpu real, or use `tandem simulate`"));
    }
    check_seconds(arguments.seconds, MAX_SECONDS)?;
    arguments.priorities.deadline(arguments.deadline)?;
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
    arguments.machine.check()?;
    arguments.arrivals.num_queries()?;
    arguments.seeds()?;
    arguments.objective.checked_for(arguments.priorities.parsed()?.as_ref())?;
    arguments.settings.checked()?;
    // The number of lanes is not known yet.
    arguments.faults.plan(&arguments.settings, usize::MAX)?;
    let estimates = Estimates::named(&arguments.estimates)?;
    own_rate(&arguments.arrivals.process.process(&arguments.settings)?, arguments.arrivals.rates()?.as_deref())?;
    arguments.arrivals.trace.as_deref().map(Trace::read).transpose()?;
    check_writable(&arguments.out.join("summary.csv"))?;
    if !arguments.compare.is_empty() {
        pairs::of_two(&arguments.compare)?;
        pairs::one_rate(arguments.arrivals.rates()?.as_deref())?;
    }
    let rates = arguments.arrivals.rates()?.filter(|_| arguments.arrivals.trace.is_none());
    rates.into_iter().flatten().try_for_each(|rate_qps| count(arguments, rate_qps).map(|_| ()))?;
    Ok(estimates)
}

/// Refuses faults that retire an executor if there are several runs: later runs would lack it.
fn check_faults(node: &Node, runs: usize) -> Result<(), Failure> {
    let stays = |fault: &PlannedFault| !fault.kind.passes() && !node.lane_pool().is_recorded(fault.processor);
    if runs > 1
        && let Some(fault) = node.model().faults.faults.iter().find(|fault| stays(fault))
    {
        return Err(Failure::input(format!(
            "--faults: after its {} lane {} would be retired in all {runs} runs: name one policy and one rate, or --set time-warp=true",
            fault.kind, fault.processor
        )));
    }
    Ok(())
}

/// The number of CPU workers.
fn workers(arguments: &Arguments) -> Result<usize, Failure> {
    workers_here(arguments.cpus, arguments.settings.force, arguments.gpu, arguments.gpus_and_streams())
}

/// The number of queries in a run at this rate.
fn count(arguments: &Arguments, rate_qps: f64) -> Result<usize, Failure> {
    // A number that is too large saturates, and is refused below.
    let count = arguments.arrivals.num_queries.unwrap_or((rate_qps * arguments.seconds).ceil() as usize).max(1);
    if count > MAX_ARRIVALS {
        let fault = format!("{count} queries at {rate_qps} per second are too many, at most {MAX_ARRIVALS} a run");
        return Err(Failure::input(fault));
    }
    Ok(count)
}

/// Three rates, or the middle one for a comparison.
fn default_rates(region_qps: Option<f64>, only_one: bool) -> Option<Vec<f64>> {
    let shares = if only_one { &DEFAULT_SHARES[1..2] } else { &DEFAULT_SHARES };
    region_qps.map(|top| shares.iter().map(|share| number::significant(top * share, 2)).collect())
}

/// The runs in order: each policy through all plans, or both policies of a comparison in turns.
fn turns<'a>(
    policies: &'a [BuiltIn],
    plans: &'a [Plan],
    arguments: &Arguments,
) -> Result<Vec<(&'a BuiltIn, &'a Plan)>, Failure> {
    if arguments.compare.is_empty() {
        return Ok(policies.iter().flat_map(|policy| plans.iter().map(move |plan| (policy, plan))).collect());
    }
    let [a, b] = pairs::of_two(policies)?;
    Ok(plans.iter().flat_map(|plan| [a, b, b, a].map(|policy| (policy, plan))).collect())
}

impl Arguments {
    fn seeds(&self) -> Result<Vec<u64>, Failure> {
        self.arrivals.seeds(if self.compare.is_empty() { SEEDS } else { SEEDS_OF_PAIRS })
    }
}

/// One run's arrivals, which all policies share.
struct Plan {
    rate_qps: f64,
    arrivals: Arrivals,
}

fn plans(arguments: &Arguments, node: &Node, rates: &[f64], traced: Option<Arrivals>) -> Result<Vec<Plan>, Failure> {
    if let Some(arrivals) = traced {
        return Ok(rates.iter().map(|&rate_qps| Plan { rate_qps, arrivals: arrivals.clone() }).collect());
    }
    let process = arguments.arrivals.process.process(&arguments.settings)?;
    let note = arguments.arrivals.process.note(&process, rates);
    let caveat = arguments.arrivals.process.caveat(&process, rates).map(|caveat| format!("warning: {caveat}"));
    note.into_iter().chain(caveat).for_each(|note| errln!("{note}"));
    let mut plans = Vec::new();
    for &rate_qps in rates {
        let count = count(arguments, rate_qps)?;
        for seed in arguments.seeds()? {
            let drawn = vec![Arrivals::drawn(&process, seed, count, node.workload().rows.len())];
            plans.extend(arguments.priorities.assign(drawn)?.into_iter().map(|arrivals| Plan { rate_qps, arrivals }));
        }
    }
    Ok(plans)
}
