//! What can keep a lab from an answer.

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

/// Why a lab has no answer. It speaks of what it was given; how that is asked for is known to whoever asks.
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
    /// No model of its own could be fitted to a workload.
    #[error("no model could be fitted to the workload: {0}")]
    NoModel(TrainError),
    /// The machine has a class of processors that a query was not measured on.
    #[error("query {query} ({mode}) has no measured {class} time, and the machine has a {class}")]
    NotMeasured {
        /// The query.
        query: QueryId,
        /// How its terms combine.
        mode: Mode,
        /// The class.
        class: Class,
    },
    /// A model knows nothing of a class of processors that the machine has.
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
    /// A model is to estimate queries of which nothing but service times is known.
    #[error(
        "estimates {estimates}: the workload has service times only, and a model needs features of its queries (take oracle)"
    )]
    NoFeatures {
        /// What is to estimate them.
        estimates: String,
    },
    /// A workload holds no queries in a mode.
    #[error("{workload}: no queries in mode {mode} (it has {})", names(.has))]
    NoQueries {
        /// The workload.
        workload: String,
        /// The mode asked for.
        mode: Mode,
        /// Those it has.
        has: Vec<Mode>,
    },
    /// A workload was measured on another index.
    #[error("{workload}: measured on index {there}, this one is {here}")]
    OtherIndex {
        /// The workload.
        workload: String,
        /// Its index's fingerprint.
        there: String,
        /// This index's.
        here: String,
    },
    /// A workload's query is not in the log that its words should come from.
    #[error("{workload}: query {query} (number {log_id} of its log) is not in this query log")]
    NotInLog {
        /// The workload.
        workload: String,
        /// The query.
        query: QueryId,
        /// Its number in the log that was profiled.
        log_id: u32,
    },
    /// Recorded GPU times are asked for where the workload has its own.
    #[error("{workload}: holds GPU times of its own")]
    HasGpuTimes {
        /// The workload.
        workload: String,
    },
    /// A GPU is asked for whose times are unknown.
    #[error("{workload}: no GPU was measured")]
    NoGpuTimes {
        /// The workload.
        workload: String,
    },
    /// Neither CPU workers nor a GPU.
    #[error("nothing real to drive: this machine has no GPU, and there are no CPU workers")]
    NothingReal,
    /// Somebody ended it before there was anything to tell.
    #[error("interrupted before all was measured")]
    Interrupted,
    /// All queries cost nothing, alone or as part of a batch.
    #[error(
        "queries of the workload cost nothing on this machine, alone or in batches: every rate is sustained (delays are \
         simulated at rates that are named)"
    )]
    NothingToSchedule,
    /// A trace without a rate.
    #[error("{trace}: all arrivals are at time 0, so it has no rate")]
    NoRate {
        /// The trace.
        trace: String,
    },
    /// Given arrivals that are too few for any capacity.
    #[error(
        "{arrivals} arrivals are too few to tell what rate is sustained ({criterion}): a run lasts for at least a hundred \
         deadlines, and shows a hundred of the late queries that it may have"
    )]
    TooFewArrivals {
        /// How many there are.
        arrivals: usize,
        /// What is asked of a run.
        criterion: Criterion,
    },
    /// A live run of more queries than can be numbered.
    #[error("a live run of {queries} queries is too long: at most {}", u32::MAX)]
    TooManyQueries {
        /// How many it was to have.
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
