//! Sequences of 32-bit numbers: a length, then that many numbers.

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::files::{File, InputError};

pub(super) const NUMBER_BYTES: u64 = 4;

#[derive(Debug)]
pub(super) struct SequenceFile {
    reader: BufReader<File>,
    path: PathBuf,
    offset: u64,
    len: u64,
    bytes: Vec<u8>,
}

impl SequenceFile {
    pub(super) fn open(path: &Path) -> Result<Self, InputError> {
        let cannot = |e: std::io::Error| InputError::file(path, format!("cannot open: {e}"));
        let file = File::open(path).map_err(cannot)?;
        let metadata = file.metadata().map_err(cannot)?;
        if metadata.is_dir() {
            return Err(InputError::file(path, "is a folder, expected a file"));
        }
        let len = metadata.len();
        if !len.is_multiple_of(NUMBER_BYTES) {
            let message = format!("{len} bytes, expected 32-bit numbers: a multiple of 4 (truncated?)");
            return Err(InputError::file(path, message));
        }
        let reader = BufReader::with_capacity(1 << 16, file);
        Ok(Self { reader, path: path.to_owned(), offset: 0, len, bytes: Vec::new() })
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.offset == self.len
    }

    pub(super) fn error(&self, offset: u64, message: impl Into<String>) -> InputError {
        InputError::byte(&self.path, offset, message)
    }

    /// Reads a sequence's length, and checks that the rest of the file can hold it.
    pub(super) fn length(&mut self) -> Result<u32, InputError> {
        let offset = self.offset;
        if self.is_at_end() {
            return Err(self.error(offset, "the file ends, expected another sequence (truncated?)"));
        }
        let mut bytes = [0; NUMBER_BYTES as usize];
        self.reader.read_exact(&mut bytes).map_err(|e| self.error(offset, format!("cannot read: {e}")))?;
        self.offset += NUMBER_BYTES;
        let length = u32::from_le_bytes(bytes);
        let left = (self.len - self.offset) / NUMBER_BYTES;
        if u64::from(length) > left {
            let message = format!("a sequence of {length} numbers where {left} are left (truncated?)");
            return Err(self.error(offset, message));
        }
        Ok(length)
    }

    pub(super) fn read(&mut self, numbers: &mut Vec<u32>) -> Result<(), InputError> {
        let length = self.length()?;
        let bytes = length as usize * NUMBER_BYTES as usize;
        self.bytes.resize(bytes, 0);
        self.reader
            .read_exact(&mut self.bytes)
            .map_err(|e| InputError::byte(&self.path, self.offset, format!("cannot read: {e}")))?;
        self.offset += bytes as u64;
        numbers.clear();
        numbers.extend(self.bytes.as_chunks().0.iter().map(|&number| u32::from_le_bytes(number)));
        Ok(())
    }

    pub(super) fn skip(&mut self) -> Result<(), InputError> {
        let bytes = u64::from(self.length()?) * NUMBER_BYTES;
        self.reader
            .seek_relative(bytes as i64)
            .map_err(|e| InputError::byte(&self.path, self.offset, format!("cannot read: {e}")))?;
        self.offset += bytes;
        Ok(())
    }

    pub(super) fn seek(&mut self, offset: u64) -> Result<(), InputError> {
        if offset != self.offset {
            self.reader.seek(SeekFrom::Start(offset)).map_err(|e| self.error(offset, format!("cannot read: {e}")))?;
            self.offset = offset;
        }
        Ok(())
    }
}
