//! Cutting a stream into batches of whole records, always at equal places.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use tandem_base::files::InputError;
use xxhash_rust::xxh3::xxh3_64;

use super::document::BATCH_BYTES;

/// Longer records are refused: they cannot be documents, and would have to fit into memory.
const MAX_RECORD_BYTES: usize = 1 << 30;

/// A stream that is cut at the ends of records.
pub(super) struct Splitter {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    /// The offset of the next batch in the text, in bytes.
    offset: u64,
    /// The start of a record that continues after the last batch.
    rest: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Records {
    path: PathBuf,
    /// The offset of the records in the text, in bytes.
    offset: u64,
    pub(super) bytes: Vec<u8>,
}

impl Records {
    /// The offset in the text of the byte at `place`.
    pub(super) fn byte(&self, place: usize) -> u64 {
        self.offset + place as u64
    }

    pub(super) fn digest(&self) -> u64 {
        xxh3_64(&self.bytes)
    }

    pub(super) fn at(&self, place: usize, what: &str) -> InputError {
        InputError::byte(&self.path, self.offset + place as u64, what)
    }
}

/// A fault's position in some bytes, and its description.
pub(super) type Fault = (usize, String);

impl fmt::Debug for Splitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Splitter").field("path", &self.path).field("offset", &self.offset).finish()
    }
}

impl Splitter {
    pub(super) fn new(path: &Path, reader: Box<dyn Read + Send>) -> Self {
        Self { path: path.to_owned(), reader, offset: 0, rest: Vec::new() }
    }

    /// Reads about [`BATCH_BYTES`] and takes the whole records among them, which `whole` determines. At the end of the
    /// stream it takes all that is left. It reads more if no record is whole. Fails if the stream can't be read,
    /// `whole` finds fault, or a record is longer than 1 GiB.
    pub(super) fn next(
        &mut self,
        whole: impl Fn(&[u8]) -> Result<usize, Fault>,
    ) -> Result<Option<Records>, InputError> {
        let mut bytes = std::mem::take(&mut self.rest);
        loop {
            let wanted = BATCH_BYTES - bytes.len() % BATCH_BYTES;
            bytes.reserve(wanted);
            let read = self.reader.by_ref().take(wanted as u64).read_to_end(&mut bytes);
            let read = read.map_err(|e| self.at(bytes.len(), &format!("cannot read: {e}")))?;
            let end = whole(&bytes).map_err(|(place, what)| self.at(place, &what))?;
            if read < wanted {
                break;
            }
            if end > 0 {
                self.rest = bytes.split_off(end);
                break;
            }
            if bytes.len() >= MAX_RECORD_BYTES {
                return Err(self.at(0, "a record is longer than 1 GiB"));
            }
        }
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        Ok((!bytes.is_empty()).then_some(Records { path: self.path.clone(), offset, bytes }))
    }

    fn at(&self, place: usize, what: &str) -> InputError {
        InputError::byte(&self.path, self.offset + place as u64, what)
    }
}
