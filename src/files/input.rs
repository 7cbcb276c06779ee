//! Text input and its errors.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// What is wrong with an input file, and where. Lines and columns count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    /// The file, as the user named it.
    pub path: PathBuf,
    /// The line, where one is to blame.
    pub line: Option<u64>,
    /// The column, where one is to blame.
    pub column: Option<u64>,
    /// What is wrong, and what would mend it.
    pub message: String,
}

impl InputError {
    /// An error about the whole file.
    #[must_use]
    pub fn file(path: &Path, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: None, column: None, message: message.into() }
    }

    /// An error at a line.
    #[must_use]
    pub fn line(path: &Path, line: u64, message: impl Into<String>) -> Self {
        Self { line: Some(line), ..Self::file(path, message) }
    }

    /// An error at a line and column.
    #[must_use]
    pub fn at(path: &Path, line: u64, column: u64, message: impl Into<String>) -> Self {
        Self { column: Some(column), ..Self::line(path, line, message) }
    }

    /// An error at a byte, from 0, of a file that has no lines.
    #[must_use]
    pub fn byte(path: &Path, offset: u64, message: impl Into<String>) -> Self {
        Self::file(path, format!("byte {offset}: {}", message.into()))
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for InputError {}

/// Opens a text file for streaming; names that end in `.gz` or `.zst` are decompressed on the way.
///
/// # Errors
/// If the file can't be opened or is a folder.
pub fn open_text(path: &Path) -> Result<Box<dyn BufRead + Send>, InputError> {
    let cannot = |e: std::io::Error| InputError::file(path, format!("cannot open: {e}"));
    let file = File::open(path).map_err(cannot)?;
    if file.metadata().map_err(cannot)?.is_dir() {
        return Err(InputError::file(path, "is a folder, expected a file"));
    }
    Ok(match path.extension().and_then(|e| e.to_str()) {
        Some("gz") => Box::new(BufReader::with_capacity(1 << 16, flate2::read::MultiGzDecoder::new(file))),
        Some("zst") => {
            let decoder = zstd::stream::read::Decoder::new(file).map_err(cannot)?;
            Box::new(BufReader::with_capacity(1 << 16, decoder))
        }
        _ => Box::new(BufReader::with_capacity(1 << 16, file)),
    })
}
