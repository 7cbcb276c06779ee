//! The ways in which a live run ends, early ones included.

use tandem_engine::search::ExecError;
use tandem_model::base::ids::{ProcessorId, QueryId};
use tandem_model::base::machine::Class;
use tandem_model::base::time::Nanos;
use tandem_model::sched::LawBroken;

/// The end of a run.
#[derive(Debug)]
pub enum Ending {
    /// All jobs were released and finished.
    Complete,
    /// Ctrl-C.
    Interrupted,
    /// The run had failed and its backlog only grew, or its oldest job grew too old: see [`super::LiveRun`].
    Overloaded,
    /// An error ended the run; the measurements until then are kept.
    Failed(LiveError),
}

/// Why a live run could not be started or did not go to its end.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// An executor failed.
    #[error("query {query} on processor {processor}: {error}")]
    Executor {
        /// The query's id in the workload.
        query: QueryId,
        /// The processor.
        processor: ProcessorId,
        /// The executor's error.
        error: ExecError,
    },
    /// An executor gave an answer that differs from an earlier one.
    #[error("query {query} on {class}: {difference}")]
    WrongAnswer {
        /// The query's id in the workload.
        query: QueryId,
        /// The processor's class.
        class: Class,
        /// The difference, in words.
        difference: String,
    },
    /// A lane failed during a measurement, which no fault may disturb, though its fallback executor took over.
    #[error("lane {processor} failed while it was measured: {what}")]
    LaneFailed {
        /// The lane.
        processor: ProcessorId,
        /// The fault, in words.
        what: String,
    },
    /// A lane was at one batch for too long and has no fallback executor.
    #[error("lane {processor} was at one batch for more than {} s, and has no fallback executor to go on with: it is given up", .waited.as_secs())]
    LaneHangs {
        /// The lane.
        processor: ProcessorId,
        /// The time that the driver waited.
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
    /// The lane pool was given a number of lanes other than its machine's number of processors.
    #[error("{lanes} lanes were given for a machine of {processors} processors")]
    LaneCount {
        /// Lanes given.
        lanes: usize,
        /// Processors of the machine.
        processors: usize,
    },
    /// The policy or the driver broke a law of scheduling.
    #[error(transparent)]
    Law(#[from] LawBroken),
    /// The system could not start a thread.
    #[error("cannot start a worker thread: {0}")]
    NoThread(String),
}
