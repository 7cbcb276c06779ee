//! How a live run ends, and why before its time.

use crate::base::ids::{ProcessorId, QueryId};
use crate::base::machine::Class;
use crate::base::time::Nanos;
use crate::sched::LawBroken;
use crate::search::ExecError;

/// How a run ended.
#[derive(Debug)]
pub enum Ending {
    /// All jobs were released and finished.
    Complete,
    /// Ctrl-C.
    Interrupted,
    /// It had failed and its backlog only grew, or it lasted too long: see [`super::LiveRun`].
    Overloaded,
    /// With an error; what was measured until then is kept.
    Failed(LiveError),
}

/// Why a live run could not be started or did not go to its end.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// An executor failed.
    #[error("query {query} on processor {processor}: {error}")]
    Executor {
        /// Which query, by its id in the workload.
        query: QueryId,
        /// Where.
        processor: ProcessorId,
        /// How.
        error: ExecError,
    },
    /// An executor gave another answer than before.
    #[error("query {query} on {class}: {difference}")]
    WrongAnswer {
        /// Which query, by its id in the workload.
        query: QueryId,
        /// Where.
        class: Class,
        /// What differs.
        difference: String,
    },
    /// A lane failed where nothing counts unless all goes well, though its fallback executor took over.
    #[error("lane {processor} failed while it was measured: {what}")]
    LaneFailed {
        /// Which.
        processor: ProcessorId,
        /// How, in words.
        what: String,
    },
    /// A lane was at one batch for too long, and nothing could go on in its place.
    #[error("lane {processor} was at one batch for more than {} s, and has no fallback executor to go on with: it is given up", .waited.as_secs())]
    LaneHangs {
        /// Which.
        processor: ProcessorId,
        /// How long it was waited for.
        waited: Nanos,
    },
    /// A worker thread is lost.
    #[error("the worker of processor {0} has panicked")]
    WorkerPanicked(ProcessorId),
    /// A job asks for a query that the lane pool does not have.
    #[error("query {0} is in the plan, not in the query file")]
    UnknownQuery(QueryId),
    /// A replayed lane has no time for a query.
    #[error("query {0} has no recorded {1} time to replay")]
    NoRecordedTime(QueryId, Class),
    /// The lane pool was given another number of lanes than its machine has processors.
    #[error("{lanes} lanes were given for a machine of {processors} processors")]
    LaneCount {
        /// How many were given.
        lanes: usize,
        /// How many there should be.
        processors: usize,
    },
    /// The policy or the driver broke a law of scheduling.
    #[error(transparent)]
    Law(#[from] LawBroken),
    /// The system gave no thread.
    #[error("cannot start a worker thread: {0}")]
    NoThread(String),
}
