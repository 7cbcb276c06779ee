//! Reasons why a lab has no answer.

use super::Criterion;
use crate::base::ids::QueryId;
use crate::base::machine::Class;
use crate::cost::{ProfileError, TrainError};
use crate::files::InputError;
use crate::index::IndexError;
use crate::live::LiveError;
use crate::query::Mode;
use crate::sched::PolicyError;
use crate::search::ExecError;
use crate::sim::SimError;

/// A reason why a lab has no answer. It names the inputs of the lab, not the options of a command.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A file can't be read, or doesn't hold what it should.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An index can't be opened or divided.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A file can't be written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// A trace names priorities that are not given, or that have no deadlines.
    #[error("{trace}: {fault}")]
    Priorities {
        /// The trace.
        trace: String,
        /// The fault.
        fault: String,
    },
    /// An executor can't be made.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// Queries can't be measured.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A live run failed.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// A simulated run failed.
    #[error(transparent)]
    Sim(SimError),
    /// The policy doesn't fit the machine.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// No model could be fitted to the workload.
    #[error("no model could be fitted to the workload: {0}")]
    NoModel(TrainError),
    /// A query has no measured time on a class of processors that the machine has.
    #[error("query {query} ({mode}) has no measured {class} time, and the machine has a {class}")]
    NotMeasured {
        /// The query.
        query: QueryId,
        /// How its terms combine.
        mode: Mode,
        /// The class.
        class: Class,
    },
    /// A model cannot estimate costs on a class of processors that the machine has.
    #[error("{estimates}: knows nothing of {class} and mode {mode} (query {query})")]
    NoEstimate {
        /// The model.
        estimates: String,
        /// The query.
        query: QueryId,
        /// How its terms combine.
        mode: Mode,
        /// The class.
        class: Class,
    },
    /// A model would have to estimate queries without features.
    #[error(
        "estimates {estimates}: the workload has service times only, and a model needs features of its queries (take oracle)"
    )]
    NoFeatures {
        /// The name of the estimates.
        estimates: String,
    },
    /// The workload has no queries of the requested mode.
    #[error("{workload}: no queries in mode {mode} (it has {})", names(.has))]
    NoQueries {
        /// The workload.
        workload: String,
        /// The requested mode.
        mode: Mode,
        /// The modes of the workload.
        has: Vec<Mode>,
    },
    /// The workload was measured on another index.
    #[error("{workload}: measured on index {there}, this one is {here}")]
    OtherIndex {
        /// The workload.
        workload: String,
        /// The fingerprint of the workload's index.
        there: String,
        /// The fingerprint of the given index.
        here: String,
    },
    /// A query of the workload is not in the query log that should hold its words.
    #[error("{workload}: query {query} (number {log_id} of its log) is not in this query log")]
    NotInLog {
        /// The workload.
        workload: String,
        /// The query.
        query: QueryId,
        /// Its number in the profiled log.
        log_id: u32,
    },
    /// Recorded GPU times were requested, although the workload has GPU times.
    #[error("{workload}: has its own GPU times")]
    HasGpuTimes {
        /// The workload.
        workload: String,
    },
    /// The machine has a GPU, but the workload has no GPU times.
    #[error("{workload}: no GPU was measured")]
    NoGpuTimes {
        /// The workload.
        workload: String,
    },
    /// The machine has neither CPU workers nor a GPU.
    #[error("nothing real to drive: this machine has no GPU, and there are no CPU workers")]
    NothingReal,
    /// An interrupt came before the first result.
    #[error("interrupted before all was measured")]
    Interrupted,
    /// All queries have zero cost, alone or in batches.
    #[error(
        "queries of the workload cost nothing on this machine, alone or in batches: every rate is sustained (delays are \
         simulated at rates that are named)"
    )]
    NothingToSchedule,
    /// The trace has no rate, because it ends at time 0.
    #[error("{trace}: all arrivals are at time 0, so it has no rate")]
    NoRate {
        /// The trace.
        trace: String,
    },
    /// The given arrivals are too few to find a capacity.
    #[error(
        "{arrivals} arrivals are too few to tell what rate is sustained ({criterion}): a run lasts for at least a hundred \
         deadlines, and shows a hundred of the late queries that it may have"
    )]
    TooFewArrivals {
        /// The number of arrivals.
        arrivals: usize,
        /// The criterion of each run.
        criterion: Criterion,
    },
    /// The live run has more queries than 32 bits can number.
    #[error("a live run of {queries} queries is too long: at most {}", u32::MAX)]
    TooManyQueries {
        /// The number of planned queries.
        queries: usize,
    },
}

impl From<SimError> for LabError {
    fn from(e: SimError) -> Self {
        match e {
            SimError::Interrupted => Self::Interrupted,
            e => Self::Sim(e),
        }
    }
}

fn names(modes: &[Mode]) -> String {
    let names: Vec<&str> = modes.iter().map(|mode| mode.name()).collect();
    names.join(", ")
}
