//! Collections as streams of batches.

use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tandem_base::files::{InputError, open_bytes, open_stdin, packing_of, unpacked};

use super::document::{BATCH_BYTES, Document};
use super::folder::{FileBatch, Folder};
use super::jsonl::{self, JsonLines, LineBase, LineBatch, PlainLines};
use super::split::Records;
use super::trec::{self, Trec};
use super::warc::{self, Warc};
use super::{Skipped, encoding, unpack};

/// Consecutive documents of one file or folder of a collection, not parsed yet.
#[derive(Debug)]
pub struct Batch {
    file: u32,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Lines(LineBatch),
    Warc(Records),
    Trec(Records),
    Files(FileBatch),
}

impl Batch {
    /// The number of its file or folder in the collection, from 0.
    pub fn file(&self) -> u32 {
        self.file
    }

    /// Parses the batch and calls `visit` for each of its documents, in order.
    ///
    /// Returns what was skipped. Fails if a document can't be read: with its place and the problem.
    pub fn for_each(&self, visit: impl FnMut(Document<'_>)) -> Result<Skipped, InputError> {
        match &self.kind {
            Kind::Lines(lines) => lines.for_each(visit).map(|()| Skipped::default()),
            Kind::Warc(records) => warc::for_each(records, visit),
            Kind::Trec(records) => trec::for_each(records, visit).map(|()| Skipped::default()),
            Kind::Files(files) => files.for_each(visit),
        }
    }

    /// A digest of the text, or of files' names, sizes and times, by which a batch read again is compared.
    pub fn digest(&self) -> u64 {
        match &self.kind {
            Kind::Lines(lines) => lines.digest(),
            Kind::Warc(records) | Kind::Trec(records) => records.digest(),
            Kind::Files(files) => files.digest(),
        }
    }

    /// Reads the text into `memory` if it was deferred, before the batch is parsed or its digest taken. Fails if it
    /// can't be read.
    pub(crate) fn load(&mut self, memory: &mut Vec<u8>) -> Result<(), InputError> {
        match &mut self.kind {
            Kind::Lines(lines) => lines.load(memory),
            Kind::Warc(_) | Kind::Trec(_) | Kind::Files(_) => Ok(()),
        }
    }

    /// Frees memory if the text can be [loaded](Self::load) again.
    pub(crate) fn unload(&mut self, memory: &mut Vec<u8>) {
        if let Kind::Lines(lines) = &mut self.kind {
            lines.unload(memory);
        }
    }

    /// The base of its documents' lines or bytes, if these are counted.
    pub fn line_base(&self) -> Option<LineBase> {
        match &self.kind {
            Kind::Lines(lines) => Some(lines.line_base()),
            Kind::Warc(records) | Kind::Trec(records) => Some(LineBase::Byte(records.byte(0))),
            Kind::Files(_) => None,
        }
    }

    /// Bytes of the lines or files.
    pub fn bytes(&self) -> u64 {
        match &self.kind {
            Kind::Lines(lines) => lines.bytes(),
            Kind::Warc(records) | Kind::Trec(records) => records.bytes.len() as u64,
            Kind::Files(files) => files.bytes(),
        }
    }
}

/// A collection that is being read, one file or folder after another.
#[derive(Debug)]
pub struct Collection {
    paths: Vec<PathBuf>,
    first: u32,
    at: usize,
    source: BatchSource,
    threads: usize,
    /// Bytes that threads may decompress ahead of the reader.
    most_ahead: Arc<AtomicUsize>,
    is_deferred: bool,
    found: String,
    may_repeat: bool,
}

/// Default limit of the bytes that each thread decompresses ahead of the reader: a third of a frame of 100 MB. Frames
/// near the reader get more, distant ones less.
const AHEAD_BYTES_PER_THREAD: usize = 32 << 20;

#[derive(Debug)]
enum BatchSource {
    Lines(JsonLines),
    PlainLines(PlainLines),
    Warc(Warc),
    Trec(Trec),
    Folder(Folder),
}

impl Collection {
    /// Opens a collection: a file (plain, in gzip or in zstd; `-` is the standard input) of JSON lines, WARC records or
    /// TREC documents, recognised by its first bytes; or a folder of such files, or of text files. Up to `threads`
    /// threads decompress files. Fails if it can't be read.
    pub fn open(path: &Path, threads: usize) -> Result<Self, InputError> {
        Self::open_all(vec![path.to_owned()], threads)
    }

    /// Opens several files or folders as one collection, in this order. Fails if there is none, or the first can't be
    /// read.
    pub fn open_all(paths: Vec<PathBuf>, threads: usize) -> Result<Self, InputError> {
        let (paths, notes) = expanded(paths)?;
        let first = paths.first().ok_or_else(|| InputError::file(Path::new(""), "expected a file or folder"))?;
        let most_ahead = Arc::new(AtomicUsize::new(threads * AHEAD_BYTES_PER_THREAD));
        let source = BatchSource::open(first, threads, &most_ahead, false)?;
        let found = found(&source, &paths, &notes);
        Ok(Self { paths, first: 0, at: 0, source, threads, most_ahead, is_deferred: false, found, may_repeat: false })
    }

