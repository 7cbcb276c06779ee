//! Reading a CIFF file twice: first the documents, which come last, then the lists.

use std::fmt;
use std::io::{self, BufRead, Seek};
use std::path::{Path, PathBuf};

use tandem_base::files::{File, InputError, open_bytes, packing_of};

use super::CiffHeader;
use super::message::{DocRecord, read_list, read_term};
use super::wire::WireReader;
use crate::corpus::{DocumentTable, ListSource, TermList};

/// Bytes read at a time from a file that is read from end to end.
const STREAM_BYTES: usize = 1 << 16;
/// Bytes read at a time for lists picked one by one, most of which are short.
const PICK_BYTES: usize = 1 << 12;
/// The text before the tokenizer's name in descriptions by this program.
pub(super) const TOKENIZER_MARK: &str = "tokenizer: ";

/// A file, unpacked. No plain CIFF file looks compressed: its second byte is the key of the version, 8.
type Stream = Box<dyn BufRead + Send>;

/// The lists and documents of a CIFF file, plain, in gzip or in zstd.
///
/// Memory holds the documents and one list. If the lists are not in byte order of their terms, it also holds the terms,
/// and a compressed file is unpacked into the temporary folder.
pub struct CiffReader {
    path: PathBuf,
    header: CiffHeader,
    documents: DocumentTable,
    lists: Lists,
    num_read: u32,
    /// Lists whose collection frequency is not the sum of their frequencies.
    num_odd_sums: u64,
    num_tokens: u64,
}

/// The source of the lists, in byte order of the terms.
enum Lists {
    /// The lists of the file, one after another.
    InOrder(WireReader<Stream>),
    /// The lists of the file at these offsets.
    Picked { reader: WireReader<File>, offsets: std::vec::IntoIter<u64> },
}

impl fmt::Debug for CiffReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CiffReader")
            .field("header", &self.header)
            .field("num_read", &self.num_read)
            .finish_non_exhaustive()
    }
}

impl CiffReader {
    /// Opens a file: reads its header and documents, and skips its lists. Fails if it can't be read or isn't CIFF: with
    /// the byte, counted in the unpacked stream for gzip, and what was expected there.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let mut reader = WireReader::new(open_bytes(path)?, path, STREAM_BYTES);
        let header = CiffHeader::read(&mut reader)?;
        let mut is_sorted = true;
        let mut before = String::new();
        for number in 0..header.num_lists {
            check_more(&mut reader, number, header.num_lists, "lists")?;
            let term = read_term(&mut reader)?;
            is_sorted &= number == 0 || before < term;
            before = term;
        }
        let documents = read_documents(&mut reader, &header)?;
        if !reader.is_at_end()? {
            let message = format!("the file continues after the last of its {} documents", header.num_docs);
            return Err(reader.error(reader.offset(), message));
        }
        let lists = if is_sorted { in_order(path)? } else { picked(path, header.num_lists)? };
        let num_tokens = documents.lengths.iter().map(|&length| u64::from(length)).sum();
        Ok(Self { path: path.to_owned(), header, documents, lists, num_read: 0, num_odd_sums: 0, num_tokens })
    }

    /// The header of the file.
    pub fn header(&self) -> &CiffHeader {
        &self.header
    }
}

impl ListSource for CiffReader {
    fn num_lists(&self) -> u64 {
        u64::from(self.header.num_lists)
    }

    fn check_names(&self) -> Result<(), InputError> {
        self.documents.check_names(&self.path, |number| format!("document {number}"))
    }

    fn take_documents(&mut self) -> DocumentTable {
        std::mem::take(&mut self.documents)
    }

    fn next_list(&mut self, list: &mut TermList) -> Result<bool, InputError> {
        if self.num_read == self.header.num_lists {
            return Ok(false);
        }
        self.num_read += 1;
        let num_docs = self.header.num_docs;
        let collection_freq = match &mut self.lists {
            Lists::InOrder(reader) => read_list(reader, num_docs, list)?,
            Lists::Picked { reader, offsets } => {
                let Some(offset) = offsets.next() else { return Ok(false) };
                reader.seek(offset)?;
                read_list(reader, num_docs, list)?
            }
        };
        let sum: u64 = list.freqs.iter().map(|&freq| u64::from(freq)).sum();
        self.num_odd_sums += u64::from(sum != collection_freq);
        Ok(true)
    }

