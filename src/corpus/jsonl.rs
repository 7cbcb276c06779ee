//! JSON lines: one object a line, with `id` (text or number), `text` and, if there is one, `title`.
//!
//! Other fields are ignored, and so are blank lines.

use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use memchr::{memchr_iter, memrchr};
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use xxhash_rust::xxh3::xxh3_64;

use super::document::{BATCH_BYTES, Document};
use crate::files::InputError;

/// Longer lines are refused: they are no documents, and would have to fit into memory.
const MAX_LINE_BYTES: usize = 1 << 30;

/// A file of JSON lines that is being read.
pub(super) struct JsonLines {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    next_line: u64,
    /// The beginning of a line that goes on behind the last batch.
    rest: Vec<u8>,
}

impl fmt::Debug for JsonLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonLines").field("path", &self.path).field("next_line", &self.next_line).finish()
    }
}

/// Whole lines of the file.
#[derive(Debug)]
pub(super) struct LineBatch {
    path: PathBuf,
    first_line: u64,
    bytes: Vec<u8>,
}

impl JsonLines {
    pub(super) fn new(path: &Path, reader: Box<dyn Read + Send>) -> Self {
        Self { path: path.to_owned(), reader, next_line: 1, rest: Vec::new() }
    }

    /// Reads [`BATCH_BYTES`] and takes the whole lines of them: where batches end depends on nothing but the text.
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
                let message = "line is longer than 1 GiB, expected one JSON object a line";
                return Err(InputError::line(&self.path, self.next_line, message));
            }
        }
        let first_line = self.next_line;
        self.next_line += memchr_iter(b'\n', &bytes).count() as u64;
        Ok((!bytes.is_empty()).then(|| LineBatch { path: self.path.clone(), first_line, bytes }))
    }
}

impl LineBatch {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    pub(super) fn digest(&self) -> u64 {
        xxh3_64(&self.bytes)
    }

    pub(super) fn for_each(&self, mut visit: impl FnMut(Document<'_>)) -> Result<(), InputError> {
        let mut start = 0;
        let ends = memchr_iter(b'\n', &self.bytes).chain([self.bytes.len()]);
        for (line, end) in (self.first_line..).zip(ends) {
            let bytes = &self.bytes[start..end];
            start = end + 1;
            if bytes.trim_ascii().is_empty() {
                continue;
            }
            let record: Record<'_> = serde_json::from_slice(bytes).map_err(|e| self.at(line, &e))?;
            visit(Document {
                id: record.id.0,
                title: record.title.unwrap_or_default(),
                text: record.text,
                line: Some(line),
            });
        }
        Ok(())
    }

    fn at(&self, line: u64, error: &serde_json::Error) -> InputError {
        let message = error.to_string();
        // The parser saw one line only, so the place that it names is ours to tell.
        let what = message.split(" at line ").next().unwrap_or(&message);
        let message = format!("{what} (expected one JSON object a line, with `id` and `text`)");
        InputError::at(&self.path, line, error.column().max(1) as u64, message)
    }
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow)]
    id: Id<'a>,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// Text, or a number taken as its digits.
struct Id<'a>(Cow<'a, str>);

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
        let mut lines = JsonLines::new(&path, crate::files::open_text(&path).map_err(|e| e.to_string())?);
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
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gz.write_all(text.as_bytes()).unwrap();
        assert_eq!(read(&gz.finish().unwrap(), "c.jsonl.gz").unwrap(), expected);
    }

    #[test]
    fn errors_name_line_and_column() {
        let good = "{\"id\":\"a\",\"text\":\"x\"}\n";
        for (bad, place) in [("{\"id\":\"b\",\"text\":3}", "2:18"), ("{\"id\":\"b\"}", "2:10"), ("nonsense", "2:2")] {
            let message = read(format!("{good}{bad}\n").as_bytes(), "c.jsonl").unwrap_err();
            assert!(message.contains(&format!("c.jsonl:{place}: ")), "{message}");
            assert!(!message.contains("at line"), "{message}");
        }
        assert!(read(b"not zstd", "c.jsonl.zst").unwrap_err().contains("c.jsonl.zst:1: cannot read"));
    }
}
