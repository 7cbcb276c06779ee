//! What `capacity` and `validate` share: the node that is driven, how much is driven, and the files.

pub(super) mod files;
mod node;
pub(super) mod record;
pub(super) mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::Failure;
use super::options::{
    DeadlineArgument, GpuMemoryArguments, MachineFileArgument, ObjectiveArguments, ProcessArguments, SearchArguments,
    any_rate, check_k, check_seconds, parse_seeds,
};
use super::settings::SetArguments;
use crate::options::names::choice;
use tandem_core::base::machine::Class;
use tandem_core::files::check_writable;
use tandem_core::index::Index;
use tandem_core::lab::{Answer, Effort, GpuChoice, Node, Question, short_runs};
use tandem_core::query::LogOptions;
use tandem_core::sched::{BuiltIn, PolicyKind};

/// A live run of a day is as much as anybody asks for.
const LIVE_SECONDS_MOST: f64 = 86_400.0;

/// Loads that a validation drives for delays, and those of a record, as shares of the predicted capacity.
const LOADS: [f64; 2] = [0.5, 0.8];
const RECORDED_LOADS: [f64; 3] = [0.2, 0.5, 0.8];

/// What is driven, and how much of it.
#[derive(Debug, clap::Args)]
pub(super) struct DrivenArguments {
    /// What `profile` measured of these queries on this index; left out, what an earlier run kept in the output folder, or
    /// else they are measured now
    #[arg(long, value_name = "FILE")]
    pub(super) workload: Option<PathBuf>,
    /// Queries to measure for predictions, from the beginning of the log. As many that follow are measured too, and driven
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(20..))]
    limit: u32,
    #[command(flatten)]
    deadline: DeadlineArgument,
    #[command(flatten)]
    objective: ObjectiveArguments,
    #[command(flatten)]
    pub(super) search: SearchArguments,
    /// Policies, between commas
    #[arg(long, value_name = "NAME", value_parser = choice::<PolicyKind>(), value_delimiter = ',')]
    pub(super) policy: Vec<PolicyKind>,
    #[command(flatten)]
    pub(super) process: ProcessArguments,
    /// Seeds of the simulated arrivals, between commas, or FIRST:LAST; live runs have others
    #[arg(long, value_name = "SEEDS", default_value = "1:10")]
    seeds: String,
    /// The length of a live run [default: 10, 30 with --proof, 3 for validate]
    #[arg(long, value_name = "S")]
    live_seconds: Option<f64>,
    /// Drive five runs of 30 s at a rate that holds and at one that does not, at most 2.5 % apart
    #[arg(long)]
    proof: bool,
    /// CPU cores that work [default: all that are left beside the driver and the GPUs' lanes]
    #[arg(long, value_name = "N")]
    cpus: Option<usize>,
    /// Whether GPUs take part
    #[arg(long, value_parser = choice::<GpuChoice>(), default_value = GpuChoice::Auto.name())]
    pub(super) gpu: GpuChoice,
    /// GPUs [default: all of this machine's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    gpus: Option<u16>,
    #[command(flatten)]
    machine: MachineFileArgument,
    /// Record to which the live runs are added, each with its prediction; `validate --recorded` judges by them
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    #[command(flatten)]
    gpu_memory: GpuMemoryArguments,
    /// Print all tables: live runs, predictions, delays
    #[arg(short, long)]
    pub(super) verbose: bool,
    #[command(flatten)]
    pub(super) settings: SetArguments,
}

impl DrivenArguments {
    /// Checks what can be before anything is opened, and gives the question, whose log is not read yet.
    pub(super) fn check(&self, usual: Effort, out: &Path) -> Result<Question, Failure> {
        check_k(self.search.k)?;
        self.settings.checked()?;
        self.gpu.check()?;
        self.machine.check()?;
        record::check(self)?;
        node::wanted(self)?;
        let needs_gpu = |policy: &&PolicyKind| policy.required_classes().contains(&Class::GPU);
        if self.gpu == GpuChoice::None
            && let Some(policy) = self.policy.iter().find(needs_gpu)
        {
            return Err(Failure::input(format!(
                "policy {policy} needs a GPU, and --gpu is none: leave one of them out"
            )));
        }
        let process = self.process.process(&self.settings)?;
        any_rate(&process)?;
        let effort = if self.proof { Effort::proof() } else { usual };
        let effort = match self.live_seconds {
            Some(seconds) => {
                check_seconds(seconds, LIVE_SECONDS_MOST)
                    .map_err(|e| Failure::input(e.to_string().replace("--seconds", "--live-seconds")))?;
                effort.with_run(seconds)
            }
            None => effort,
        };
        let question = Question {
            deadline: self.deadline.checked()?,
            objective: self.objective.checked()?,
            process,
            seeds: parse_seeds(&self.seeds)?,
            effort,
            loads: if self.record.is_some() { RECORDED_LOADS.to_vec() } else { LOADS.to_vec() },
            log_queries: 0,
        };
        check_writable(&out.join("live_runs.csv"))?;
        Ok(question)
    }

    /// The node at work, and how many queries the log has.
    pub(super) fn start(
        &self,
        index: &Arc<Index>,
        log: (&Path, &LogOptions),
        out: &Path,
    ) -> Result<(Node, usize), Failure> {
        node::start(self, index, log, out)
    }

    /// Adds the limits of the answer that follow from its arrivals.
    pub(super) fn add_caveats(&self, question: &Question, found: &mut Answer) {
        let simulated = found.capacities.iter().map(|found| &found.objective);
        let rates: Vec<f64> = simulated.clone().map(|found| found.qps).collect();
        found.caveats.extend(self.process.caveat(&question.process, &rates));
        let shares = simulated.map(|found| found.covered_share);
        let time_scale = question.process.time_scale();
        let predicted = short_runs("predicted capacities are likely too high", time_scale, shares);
        let driven = found.driven.iter().flat_map(|driven| driven.runs.iter().map(|run| run.covered_share));
        let live = short_runs("rates that held live are likely too high", time_scale, driven);
        found.caveats.extend([live, predicted].into_iter().flatten());
    }

    /// The policies that are asked for, or all that the machine can run.
    pub(super) fn policies(&self, node: &Node, usual: &[PolicyKind]) -> Result<Vec<BuiltIn>, Failure> {
        let chosen = if self.policy.is_empty() { usual } else { self.policy.as_slice() };
        self.settings.policies(chosen, node.model(), &node.lengths())
    }

    /// Says what the answer is of, and how long it takes at most.
    pub(super) fn announce(&self, node: &Node, question: &Question, policies: usize) {
        let effort = &question.effort;
        let most = Duration::from_secs(20) + effort.budget * policies as u32;
        errln!("{}", words::machine(node));
        errln!(
            "live runs of {} s; this takes {:.0} s at most, and usually half of that",
            effort.run_s,
            most.as_secs_f64()
        );
        if node.driven_rows() == node.predicted_rows() {
            errln!("live runs draw from the same queries as predictions: the log has no others that were measured");
        }
    }
}
