//! Errors of reading and building indexes.

use std::io;
use std::path::PathBuf;

/// Why an index can't be read or built.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file system refused.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The message of the system.
        source: io::Error,
    },
    /// The bytes are damaged, or no index of a supported version.
    #[error("{path}: {message}", path = path.display())]
    Damaged {
        /// The index file.
        path: PathBuf,
        /// The expected and the found value, and the remedy.
        message: String,
    },
    /// The collection can't be indexed: empty, or larger than the format holds.
    #[error("{0}")]
    Collection(String),
}
