//! Reasons why a lab has no answer.

use tandem_engine::index::IndexError;
use tandem_engine::search::ExecError;
use tandem_model::base::ids::QueryId;
use tandem_model::files::InputError;
use tandem_model::sched::PolicyError;
use tandem_model::sim::SimError;
use tandem_model::study::StudyError;

use crate::live::LiveError;
use crate::profile::ProfileError;

/// A reason why a lab has no answer. It names the inputs of the lab, not the options of a command.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The simulated part of the work failed.
    #[error(transparent)]
    Study(Box<StudyError>),
    /// An index can't be opened or divided.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// An executor can't be made.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// Queries can't be measured.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A live run failed.
    #[error(transparent)]
    Live(#[from] LiveError),
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
    /// The live run has more queries than 32 bits can number.
    #[error("a live run of {queries} queries is too long: at most {}", u32::MAX)]
    TooManyQueries {
        /// The number of planned queries.
        queries: usize,
    },
}

macro_rules! of_study {
    ($($error:ty),*) => {$(
        impl From<$error> for LabError {
            fn from(e: $error) -> Self {
                Self::Study(Box::new(e.into()))
            }
        }
    )*};
}
of_study!(StudyError, InputError, std::io::Error, SimError, PolicyError);
