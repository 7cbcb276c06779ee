//! What can keep an index from being made.

use std::path::PathBuf;

use crate::files::InputError;
use crate::index::IndexError;

/// Why a build ended without an index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The collection can't be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The index can't be made or written.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// What a build keeps on disk for a while can't be written or read, or is damaged.
    #[error("{path}: {message}", path = path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would mend it.
        message: String,
    },
    /// The system gives no threads.
    #[error("cannot start threads: {0}")]
    Threads(String),
}
