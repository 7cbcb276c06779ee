//! The common parts of `capacity` and `validate`: options, the driven node, and the result files.

pub(super) mod files;
mod node;
pub(super) mod record;
pub(super) mod words;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tandem_drive::lab::{Answer, Effort, GpuChoice, Node, Question};
use tandem_engine::index::Index;
use tandem_engine::query::LogOptions;
use tandem_model::base::machine::Class;
use tandem_model::files::check_writable;
use tandem_model::sched::{BuiltIn, PolicyKind};
use tandem_model::study::short_runs;

use super::settings::SetArguments;
use crate::failure::Failure;
use crate::options::arrivals::{ProcessArguments, any_rate};
use crate::options::machine::{GpuMemoryArguments, MachineProfileArgument};
use crate::options::names::choice;
use crate::options::question::{DeadlineArgument, EffortArguments, ObjectiveArguments, SearchArguments, check_k};

/// Loads that a validation drives for delays, and those of a record, as shares of the predicted capacity.
pub(super) const LOADS: [f64; 2] = [0.5, 0.8];
const RECORDED_LOADS: [f64; 3] = [0.2, 0.5, 0.8];

/// The options of commands that drive policies live.
#[derive(Debug, clap::Args)]
pub(super) struct DrivenArguments {
    /// Workload that `profile` measured with these queries on this index [default: measured now, or by an earlier run into the
    /// same output folder]
    #[arg(long, value_name = "FILE")]
    pub(super) workload: Option<PathBuf>,
    /// Number of queries to measure for predictions, from the beginning of the log. The same number that follows is driven
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(20..))]
    limit: u32,
    #[command(flatten)]
    deadline: DeadlineArgument,
    #[command(flatten)]
    objective: ObjectiveArguments,
    #[command(flatten)]
    pub(super) search: SearchArguments,
    /// Policies, separated by commas [default: chosen by the command]
    #[arg(long, value_name = "NAME", value_parser = choice::<PolicyKind>(), value_delimiter = ',')]
    pub(super) policy: Vec<PolicyKind>,
    #[command(flatten)]
    pub(super) process: ProcessArguments,
    #[command(flatten)]
    effort: EffortArguments,
    /// Number of CPU workers [default: the cores less those of the driver and the GPUs]
    #[arg(long, value_name = "N")]
    cpus: Option<usize>,
    /// What the GPU lanes run on
    #[arg(long, value_parser = choice::<GpuChoice>(), default_value = GpuChoice::Auto.name())]
    pub(super) gpu: GpuChoice,
    /// Number of GPUs [default: all of this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    gpus: Option<u16>,
    #[command(flatten)]
    machine: MachineProfileArgument,
    /// Folder of records: the live runs are added, each with its prediction. `validate --recorded` replays them
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    #[command(flatten)]
    gpu_memory: GpuMemoryArguments,
    #[command(flatten)]
    pub(super) settings: SetArguments,
}

impl DrivenArguments {
    /// Checks options before any file is opened, and returns the question without the size of its log.
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
        let question = Question {
            deadline: self.deadline.checked()?,
            objective: self.objective.checked()?,
            process,
            seeds: self.effort.seeds()?,
            effort: self.effort.checked(usual)?,
            loads: if self.record.is_some() { RECORDED_LOADS.to_vec() } else { LOADS.to_vec() },
            log_queries: 0,
        };
        check_writable(&out.join("live_runs.csv"))?;
        Ok(question)
    }

    /// The started node, and the number of queries in the log.
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
        let simulated = found.capacities.iter();
        let rates: Vec<f64> = simulated.clone().map(|found| found.qps).collect();
        found.caveats.extend(self.process.caveat(&question.process, &rates));
        let shares = simulated.map(|found| found.covered_share);
        let time_scale = question.process.time_scale();
        let predicted = short_runs("predicted capacities are likely too high", time_scale, shares);
        let driven = found.driven.iter().flat_map(|driven| driven.runs.iter().map(|run| run.covered_share));
        let live = short_runs("rates that held live are likely too high", time_scale, driven);
        found.caveats.extend([live, predicted].into_iter().flatten());
    }

    /// The named policies, or the `usual` ones, or all that the machine can run.
    pub(super) fn policies(&self, node: &Node, usual: &[PolicyKind]) -> Result<Vec<BuiltIn>, Failure> {
        let chosen = if self.policy.is_empty() { usual } else { self.policy.as_slice() };
        self.settings.policies(chosen, node.model(), &node.lengths())
    }

    /// Prints the machine and the longest time that the answer takes.
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
            errln!("predictions and live runs use the same queries, because no others were measured");
        }
    }
}
