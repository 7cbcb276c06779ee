//! Results that are written one after the other: what can't be written loses neither the others nor what is printed.

use std::path::{Path, PathBuf};

use super::Failure;
use super::output::result_file;

/// What was written, and the first of what could not be: the command's failure, once it has told all it has found.
#[derive(Debug)]
pub(super) struct Kept {
    /// Files, in the order in which they were written.
    pub(super) files: Vec<PathBuf>,
    first: Result<(), Failure>,
}

impl Kept {
    /// Nothing yet.
    pub(super) fn new() -> Self {
        Self { files: Vec::new(), first: Ok(()) }
    }

    /// A file of rows, under a name for them in the document of `--format json`.
    pub(super) fn rows<E: Into<Failure>>(&mut self, name: &str, path: &Path, written: Result<(), E>) {
        if written.is_ok() {
            result_file(name, path);
        }
        self.files(written.map(|()| vec![path.to_owned()]));
    }

    /// A result's files: those of rows go under its name into the document of `--format json`, too.
    pub(super) fn named<E: Into<Failure>>(&mut self, name: &str, written: Result<Vec<PathBuf>, E>) {
        for rows in written.iter().flatten().filter(|file| file.extension().is_some_and(|extension| extension == "csv"))
        {
            result_file(name, rows);
        }
        self.files(written);
    }

    /// Files that hold no rows.
    pub(super) fn files<E: Into<Failure>>(&mut self, written: Result<Vec<PathBuf>, E>) {
        match written {
            Ok(files) => self.files.extend(files),
            Err(e) if self.first.is_ok() => self.first = Err(e.into()),
            Err(_) => {}
        }
    }

    /// The files, as commands end by telling.
    pub(super) fn in_words(&self) -> String {
        let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        format!("written: {}", if files.is_empty() { String::from("nothing") } else { files.join(", ") })
    }

    /// Whether all could be written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        self.first
    }
}
