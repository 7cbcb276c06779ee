//! Writing a CIFF file.

use std::io::{self, Write};

use super::CiffHeader;
use super::read::TOKENIZER_MARK;
use super::wire::{put_double, put_number, put_text, put_varint, varint_len};

/// Key and length of a posting's message, which is never longer than 12 bytes.
const POSTING_KEY: u8 = 4 << 3 | 2;

/// Writes messages to `out`: the header, then the numbers of lists and documents that it gives.
#[derive(Debug)]
pub struct CiffWriter<W> {
    out: W,
    message: Vec<u8>,
    num_docs: u32,
}

impl CiffHeader {
    /// A description in which [`ListSource::tokenizer_name`](crate::corpus::ListSource::tokenizer_name) finds the
    /// tokenizer.
    pub fn describe(tokenizer: &str) -> String {
        format!("tandem {}; {TOKENIZER_MARK}{tokenizer}", env!("CARGO_PKG_VERSION"))
    }
}

impl<W: Write> CiffWriter<W> {
    /// Writes the header. Fails as `out` does.
    pub fn new(out: W, header: &CiffHeader) -> io::Result<Self> {
        let mut writer = Self { out, message: Vec::new(), num_docs: 0 };
        for (field, value) in [
            (1, header.version),
            (2, header.num_lists),
            (3, header.num_docs),
            (4, header.total_lists),
            (5, header.total_docs),
        ] {
            put_number(&mut writer.message, field, value.into());
        }
        put_number(&mut writer.message, 6, header.total_tokens);
        put_double(&mut writer.message, 7, header.average_length);
        put_text(&mut writer.message, 8, &header.description);
        writer.write_message()?;
        Ok(writer)
    }

    /// Writes the next list: ascending documents with their frequencies. Fails as `out` does.
    pub fn list(&mut self, term: &str, docs: &[u32], freqs: &[u32]) -> io::Result<()> {
        let message = &mut self.message;
        put_text(message, 1, term);
        put_number(message, 2, docs.len() as u64);
        put_number(message, 3, freqs.iter().map(|&freq| u64::from(freq)).sum());
        let mut before = 0;
        for (&doc, &freq) in docs.iter().zip(freqs) {
            let (gap, freq) = (u64::from(doc - before), u64::from(freq));
            before = doc;
            let field_len = |value: u64| if value == 0 { 0 } else { 1 + varint_len(value) };
            message.push(POSTING_KEY);
            message.push((field_len(gap) + field_len(freq)) as u8);
            put_number(message, 1, gap);
            put_number(message, 2, freq);
        }
        self.write_message()
    }

    /// Writes the next document. Fails as `out` does.
    pub fn document(&mut self, external_id: &str, length: u32) -> io::Result<()> {
        put_number(&mut self.message, 1, self.num_docs.into());
        put_text(&mut self.message, 2, external_id);
        put_number(&mut self.message, 3, length.into());
        self.num_docs += 1;
        self.write_message()
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn write_message(&mut self) -> io::Result<()> {
        let mut length = Vec::with_capacity(10);
        put_varint(&mut length, self.message.len() as u64);
        self.out.write_all(&length)?;
        self.out.write_all(&self.message)?;
        self.message.clear();
        Ok(())
    }
}
