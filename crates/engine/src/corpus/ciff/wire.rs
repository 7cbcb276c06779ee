//! Protobuf's wire format: varints, keys and lengths, read as a stream with the offset of every byte.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use tandem_base::files::InputError;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WireType {
    Varint,
    Fixed64,
    Bytes,
    Fixed32,
}

impl WireType {
    fn name(self) -> &'static str {
        match self {
            Self::Varint => "a number",
            Self::Fixed64 => "8 bytes",
            Self::Bytes => "text or a message",
            Self::Fixed32 => "4 bytes",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) field: u64,
    pub(super) wire_type: WireType,
    /// The key's offset in bytes from the start of the (unpacked) file.
    pub(super) offset: u64,
}

/// Reads the wire format from `source`.
///
/// Messages bound the bytes that may be read: [`enter`](Self::enter) one, read fields while [`key`](Self::key) gives any,
/// then [`leave`](Self::leave) it.
pub(super) struct WireReader<R> {
    source: R,
    path: PathBuf,
    buffer: Box<[u8]>,
    /// The unread part of `buffer` is `at..filled`.
    at: usize,
    filled: usize,
    /// The offset in the file of `buffer[filled]`.
    filled_offset: u64,
    end: u64,
}

impl<R: Read> WireReader<R> {
    /// Starts at the source's first byte, which is byte 0 in errors.
    pub(super) fn new(source: R, path: &Path, buffer_bytes: usize) -> Self {
        let buffer = vec![0; buffer_bytes].into_boxed_slice();
        Self { source, path: path.to_owned(), buffer, at: 0, filled: 0, filled_offset: 0, end: u64::MAX }
    }

    /// The offset of the next byte.
    pub(super) fn offset(&self) -> u64 {
        self.filled_offset - (self.filled - self.at) as u64
    }

    pub(super) fn error(&self, offset: u64, message: impl Into<String>) -> InputError {
        InputError::byte(&self.path, offset, message)
    }

    pub(super) fn is_at_end(&mut self) -> Result<bool, InputError> {
        Ok(self.at == self.filled && !self.fill()?)
    }

    /// Reads more into the empty buffer; `false` at the end of the file.
    #[cold]
    fn fill(&mut self) -> Result<bool, InputError> {
        loop {
            match self.source.read(&mut self.buffer) {
                Ok(read) => {
                    (self.at, self.filled) = (0, read);
                    self.filled_offset += read as u64;
                    return Ok(read > 0);
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.error(self.offset(), format!("cannot read: {e}"))),
            }
        }
    }

    fn truncated(&self) -> InputError {
        self.error(self.offset(), "the file ends inside a message (truncated?)")
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, InputError> {
        if self.offset() >= self.end {
            return Err(self.error(self.offset(), "a field continues past the end of its message"));
        }
        if self.at == self.filled && !self.fill()? {
            return Err(self.truncated());
        }
        let byte = self.buffer[self.at];
        self.at += 1;
        Ok(byte)
    }

    /// Reads a number of 7 bits per byte, lowest first.
    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, InputError> {
        let first = self.byte()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let mut value = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error(self.offset() - 1, "a number has more than 64 bits"))
    }

    /// Reads a number that is int32 or int64 in the schema; it may not be negative or above `max`.
    #[inline]
    pub(super) fn count(&mut self, what: &str, max: u64) -> Result<u64, InputError> {
        let offset = self.offset();
        let value = self.varint()?;
        if value > max {
            // Negative numbers are stored as 64-bit ones.
            return Err(self.error(offset, format!("{what} is {}, expected 0 to {max}", value.cast_signed())));
        }
        Ok(value)
    }

    /// Reads the next field's key; `None` at the end of the message.
    #[inline]
    pub(super) fn key(&mut self) -> Result<Option<Key>, InputError> {
        let offset = self.offset();
        if offset == self.end {
            return Ok(None);
        }
        let key = self.varint()?;
        let wire_type = match key & 7 {
            0 => WireType::Varint,
            1 => WireType::Fixed64,
            2 => WireType::Bytes,
            5 => WireType::Fixed32,
            other => {
                return Err(
                    self.error(offset, format!("wire type {other}, expected 0, 1, 2 or 5 (damaged, or no CIFF file?)"))
                );
            }
        };
        if key >> 3 == 0 {
            return Err(self.error(offset, "field number 0, expected 1 or more"));
        }
        Ok(Some(Key { field: key >> 3, wire_type, offset }))
    }

