//! Collections as streams of batches.

use std::path::{Path, PathBuf};

use super::document::{BATCH_BYTES, Document};
use super::folder::{FileBatch, Folder};
use super::jsonl::{JsonLines, LineBatch};
use crate::files::InputError;

/// Consecutive documents of a collection, not parsed yet.
#[derive(Debug)]
pub struct Batch(Kind);

#[derive(Debug)]
enum Kind {
    Lines(LineBatch),
    Files(FileBatch),
}

impl Batch {
    /// Parses the batch and calls `visit` for each of its documents, in order.
    ///
    /// Returns how many files were skipped because they are binary.
    ///
    /// # Errors
    /// If a document can't be read: where, and what is wrong with it.
    pub fn for_each(&self, visit: impl FnMut(Document<'_>)) -> Result<usize, InputError> {
        match &self.0 {
            Kind::Lines(lines) => lines.for_each(visit).map(|()| 0),
            Kind::Files(files) => files.for_each(visit),
        }
    }

    /// Says whether a batch is the same as one that was read before: of the text, or of files' names, sizes and times.
    #[must_use]
    pub fn digest(&self) -> u64 {
        match &self.0 {
            Kind::Lines(lines) => lines.digest(),
            Kind::Files(files) => files.digest(),
        }
    }

    /// Bytes of the lines or files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Kind::Lines(lines) => lines.bytes(),
            Kind::Files(files) => files.bytes(),
        }
    }
}

/// A collection that is being read.
#[derive(Debug)]
pub struct Collection {
    path: PathBuf,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Lines(JsonLines),
    Folder(Folder),
}

impl Collection {
    /// Opens a file of JSON lines (plain, `.gz` or `.zst`; `-` is the standard input) or a folder of text files.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let source =
            if path.is_dir() { Source::Folder(Folder::open(path)?) } else { Source::Lines(JsonLines::open(path)?) };
        Ok(Self { path: path.to_owned(), source })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is read, such that another collection, or another state of it, is called otherwise: where it is, and of a
    /// file how long it is and when it was written. What comes in through a pipe is known by its batches only.
    #[must_use]
    pub fn identity(&self) -> String {
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let mut identity = format!("{} batches {BATCH_BYTES}", path.display());
        if let Ok(file) = path.metadata()
            && file.is_file()
        {
            let written = file.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
            identity += &format!(" bytes {} written {}", file.len(), written.unwrap_or_default().as_nanos());
        }
        identity
    }

    /// The next documents, at least one; `None` after the last.
    ///
    /// # Errors
    /// If the file system or the decompressor fails.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, InputError> {
        Ok(match &mut self.source {
            Source::Lines(lines) => lines.next_batch()?.map(|batch| Batch(Kind::Lines(batch))),
            Source::Folder(folder) => folder.next_batch().map(|batch| Batch(Kind::Files(batch))),
        })
    }
}
