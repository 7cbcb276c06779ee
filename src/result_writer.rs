//! Writes result files. A failure of one file does not affect the others.

use std::path::{Path, PathBuf};

use super::output::result_file;
use crate::failure::Failure;

/// The files that were written, and the first failure.
#[derive(Debug)]
pub(super) struct ResultWriter {
    /// Files, in the order in which they were written.
    pub(super) files: Vec<PathBuf>,
    first: Result<(), Failure>,
}

impl ResultWriter {
    /// A writer without files.
    pub(super) fn new() -> Self {
        Self { files: Vec::new(), first: Ok(()) }
    }

    /// Adds a CSV file, with the name of its rows in the JSON document.
    pub(super) fn rows<E: Into<Failure>>(&mut self, name: &str, path: &Path, written: Result<(), E>) {
        if written.is_ok() {
            result_file(name, path);
        }
        self.files(written.map(|()| vec![path.to_owned()]));
    }

    /// Adds files of a result; CSV files also go under its name into the JSON document.
    pub(super) fn named<E: Into<Failure>>(&mut self, name: &str, written: Result<Vec<PathBuf>, E>) {
        for rows in written.iter().flatten().filter(|file| file.extension().is_some_and(|extension| extension == "csv"))
        {
            result_file(name, rows);
        }
        self.files(written);
    }

    /// Adds files without rows.
    pub(super) fn files<E: Into<Failure>>(&mut self, written: Result<Vec<PathBuf>, E>) {
        match written {
            Ok(files) => self.files.extend(files),
            Err(e) if self.first.is_ok() => self.first = Err(e.into()),
            Err(_) => {}
        }
    }

    /// The sentence that names the files.
    pub(super) fn in_words(&self) -> String {
        let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        format!("written: {}", if files.is_empty() { String::from("nothing") } else { files.join(", ") })
    }

    /// The first failure, if any.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.first
    }
}
