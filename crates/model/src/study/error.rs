//! Reasons why a simulated study has no answer.

use super::Criterion;
use crate::base::ids::QueryId;
use crate::base::machine::Class;
use crate::cost::TrainError;
use crate::files::InputError;
use crate::sched::PolicyError;
use crate::sim::SimError;
use crate::traffic::Mode;

/// A reason why a simulated study has no answer. It names the inputs of the study, not the options of a command.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A file can't be read, or doesn't hold what it should.
    #[error(transparent)]
    Input(#[from] InputError),
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
    /// A machine type has too few cores for its workers.
    #[error("{0}")]
    TooFewCores(String),
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
        criterion: Box<Criterion>,
    },
}

impl From<SimError> for StudyError {
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
