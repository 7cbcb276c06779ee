//! JSON lines: one object on each line, with `id` (text or number), `text` and optionally `title`.
//!
//! Other fields and blank lines are ignored.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::{memchr_iter, memrchr};
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use tandem_base::files::{File, InputError, json_message, read_exact_at};
use xxhash_rust::xxh3::xxh3_64;

use super::document::{BATCH_BYTES, Document};
use super::encoding;

/// Longer lines are refused: they cannot be documents, and would have to fit into memory.
const MAX_LINE_BYTES: usize = 1 << 30;
const LINE_TOO_LONG: &str = "line is longer than 1 GiB, expected one JSON object a line";

/// Whether bytes begin like JSON lines of documents; the first line may be longer than the bytes.
pub(super) fn is_lines(start: &[u8]) -> bool {
    let first = start.trim_ascii_start();
    match memchr::memchr(b'\n', first) {
        Some(end) => serde_json::from_slice::<Record<'_>>(&first[..end]).is_ok(),
        None => {
            serde_json::from_slice::<Record<'_>>(first).is_ok() || first.starts_with(b"{\"") && first.len() > 32 << 10
        }
    }
}

pub(super) struct JsonLines {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    next_line: u64,
    /// The start of a line that continues after the last batch.
    rest: Vec<u8>,
}

impl fmt::Debug for JsonLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLines").field("path", &self.path).field("next_line", &self.next_line).finish()
    }
}

#[derive(Debug)]
pub(super) struct LineBatch {
    path: PathBuf,
    lines: LineBase,
    len: usize,
    /// The bytes of the lines; empty until they are read.
    bytes: Vec<u8>,
    /// The file, if the lines can be read again at any time.
    file: Option<Arc<File>>,
}

/// The base from which lines are counted, or bytes where documents have no lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineBase {
    /// The first line has this number.
    First(u64),
    /// The first line begins at this byte of the file, and gets the number 1.
    Offset(u64),
    /// Bytes of the text are counted from this one on, instead of lines.
    Byte(u64),
}

impl LineBase {
    pub(crate) fn first(self) -> u64 {
        match self {
            Self::First(line) | Self::Byte(line) => line,
            Self::Offset(_) => 1,
        }
    }

    /// The line number in the file at `path` of the line numbered `line` here; `None` if lines had to be counted and the
    /// file can't be read any more.
    pub(crate) fn number(self, path: &Path, line: u64) -> Option<u64> {
        match self {
            Self::First(_) | Self::Byte(_) => Some(line),
            Self::Offset(offset) => Some(lines_before(path, offset).ok()? + line),
        }
    }
}

fn lines_before(path: &Path, offset: u64) -> io::Result<u64> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?.take(offset));
    let mut lines = 0;
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(lines);
        }
        lines += memchr_iter(b'\n', bytes).count() as u64;
        let len = bytes.len();
        reader.consume(len);
    }
}

/// A plain file of JSON lines whose batches are only located. The parsing threads read them, many at a time.
#[derive(Debug)]
pub(super) struct PlainLines {
    path: PathBuf,
    file: Arc<File>,
    len: u64,
    offset: u64,
    window: Vec<u8>,
}

/// Bytes searched together for a line end.
const WINDOW_BYTES: u64 = 16 << 10;

impl PlainLines {
    pub(super) fn open(path: &Path, offset: u64) -> Result<Self, InputError> {
        let cannot = |e: io::Error| InputError::file(path, format!("cannot open: {e}"));
        let file = File::open(path).map_err(cannot)?;
        let len = file.metadata().map_err(cannot)?.len();
        Ok(Self { path: path.to_owned(), file: Arc::new(file), len, offset, window: Vec::new() })
    }

