//! Why a profile could not be made.

use crate::base::machine::Class;
use crate::query::Mode;
use crate::search::ExecError;

/// Why a profile could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// Nothing to run, or an option is out of range.
    #[error("{0}")]
    Options(String),
    /// A search failed.
    #[error("query {query}, {mode}, on {kind}: {source}")]
    Search {
        /// The query's name in its log.
        query: String,
        /// The mode.
        mode: Mode,
        /// The processor.
        kind: Class,
        /// What went wrong.
        source: ExecError,
    },
    /// A batch failed.
    #[error("a batch on {class}: {source}")]
    Batch {
        /// The processor.
        class: Class,
        /// What went wrong.
        source: ExecError,
    },
    /// Two processors found different documents or scores: one of them is wrong.
    #[error("query {query}, {mode}: {difference}")]
    Differ {
        /// The query's name in its log.
        query: String,
        /// The mode.
        mode: Mode,
        /// Where the results part.
        difference: String,
    },
}

impl ProfileError {
    /// Whether a processor does not take the query, and another may.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Search { source: ExecError::BeyondGpu { .. }, .. })
    }
}
