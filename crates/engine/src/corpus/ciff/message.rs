//! The messages of CIFF, field by field.

use std::io::Read;

use tandem_base::files::InputError;

use super::wire::{WireReader, WireType};
use crate::corpus::TermList;

const MAX_INT32: u64 = i32::MAX as u64;
const MAX_INT64: u64 = i64::MAX as u64;
/// The longest term, name or description that an index can hold, in bytes. Memory grows only with bytes read, so a
/// damaged length costs none.
const MAX_TEXT: u64 = MAX_INT32;

/// The header of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CiffHeader {
    /// Version of the format: 1.
    pub version: u32,
    /// Lists in the file.
    pub num_lists: u32,
    /// Documents in the file.
    pub num_docs: u32,
    /// Lists in the collection.
    pub total_lists: u32,
    /// Documents in the collection.
    pub total_docs: u32,
    /// Tokens in the collection.
    pub total_tokens: u64,
    /// Mean number of tokens per document.
    pub average_length: f64,
    /// A description for people.
    pub description: String,
}

#[derive(Debug, Default)]
pub(super) struct DocRecord {
    pub(super) doc: u32,
    pub(super) external_id: String,
    pub(super) length: u32,
}

impl CiffHeader {
    pub(super) fn read(reader: &mut WireReader<impl Read>) -> Result<Self, InputError> {
        let outer = reader.enter()?;
        let mut header = Self::default();
        while let Some(key) = reader.key()? {
            let int32 = |reader: &mut WireReader<_>, what: &str| {
                reader.expect(key, WireType::Varint, what)?;
                reader.count(what, MAX_INT32).map(|value| value as u32)
            };
            match key.field {
                1 => header.version = int32(reader, "the version")?,
                2 => header.num_lists = int32(reader, "the number of lists")?,
                3 => header.num_docs = int32(reader, "the number of documents")?,
                4 => header.total_lists = int32(reader, "the collection's number of lists")?,
                5 => header.total_docs = int32(reader, "the collection's number of documents")?,
                6 => {
                    reader.expect(key, WireType::Varint, "the number of tokens")?;
                    header.total_tokens = reader.count("the number of tokens", MAX_INT64)?;
                }
                7 => {
                    reader.expect(key, WireType::Fixed64, "the mean length")?;
                    header.average_length = reader.double()?;
                }
                8 => {
                    reader.expect(key, WireType::Bytes, "the description")?;
                    header.description = reader.text("the description", MAX_TEXT)?;
                }
                _ => reader.skip(key)?,
            }
        }
        reader.leave(outer)?;
        if header.version != 1 {
            let message = format!("CIFF version {}, this build reads version 1", header.version);
            return Err(reader.error(0, message));
        }
        Ok(header)
    }
}

impl DocRecord {
    pub(super) fn read(reader: &mut WireReader<impl Read>) -> Result<Self, InputError> {
        let outer = reader.enter()?;
        let mut record = Self::default();
        while let Some(key) = reader.key()? {
            match key.field {
                1 => {
                    reader.expect(key, WireType::Varint, "a document's number")?;
                    record.doc = reader.count("a document's number", MAX_INT32)? as u32;
                }
                2 => {
                    reader.expect(key, WireType::Bytes, "a document's name")?;
                    record.external_id = reader.text("a document's name", MAX_TEXT)?;
                }
                3 => {
                    reader.expect(key, WireType::Varint, "a document's length")?;
                    record.length = reader.count("a document's length", MAX_INT32)? as u32;
                }
                _ => reader.skip(key)?,
            }
        }
        reader.leave(outer)?;
        Ok(record)
    }
}

pub(super) fn read_term(reader: &mut WireReader<impl Read>) -> Result<String, InputError> {
    let outer = reader.enter()?;
    let mut term = String::new();
    while let Some(key) = reader.key()? {
        if key.field == 1 {
            reader.expect(key, WireType::Bytes, "a list's term")?;
            term = reader.text("a list's term", MAX_TEXT)?;
            // Writers put the term first: the rest need not be read.
            break;
        }
        reader.skip(key)?;
    }
    reader.leave(outer)?;
    Ok(term)
}

/// Reads a list of documents below `num_docs` into `list`; returns the collection frequency recorded in the file.
pub(super) fn read_list(
    reader: &mut WireReader<impl Read>,
    num_docs: u32,
    list: &mut TermList,
) -> Result<u64, InputError> {
    let start = reader.offset();
    let outer = reader.enter()?;
    list.term.clear();
    list.docs.clear();
    list.freqs.clear();
    let (mut doc_freq, mut collection_freq) = (0, 0);
    while let Some(key) = reader.key()? {
        match key.field {
            1 => {
                reader.expect(key, WireType::Bytes, "a list's term")?;
                list.term = reader.text("a list's term", MAX_TEXT)?;
            }
            2 => {
                reader.expect(key, WireType::Varint, "a list's document frequency")?;
                doc_freq = reader.count("a list's document frequency", MAX_INT64)?;
            }
            3 => {
                reader.expect(key, WireType::Varint, "a list's collection frequency")?;
                collection_freq = reader.count("a list's collection frequency", MAX_INT64)?;
            }
            4 => {
                reader.expect(key, WireType::Bytes, "a posting")?;
                read_posting(reader, num_docs, list)?;
            }
            _ => reader.skip(key)?,
        }
    }
    reader.leave(outer)?;
    if list.docs.is_empty() {
        return Err(reader.error(start, format!("the list of {:?} has no postings, expected at least 1", list.term)));
    }
    if doc_freq != list.docs.len() as u64 {
        let message = format!(
            "the list of {:?} has {} postings, its document frequency says {doc_freq}",
            list.term,
            list.docs.len()
        );
        return Err(reader.error(start, message));
    }
    Ok(collection_freq)
}

#[inline]
fn read_posting(reader: &mut WireReader<impl Read>, num_docs: u32, list: &mut TermList) -> Result<(), InputError> {
    let offset = reader.offset();
    let outer = reader.enter()?;
    let (mut gap, mut freq) = (0, 0);
    while let Some(key) = reader.key()? {
        match key.field {
            1 => {
                reader.expect(key, WireType::Varint, "a posting's document")?;
                gap = reader.count("a posting's document", MAX_INT32)?;
            }
            2 => {
                reader.expect(key, WireType::Varint, "a posting's frequency")?;
                freq = reader.count("a posting's frequency", MAX_INT32)?;
            }
            _ => reader.skip(key)?,
        }
    }
    reader.leave(outer)?;
    let doc = match list.docs.last() {
        Some(&before) if gap == 0 => {
            let message =
                format!("the list of {:?} has document {before} twice, expected a distance above 0", list.term);
            return Err(reader.error(offset, message));
        }
        Some(&before) => u64::from(before) + gap,
        None => gap,
    };
    if doc >= u64::from(num_docs) {
        let message = format!("the list of {:?} has document {doc}, the header says {num_docs} documents", list.term);
        return Err(reader.error(offset, message));
    }
    if freq == 0 {
        let message = format!("the list of {:?} has document {doc} with frequency 0, expected at least 1", list.term);
        return Err(reader.error(offset, message));
    }
    list.docs.push(doc as u32);
    list.freqs.push(freq as u32);
    Ok(())
}