    /// Locates the next batch, with the end that [`JsonLines::next_batch`] would choose.
    pub(super) fn next_batch(&mut self) -> Result<Option<LineBatch>, InputError> {
        let start = self.offset;
        let mut end = start;
        loop {
            let from = end;
            end += BATCH_BYTES as u64;
            if end > self.len {
                end = self.len;
                break;
            }
            if let Some(newline) = self.last_newline(from, end)? {
                end = newline + 1;
                break;
            }
            if end - start >= MAX_LINE_BYTES as u64 {
                let line = LineBase::Offset(start).number(&self.path, 1).unwrap_or(1);
                return Err(InputError::line(&self.path, line, LINE_TOO_LONG));
            }
        }
        self.offset = end;
        Ok((start < end).then(|| LineBatch {
            path: self.path.clone(),
            lines: LineBase::Offset(start),
            len: (end - start) as usize,
            bytes: Vec::new(),
            file: Some(Arc::clone(&self.file)),
        }))
    }

    /// The position of the last line end in a range.
    fn last_newline(&mut self, from: u64, end: u64) -> Result<Option<u64>, InputError> {
        let mut high = end;
        while high > from {
            let low = high.saturating_sub(WINDOW_BYTES).max(from);
            self.window.resize((high - low) as usize, 0);
            let read = read_exact_at(&self.file, &mut self.window, low);
            read.map_err(|e| InputError::byte(&self.path, low, format!("cannot read: {e}")))?;
            if let Some(place) = memrchr(b'\n', &self.window) {
                return Ok(Some(low + place as u64));
            }
            high = low;
        }
        Ok(None)
    }
}

impl JsonLines {
    pub(super) fn new(path: &Path, reader: Box<dyn Read + Send>) -> Self {
        Self { path: path.to_owned(), reader, next_line: 1, rest: Vec::new() }
    }

    /// Reads [`BATCH_BYTES`] and takes their whole lines, so that the ends of batches depend on the text only.
    pub(super) fn next_batch(&mut self) -> Result<Option<LineBatch>, InputError> {
        let mut bytes = std::mem::take(&mut self.rest);
        loop {
            let wanted = BATCH_BYTES.saturating_sub(bytes.len() % BATCH_BYTES);
            bytes.reserve(wanted);
            let read = self.reader.by_ref().take(wanted as u64).read_to_end(&mut bytes);
            let read = read.map_err(|e| {
                let line = self.next_line + memchr_iter(b'\n', &bytes).count() as u64;
                InputError::line(&self.path, line, format!("cannot read: {e}"))
            })?;
            if read < wanted {
                break;
            }
            if let Some(end) = memrchr(b'\n', &bytes) {
                self.rest = bytes.split_off(end + 1);
                break;
            }
            if bytes.len() >= MAX_LINE_BYTES {
                return Err(InputError::line(&self.path, self.next_line, LINE_TOO_LONG));
            }
        }
        let first_line = self.next_line;
        self.next_line += memchr_iter(b'\n', &bytes).count() as u64;
        let (path, lines, len) = (self.path.clone(), LineBase::First(first_line), bytes.len());
        Ok((!bytes.is_empty()).then_some(LineBatch { path, lines, len, bytes, file: None }))
    }
}

impl LineBatch {
    pub(super) fn bytes(&self) -> u64 {
        self.len as u64
    }

    pub(super) fn line_base(&self) -> LineBase {
        self.lines
    }

    /// Reads the lines into `memory` unless they are there already.
    pub(super) fn load(&mut self, memory: &mut Vec<u8>) -> Result<(), InputError> {
        if let (Some(file), LineBase::Offset(offset), true) = (&self.file, self.lines, self.bytes.is_empty()) {
            self.bytes = std::mem::take(memory);
            self.bytes.resize(self.len, 0);
            let read = read_exact_at(file, &mut self.bytes, offset);
            read.map_err(|e| InputError::byte(&self.path, offset, format!("cannot read: {e}")))?;
        }
        Ok(())
    }

    /// Frees the memory if the lines can be read again.
    pub(super) fn unload(&mut self, memory: &mut Vec<u8>) {
        if self.file.is_some() && !self.bytes.is_empty() {
            *memory = std::mem::take(&mut self.bytes);
        }
    }