    /// Refuses a field whose storage differs from the schema.
    #[inline]
    pub(super) fn expect(&self, key: Key, expected: WireType, what: &str) -> Result<(), InputError> {
        if key.wire_type == expected {
            return Ok(());
        }
        let message = format!(
            "{what} is {}, expected {} (is this CIFF, and do the header's counts agree with what follows?)",
            key.wire_type.name(),
            expected.name()
        );
        Err(self.error(key.offset, message))
    }

    /// Begins a message: reads its length and returns the end of the message around it.
    #[inline]
    pub(super) fn enter(&mut self) -> Result<u64, InputError> {
        let offset = self.offset();
        let len = self.varint()?;
        let end = self.offset().saturating_add(len);
        if end > self.end {
            let left = self.end - self.offset();
            return Err(self.error(offset, format!("a message of {len} bytes where {left} are left")));
        }
        Ok(std::mem::replace(&mut self.end, end))
    }

    /// Ends the present message, read completely or in part; `outer` is the result of [`enter`](Self::enter).
    #[inline]
    pub(super) fn leave(&mut self, outer: u64) -> Result<(), InputError> {
        let left = self.end - self.offset();
        if left > 0 {
            self.pass_over(left)?;
        }
        self.end = outer;
        Ok(())
    }

    pub(super) fn skip(&mut self, key: Key) -> Result<(), InputError> {
        match key.wire_type {
            WireType::Varint => self.varint().map(drop),
            WireType::Fixed64 => self.pass_over(8),
            WireType::Fixed32 => self.pass_over(4),
            WireType::Bytes => {
                let outer = self.enter()?;
                self.leave(outer)
            }
        }
    }

    fn pass_over(&mut self, mut count: u64) -> Result<(), InputError> {
        if count > self.end - self.offset() {
            return Err(self.error(self.offset(), "a field continues past the end of its message"));
        }
        while count > 0 {
            if self.at == self.filled && !self.fill()? {
                return Err(self.truncated());
            }
            let step = count.min((self.filled - self.at) as u64);
            self.at += step as usize;
            count -= step;
        }
        Ok(())
    }

    pub(super) fn double(&mut self) -> Result<f64, InputError> {
        let mut bytes = [0; 8];
        for byte in &mut bytes {
            *byte = self.byte()?;
        }
        Ok(f64::from_le_bytes(bytes))
    }

    /// Reads UTF-8 text after its length, of at most `max` bytes.
    pub(super) fn text(&mut self, what: &str, max: u64) -> Result<String, InputError> {
        let outer = self.enter()?;
        let offset = self.offset();
        let len = self.end - offset;
        if len > max {
            return Err(self.error(offset, format!("{what} has {len} bytes, expected at most {max}")));
        }
        let mut bytes = Vec::with_capacity(len.min(1 << 16) as usize);
        for _ in 0..len {
            bytes.push(self.byte()?);
        }
        self.leave(outer)?;
        String::from_utf8(bytes).map_err(|_| self.error(offset, format!("{what} is not UTF-8")))
    }
}

impl<R: Read + Seek> WireReader<R> {
    /// Moves to byte `offset`, outside of all messages.
    pub(super) fn seek(&mut self, offset: u64) -> Result<(), InputError> {
        self.end = u64::MAX;
        let first = self.filled_offset - self.filled as u64;
        if (first..=self.filled_offset).contains(&offset) {
            self.at = (offset - first) as usize;
            return Ok(());
        }
        self.source
            .seek(SeekFrom::Start(offset))
            .map_err(|e| InputError::byte(&self.path, offset, format!("cannot read: {e}")))?;
        (self.at, self.filled, self.filled_offset) = (0, 0, offset);
        Ok(())
    }
}

/// Appends a number of 7 bits per byte, lowest first.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a number field; nothing where it is 0.
pub(super) fn put_number(out: &mut Vec<u8>, field: u8, value: u64) {
    if value != 0 {
        out.push(field << 3);
        put_varint(out, value);
    }
}

/// Appends a double field; nothing where it is 0.
pub(super) fn put_double(out: &mut Vec<u8>, field: u8, value: f64) {
    if value != 0.0 {
        out.push(field << 3 | 1);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// Appends a text field; nothing where it is empty.
pub(super) fn put_text(out: &mut Vec<u8>, field: u8, text: &str) {
    if !text.is_empty() {
        out.push(field << 3 | 2);
        put_varint(out, text.len() as u64);
        out.extend_from_slice(text.as_bytes());
    }
}

pub(super) fn varint_len(value: u64) -> usize {
    (64 - (value | 1).leading_zeros() as usize).div_ceil(7)
}
