//! Errors of profiling.

use tandem_engine::search::ExecError;
use tandem_model::base::machine::Class;
use tandem_model::traffic::Mode;

/// Errors of profiling.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// There is nothing to run, or an option is out of range.
    #[error("{0}")]
    Options(String),
    /// An interrupt came before the first measurement.
    #[error("interrupted before a query was measured")]
    Interrupted,
    /// A search failed.
    #[error("query {query}, {mode}, on {kind}: {source}")]
    Search {
        /// The query's name in its log.
        query: String,
        /// The mode.
        mode: Mode,
        /// The class of processor.
        kind: Class,
        /// The cause.
        source: ExecError,
    },
    /// A batch failed.
    #[error("a batch on {class}: {source}")]
    Batch {
        /// The class of processor.
        class: Class,
        /// The cause.
        source: ExecError,
    },
    /// Two processors returned different documents or scores, so one of them is wrong.
    #[error("query {query}, {mode}: {difference}")]
    Differ {
        /// The query's name in its log.
        query: String,
        /// The mode.
        mode: Mode,
        /// The first difference of the results.
        difference: String,
    },
}

impl ProfileError {
    /// Whether one processor refuses the query, while another may take it.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Search { source: ExecError::BeyondGpu { .. }, .. })
    }
}