    fn tokenizer_name(&self) -> Option<String> {
        let (_, name) = self.header.description.split_once(TOKENIZER_MARK)?;
        Some(name.to_owned())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let CiffHeader { num_lists, num_docs, total_lists, total_docs, total_tokens, .. } = self.header;
        if num_lists < total_lists || num_docs < total_docs {
            notes.push(format!(
                "the file is a part: {num_lists} of {total_lists} lists, {num_docs} of {total_docs} documents; scores \
                 come from what is in it"
            ));
        } else if total_tokens != self.num_tokens {
            notes.push(format!(
                "the header says {total_tokens} tokens, the documents' lengths sum to {}; scores come from the lengths",
                self.num_tokens
            ));
        }
        if self.num_odd_sums > 0 {
            notes.push(format!(
                "{} lists have a collection frequency that is not the sum of their frequencies; the sum is used",
                self.num_odd_sums
            ));
        }
        notes
    }
}

fn check_more(reader: &mut WireReader<Stream>, number: u32, of: u32, what: &str) -> Result<(), InputError> {
    if reader.is_at_end()? {
        let message = format!("the file ends after {number} of the {of} {what} that its header names (truncated?)");
        return Err(reader.error(reader.offset(), message));
    }
    Ok(())
}

fn read_documents(reader: &mut WireReader<Stream>, header: &CiffHeader) -> Result<DocumentTable, InputError> {
    let mut documents = DocumentTable::default();
    let mut is_named = false;
    for number in 0..header.num_docs {
        check_more(reader, number, header.num_docs, "documents")?;
        let offset = reader.offset();
        let record = DocRecord::read(reader)?;
        if record.doc != number {
            let message =
                format!("document {} where {number} was expected: documents come in order from 0", record.doc);
            return Err(reader.error(offset, message));
        }
        is_named |= !record.external_id.is_empty();
        documents.lengths.push(record.length);
        documents.external_ids.push(record.external_id);
    }
    if !is_named {
        documents.external_ids.clear();
    }
    Ok(documents)
}

/// The lists of a file in byte order of its terms.
fn in_order(path: &Path) -> Result<Lists, InputError> {
    let mut reader = WireReader::new(open_bytes(path)?, path, STREAM_BYTES);
    CiffHeader::read(&mut reader)?;
    Ok(Lists::InOrder(reader))
}

/// The lists of a file in any other order.
fn picked(path: &Path, num_lists: u32) -> Result<Lists, InputError> {
    let mut reader = WireReader::new(open_bytes(path)?, path, STREAM_BYTES);
    CiffHeader::read(&mut reader)?;
    let mut places: Vec<(String, u64)> = Vec::new();
    for _ in 0..num_lists {
        let offset = reader.offset();
        places.push((read_term(&mut reader)?, offset));
    }
    places.sort_unstable();
    if let Some(pair) = places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let message = format!("a second list of {:?}; the first is at byte {}", pair[1].0, pair[0].1);
        return Err(reader.error(pair[1].1, message));
    }
    let offsets: Vec<u64> = places.into_iter().map(|(_, offset)| offset).collect();
    Ok(Lists::Picked { reader: WireReader::new(seekable(path)?, path, PICK_BYTES), offsets: offsets.into_iter() })
}

/// The plain file; a compressed file is unpacked into an unnamed file in the temporary folder.
fn seekable(path: &Path) -> Result<File, InputError> {
    if packing_of(path).is_none() {
        return File::open(path).map_err(|e| InputError::file(path, format!("cannot open: {e}")));
    }
    let mut unpacked = File::unnamed_in(&std::env::temp_dir()).map_err(|e| {
        let folder = std::env::temp_dir();
        let message =
            format!("cannot make a file in the temporary folder {}: {e} (TMPDIR names another)", folder.display());
        InputError::file(path, message)
    })?;
    let copied = io::copy(&mut open_bytes(path)?, &mut unpacked).and_then(|_| unpacked.rewind());
    copied.map_err(|e| InputError::file(path, format!("cannot unpack: {e}")))?;
    Ok(unpacked)
}
