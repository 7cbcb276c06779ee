//! Collections as streams of batches.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};

use super::document::{BATCH_BYTES, Document};
use super::folder::{FileBatch, Folder};
use super::jsonl::{JsonLines, LineBatch};
use super::split::Records;
use super::trec::{self, Trec};
use super::unpack;
use super::warc::{self, Warc};
use crate::files::{InputError, open_bytes};

/// Consecutive documents of a collection, not parsed yet.
#[derive(Debug)]
pub struct Batch(Kind);

#[derive(Debug)]
enum Kind {
    Lines(LineBatch),
    Warc(Records),
    Trec(Records),
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
            Kind::Warc(records) => warc::for_each(records, visit).map(|()| 0),
            Kind::Trec(records) => trec::for_each(records, visit).map(|()| 0),
            Kind::Files(files) => files.for_each(visit),
        }
    }

    /// Says whether a batch is the same as one that was read before: of the text, or of files' names, sizes and times.
    #[must_use]
    pub fn digest(&self) -> u64 {
        match &self.0 {
            Kind::Lines(lines) => lines.digest(),
            Kind::Warc(records) | Kind::Trec(records) => records.digest(),
            Kind::Files(files) => files.digest(),
        }
    }

    /// Bytes of the lines or files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match &self.0 {
            Kind::Lines(lines) => lines.bytes(),
            Kind::Warc(records) | Kind::Trec(records) => records.bytes.len() as u64,
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
    Warc(Warc),
    Trec(Trec),
    Folder(Folder),
}

impl Collection {
    /// Opens a collection: a folder of text files, or a file (plain, `.gz` or `.zst`; `-` is the standard input) of JSON
    /// lines, WARC records or TREC documents, known by its first bytes. Compressed files are decompressed on up to
    /// `threads` threads.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn open(path: &Path, threads: usize) -> Result<Self, InputError> {
        let source = if path.is_dir() { Source::Folder(Folder::open(path)?) } else { Source::of_file(path, threads)? };
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

    /// How many bytes of text there are, where that is known before they are read.
    #[must_use]
    pub fn expected_bytes(&self) -> Option<u64> {
        let is_packed = self.path.extension().is_some_and(|extension| extension == "gz" || extension == "zst");
        match &self.source {
            Source::Folder(folder) => Some(folder.bytes()),
            _ => self.path.metadata().ok().filter(|file| file.is_file() && !is_packed).map(|file| file.len()),
        }
    }

    /// The next documents, at least one; `None` after the last.
    ///
    /// # Errors
    /// If the file system or the decompressor fails.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, InputError> {
        Ok(match &mut self.source {
            Source::Lines(lines) => lines.next_batch()?.map(|batch| Batch(Kind::Lines(batch))),
            Source::Warc(records) => records.next_batch()?.map(|batch| Batch(Kind::Warc(batch))),
            Source::Trec(documents) => documents.next_batch()?.map(|batch| Batch(Kind::Trec(batch))),
            Source::Folder(folder) => folder.next_batch().map(|batch| Batch(Kind::Files(batch))),
        })
    }
}

/// What some editors and spreadsheets put before the first line of a text file in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl Source {
    fn of_file(path: &Path, threads: usize) -> Result<Self, InputError> {
        let mut reader: Box<dyn BufRead + Send> = if path == Path::new("-") {
            Box::new(BufReader::new(std::io::stdin()))
        } else if let Some(unpacked) = unpack::open(path, threads)? {
            Box::new(BufReader::with_capacity(1 << 16, unpacked))
        } else {
            open_bytes(path)?
        };
        let mut start = Vec::new();
        let read = reader.by_ref().take(64).read_to_end(&mut start);
        read.map_err(|e| InputError::line(path, 1, format!("cannot read: {e}")))?;
        if start.starts_with(BYTE_ORDER_MARK) {
            start.drain(..BYTE_ORDER_MARK.len());
        }
        let (is_warc, is_trec) = (warc::is_warc(&start), trec::is_trec(&start));
        let reader = Box::new(Cursor::new(start).chain(reader));
        Ok(match (is_warc, is_trec) {
            (true, _) => Self::Warc(warc::open(path, reader)),
            (_, true) => Self::Trec(trec::open(path, reader)),
            _ => Self::Lines(JsonLines::new(path, reader)),
        })
    }
}