    /// Opens bytes that were read from `path`, the collection's file of this number. Fails if they can't be read.
    pub fn of_bytes(path: &Path, number: u32, bytes: Vec<u8>) -> Result<Self, InputError> {
        let source = BatchSource::of_reader(path, unpacked(path, Cursor::new(bytes))?, false)?;
        let paths = vec![path.to_owned()];
        let (most_ahead, found) = (Arc::default(), String::new());
        Ok(Self {
            paths,
            first: number,
            at: 0,
            source,
            threads: 1,
            most_ahead,
            is_deferred: false,
            found,
            may_repeat: false,
        })
    }

    /// Limits the bytes that threads decompress ahead of the reader from now on; each thread may hold another megabyte or
    /// two.
    pub(crate) fn limit_ahead(&self, bytes: usize) {
        self.most_ahead.fetch_min(bytes, Ordering::Relaxed);
    }

    /// Locates batches of plain files of lines from now on, without reading them. Their users must [load](Batch::load)
    /// them, and lines of documents are relative to their [base](Batch::line_base). It must be called before the first
    /// batch. Fails if the first file can't be read.
    pub(crate) fn defer_reading(&mut self) -> Result<(), InputError> {
        self.is_deferred = true;
        let path = &self.paths[self.at];
        if matches!(self.source, BatchSource::Lines(_)) && is_plain(path) {
            self.source = BatchSource::open(path, self.threads, &self.most_ahead, true)?;
        }
        Ok(())
    }

    /// The form of the collection in words, before its text is read.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// Allows several documents with one id, which the indexer must then tell apart.
    pub fn allow_repeated_ids(&mut self) {
        self.may_repeat = true;
    }

    /// Whether several documents may have one id.
    pub fn may_repeat(&self) -> bool {
        self.may_repeat
    }

    /// Its files and folders; a folder of collections is replaced by its files.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// An identity that differs for another collection or another state of it: paths, with lengths and times of files.
    /// Input from a pipe is identified by its batches only.
    pub fn identity(&self) -> String {
        let mut identity = format!("batches {BATCH_BYTES}");
        for path in &self.paths {
            let path = path.canonicalize().unwrap_or_else(|_| path.clone());
            identity += &format!(" {}", path.display());
            if let Ok(file) = path.metadata()
                && file.is_file()
            {
                let written = file.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
                identity += &format!(" bytes {} written {}", file.len(), written.unwrap_or_default().as_nanos());
            }
        }
        identity
    }

    /// Bytes of text, if known before they are read.
    pub fn expected_bytes(&self) -> Option<u64> {
        let of = |(number, path): (usize, &PathBuf)| match &self.source {
            BatchSource::Folder(folder) if number == self.at => Some(folder.bytes()),
            _ => path.metadata().ok().filter(|_| is_plain(path)).map(|file| file.len()),
        };
        self.paths.iter().enumerate().map(of).sum()
    }

    /// The next documents, at least one; `None` after the last. Fails if the file system or the decompressor fails.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, InputError> {
        loop {
            let kind = match &mut self.source {
                BatchSource::Lines(lines) => lines.next_batch()?.map(Kind::Lines),
                BatchSource::PlainLines(lines) => lines.next_batch()?.map(Kind::Lines),
                BatchSource::Warc(records) => records.next_batch()?.map(Kind::Warc),
                BatchSource::Trec(documents) => documents.next_batch()?.map(Kind::Trec),
                BatchSource::Folder(folder) => folder.next_batch().map(Kind::Files),
            };
            if let Some(kind) = kind {
                return Ok(Some(Batch { file: self.first + self.at as u32, kind }));
            }
            let Some(path) = self.paths.get(self.at + 1) else { return Ok(None) };
            self.source = BatchSource::open(path, self.threads, &self.most_ahead, self.is_deferred)?;
            self.at += 1;
        }
    }
}

/// A mark that some editors and spreadsheets put before the first line of a text file in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether `path` is a file whose bytes are the text: no compressed file, pipe or folder.
fn is_plain(path: &Path) -> bool {
    path.is_file() && packing_of(path).is_none()
}

/// Files of a folder that are examined to determine its form.
const SNIFFED_FILES: usize = 256;

