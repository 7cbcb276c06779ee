//! Errors of building an index.

use std::io;
use std::path::{Path, PathBuf};

use tandem_base::files::InputError;

use crate::index::IndexError;

/// Reasons why a build ended without an index.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The collection can't be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The index can't be made or written.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A temporary file of the build can't be written or read, or is damaged.
    #[error("{path}: {message}", path = path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// The fault, and the remedy.
        message: String,
    },
    /// The system can't start threads.
    #[error("cannot start threads: {0}")]
    Threads(String),
    /// A thread that packs lists has panicked, which is a bug of this program.
    #[error("a thread that packs lists has panicked")]
    Panicked,
}

impl BuildError {
    /// The error that a file of the build can't be used.
    pub fn of(path: &Path, what: &str, error: &io::Error) -> Self {
        Self::Run { path: path.to_owned(), message: format!("{what}: {error}") }
    }
}
