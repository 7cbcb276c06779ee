//! What can keep an index from being made.

use std::io;
use std::path::{Path, PathBuf};

use crate::files::InputError;
use crate::index::IndexError;

/// Why a build ended without an index.
#[derive(Debug, thiserror::Error)]
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
    /// A thread that packs lists has panicked, and said why: a mistake of this program's.
    #[error("a thread that packs lists has panicked")]
    Panicked,
}

impl BuildError {
    /// That a file of the build can't be used.
    pub fn of(path: &Path, what: &str, error: &io::Error) -> Self {
        Self::Run { path: path.to_owned(), message: format!("{what}: {error}") }
    }
}
