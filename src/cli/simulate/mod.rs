//! `tandem simulate`: delay against rate, and the capacity within a deadline, for several policies.

mod found;
mod inputs;
mod report;
mod simulation;

use std::path::PathBuf;

use self::found::Found;
use self::simulation::Simulation;
use super::options::{
    ArrivalArguments, ClusterArguments, DeadlineArgument, FaultArguments, MachineFileArgument, ObjectiveArguments,
    PolicyArguments,
};
use super::output::say;
use super::run_logs::LogArguments;
use super::{Failure, interrupts};
use crate::files::check_writable;
use crate::lab::GpuChoice;
use crate::query::Mode;
use crate::report::table::fitted;
use crate::sched::PolicyKind;

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

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_writable(&arguments.out.join("summary.csv"))?;
    let simulation = Simulation::new(arguments)?;
    // Until here nothing was found that an interrupt should keep.
    interrupts::catch();
    let mut found = Found::default();
    let played = found.play(&simulation);
    if found.is_empty() {
        return played;
    }
    // Whatever has failed, what was found before is kept.
    let kept = found.keep(&simulation);
    let printed = say(&fitted(&format!("{}\n{}\n", found.in_words(&simulation), kept.in_words())));
    played.and(kept.finish()).and(printed)
}