/// Replaces folders of collections by their files; also describes the contents of folders in words.
fn expanded(paths: Vec<PathBuf>) -> Result<(Vec<PathBuf>, Vec<String>), InputError> {
    let (mut all, mut notes) = (Vec::new(), Vec::new());
    for path in paths {
        if !path.is_dir() {
            all.push(path);
            continue;
        }
        let folder = Folder::open(&path)?;
        let files: Vec<&Path> = folder.paths().collect();
        notes.extend(folder.notes.iter().map(|note| format!("{}: {note}", path.display())));
        let sample = files.iter().step_by(files.len().div_ceil(SNIFFED_FILES).max(1));
        let sniffed = sample.map(|file| Form::of_file(file)).collect::<Result<Vec<_>, _>>()?;
        let texts = sniffed.iter().filter(|form| **form == Some(Form::Other)).count();
        let collections = sniffed.iter().filter(|form| form.is_some_and(|form| form != Form::Other)).count();
        if collections == 0 {
            all.push(path);
            continue;
        }
        // A few other files may explain the collections.
        if texts > collections.max(3) {
            let message = format!(
                "{texts} text files and {collections} collections (JSON lines, TREC or WARC) among {} files: name those that are meant",
                sniffed.len()
            );
            return Err(InputError::file(&path, message));
        }
        let mut others = 0;
        for file in files {
            match Form::of_file(file)? {
                Some(Form::Other) | None => others += 1,
                Some(_) => all.push(file.to_owned()),
            }
        }
        if others > 0 {
            notes.push(format!("{}: {others} other files left out", path.display()));
        }
    }
    Ok((all, notes))
}

fn found(source: &BatchSource, paths: &[PathBuf], notes: &[String]) -> String {
    let form = match source {
        BatchSource::Lines(_) | BatchSource::PlainLines(_) => "JSON lines",
        BatchSource::Warc(_) => "WARC",
        BatchSource::Trec(_) => "TREC documents",
        BatchSource::Folder(_) => "text files",
    };
    let number = match source {
        BatchSource::Folder(folder) => format!("{} ", folder.paths().count()),
        _ => String::new(),
    };
    let more = if paths.len() > 1 { format!(" and {} more", paths.len() - 1) } else { String::new() };
    let first = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
    let whole = format!("{first}{more}: {number}{form}");
    std::iter::once(whole).chain(notes.iter().cloned()).collect::<Vec<_>>().join("; ")
}

/// The form of a file, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Warc,
    Trec,
    JsonLines,
    /// Text of any other form.
    Other,
}

/// Bytes examined to determine the form of a file in a folder.
const FORM_BYTES: u64 = 64 << 10;

impl Form {
    /// The form of a file after decompression; `None` if it is binary.
    fn of_file(path: &Path) -> Result<Option<Self>, InputError> {
        let mut start = Vec::new();
        let read = open_bytes(path)?.take(FORM_BYTES).read_to_end(&mut start);
        // A file that can't be decompressed is no text.
        if read.is_err() || start.contains(&0) && !encoding::is_utf16(&start) {
            return Ok(None);
        }
        Ok(Some(Self::of(&start)))
    }

    fn of(start: &[u8]) -> Self {
        let start = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
        if warc::is_warc(start) {
            Self::Warc
        } else if trec::is_trec(start) {
            Self::Trec
        } else if jsonl::is_lines(start) {
            Self::JsonLines
        } else {
            Self::Other
        }
    }
}

impl BatchSource {
    fn open(path: &Path, threads: usize, most_ahead: &Arc<AtomicUsize>, is_deferred: bool) -> Result<Self, InputError> {
        if path.is_dir() {
            return Ok(Self::Folder(Folder::open(path)?));
        }
        let reader: Box<dyn BufRead + Send> = if path == Path::new("-") {
            unpacked(path, open_stdin().map_err(|e| InputError::file(path, format!("cannot read: {e}")))?)?
        } else if let Some(unpacked) = unpack::open(path, threads, most_ahead)? {
            Box::new(BufReader::with_capacity(1 << 16, unpacked))
        } else {
            open_bytes(path)?
        };
        Self::of_reader(path, reader, is_deferred && is_plain(path))
    }

    /// Recognises the form of `reader` by its first bytes. Lines of a plain file at `path` can be read later.
    fn of_reader(path: &Path, mut reader: Box<dyn BufRead + Send>, is_deferred: bool) -> Result<Self, InputError> {
        let mut start = Vec::new();
        let read = reader.by_ref().take(64).read_to_end(&mut start);
        read.map_err(|e| InputError::line(path, 1, format!("cannot read: {e}")))?;
        let mark_bytes = if start.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        start.drain(..mark_bytes);
        let (is_warc, is_trec) = (warc::is_warc(&start), trec::is_trec(&start));
        let reader = Box::new(Cursor::new(start).chain(reader));
        Ok(match (is_warc, is_trec) {
            (true, _) => Self::Warc(warc::open(path, reader)),
            (_, true) => Self::Trec(trec::open(path, reader)),
            _ if is_deferred => Self::PlainLines(PlainLines::open(path, mark_bytes as u64)?),
            _ => Self::Lines(JsonLines::new(path, reader)),
        })
    }
}