    pub(super) fn digest(&self) -> u64 {
        xxh3_64(&self.bytes)
    }

    pub(super) fn for_each(&self, mut visit: impl FnMut(Document<'_>)) -> Result<(), InputError> {
        let mut start = 0;
        let ends = memchr_iter(b'\n', &self.bytes).chain([self.bytes.len()]);
        for (line, end) in (self.lines.first()..).zip(ends) {
            let bytes = &self.bytes[start..end];
            start = end + 1;
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            // Lines that are not UTF-8 are decoded in their most likely encoding.
            let decoded = std::str::from_utf8(bytes).is_err().then(|| encoding::decode(bytes, None));
            let bytes = decoded.as_deref().map_or(bytes, str::as_bytes);
            if !bytes.trim_ascii_start().starts_with(b"{") {
                return Err(self.error(line, 1, "expected one JSON object a line, with `id` and `text`"));
            }
            let record: Record<'_> = serde_json::from_slice(bytes).map_err(|e| self.at(line, &e))?;
            let (mut id, mut text) = (record.id.or(record.other_id), record.text);
            if id.is_none() || text.is_none() {
                // Names in other collections are looked up only where they are needed.
                let names: OtherNames<'_> = serde_json::from_slice(bytes).unwrap_or_default();
                id = id.or(names.docid).or(names.docno).or(names.pid);
                text = text.or(names.contents).or(names.body).or(names.passage).or(names.segment);
            }
            let lacks = |name: &str| self.error(line, bytes.len() as u64, &format!("the object lacks `{name}`"));
            let id = id.ok_or_else(|| lacks("id"))?;
            let text = text.ok_or_else(|| lacks("text"))?;
            visit(Document { id: id.0, title: record.title.unwrap_or_default(), text, line: Some(line) });
        }
        Ok(())
    }

    fn at(&self, line: u64, error: &serde_json::Error) -> InputError {
        let message = format!("{} (expected one JSON object a line, with `id` and `text`)", json_message(error));
        self.error(line, error.column().max(1) as u64, &message)
    }

    fn error(&self, line: u64, column: u64, message: &str) -> InputError {
        match self.lines.number(&self.path, line) {
            Some(line) => InputError::at(&self.path, line, column, message),
            None => InputError::file(&self.path, message),
        }
    }
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow, default)]
    id: Option<Id<'a>>,
    /// The id under BEIR's name.
    #[serde(borrow, default, rename = "_id")]
    other_id: Option<Id<'a>>,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
}

/// Names of the id and the text in collections of Anserini, MS MARCO, Mr.TyDi and others.
#[derive(Default, Deserialize)]
struct OtherNames<'a> {
    #[serde(borrow, default)]
    docid: Option<Id<'a>>,
    #[serde(borrow, default)]
    docno: Option<Id<'a>>,
    #[serde(borrow, default)]
    pid: Option<Id<'a>>,
    #[serde(borrow, default)]
    contents: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    body: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    passage: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    segment: Option<Cow<'a, str>>,
}

/// A text, or the digits of a number.
pub(super) struct Id<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Id<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IdVisitor;
        impl<'de> Visitor<'de> for IdVisitor {
            type Value = Id<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an id: text or a whole number")
            }
            fn visit_borrowed_str<E>(self, id: &'de str) -> Result<Id<'de>, E> {
                Ok(Id(Cow::Borrowed(id)))
            }
            fn visit_str<E>(self, id: &str) -> Result<Id<'de>, E> {
                Ok(Id(Cow::Owned(id.to_owned())))
            }
            fn visit_u64<E>(self, id: u64) -> Result<Id<'de>, E> {
                Ok(Id(Cow::Owned(id.to_string())))
            }
            fn visit_i64<E>(self, id: i64) -> Result<Id<'de>, E> {
                Ok(Id(Cow::Owned(id.to_string())))
            }
        }
        deserializer.deserialize_any(IdVisitor)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn read(bytes: &[u8], name: &str) -> Result<Vec<(String, String, String)>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        let mut lines = JsonLines::new(&path, tandem_base::files::open_text(&path).map_err(|e| e.to_string())?);
        let mut documents = Vec::new();
        while let Some(batch) = lines.next_batch().map_err(|e| e.to_string())? {
            batch
                .for_each(|d| documents.push((d.id.into_owned(), d.title.into_owned(), d.text.into_owned())))
                .map_err(|e| e.to_string())?;
        }
        Ok(documents)
    }

    #[test]
    fn plain_and_packed_lines_read_alike() {
        let text = "{\"id\":\"a\",\"title\":\"T\",\"text\":\"x \\u00e4\",\"url\":1}\n\n{\"id\":7,\"text\":\"y\"}";
        let expected = vec![("a".into(), "T".into(), "x ä".into()), ("7".into(), String::new(), "y".into())];
        assert_eq!(read(text.as_bytes(), "c.jsonl").unwrap(), expected);
        assert_eq!(read(&zstd::encode_all(text.as_bytes(), 3).unwrap(), "c.jsonl.zst").unwrap(), expected);
        for text in ["{\"docid\":\"a\",\"contents\":\"x\"}", "{\"pid\":\"a\",\"passage\":\"x\",\"spans\":[]}"] {
            assert_eq!(read(text.as_bytes(), "c.jsonl").unwrap(), [("a".into(), String::new(), "x".into())]);
        }
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gz.write_all(text.as_bytes()).unwrap();
        assert_eq!(read(&gz.finish().unwrap(), "c.jsonl.gz").unwrap(), expected);
    }

    #[test]
    fn lines_that_are_read_later_are_cut_into_the_same_batches() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.jsonl");
        let line = |len: usize| format!("{{\"id\":{len},\"text\":\"{}\"}}\n", "x".repeat(len));
        let short: String = (0..3_000).map(line).collect();
        let long = line(5 << 20);
        let exact = "y".repeat(2 * BATCH_BYTES - 1) + "\n";
        for text in [
            short.clone(),
            short.clone() + &long + &short,
            long.clone() + long.trim_end(),
            short.clone() + "last",
            exact.clone(),
            exact + "z",
            "\n".repeat(BATCH_BYTES),
            String::new(),
        ] {
            std::fs::write(&path, &text).unwrap();
            let mut at_once = JsonLines::new(&path, tandem_base::files::open_text(&path).unwrap());
            let mut later = PlainLines::open(&path, 0).unwrap();
            let mut memory = Vec::new();
            while let Some(expected) = at_once.next_batch().unwrap() {
                let mut batch = later.next_batch().unwrap().unwrap();
                assert!(batch.bytes.is_empty() && batch.bytes() == expected.bytes());
                batch.load(&mut memory).unwrap();
                assert!(batch.bytes == expected.bytes && batch.digest() == expected.digest());
                assert_eq!(batch.lines.number(&path, 3), Some(expected.lines.first() + 2));
                batch.unload(&mut memory);
                assert_eq!((batch.bytes.len(), memory.len()), (0, expected.bytes.len()));
            }
            assert!(later.next_batch().unwrap().is_none());
        }
    }

    #[test]
    fn errors_name_line_and_column() {
        let good = "{\"id\":\"a\",\"text\":\"x\"}\n";
        for (bad, place) in [
            ("{\"id\":\"b\",\"text\":3}", "2:18"),
            ("{\"id\":\"b\"}", "2:10"),
            ("nonsense", "2:1"),
            ("[\"b\",\"x\"]", "2:1"),
            ("{\"text\":\"x\"}", "2:12"),
        ] {
            let message = read(format!("{good}{bad}\n").as_bytes(), "c.jsonl").unwrap_err();
            assert!(message.contains(&format!("c.jsonl:{place}: ")), "{message}");
            assert!(!message.contains("at line"), "{message}");
        }
        assert!(read(b"not zstd", "c.jsonl.zst").unwrap_err().contains("c.jsonl.zst:1:1: expected one JSON object"));
    }
}
