//! Documents of a batch: lengths, lines and ids.

use crate::corpus::LineBase;

/// Lengths, lines and ids of a batch's documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentDocuments {
    /// Number of the documents' file in the collection.
    pub(crate) file: u32,
    /// Tokens of each document.
    pub lengths: Vec<u32>,
    /// Line of each document, counted from the base's first, or empty if documents have no lines.
    lines: Vec<u32>,
    id_ends: Vec<u32>,
    ids: Vec<u8>,
    base: Option<LineBase>,
}

/// Words before the lengths in the encoded form.
const HEADER_WORDS: usize = 5;
/// Kinds of base in the encoded form.
const NO_LINES: u32 = 0;
const FIRST_LINE: u32 = 1;
const OFFSET: u32 = 2;
const BYTE: u32 = 3;

impl SegmentDocuments {
    /// No documents yet, of file number `file` of the collection, whose lines are counted from a base.
    pub fn new(file: u32, base: Option<LineBase>) -> Self {
        Self { file, base, ..Self::default() }
    }

    /// Adds the next document.
    pub fn push(&mut self, id: &str, line: Option<u64>, length: u32) {
        self.lengths.push(length);
        self.ids.extend_from_slice(id.as_bytes());
        self.id_ends.push(self.ids.len() as u32);
        if let (Some(line), Some(base)) = (line, self.base) {
            self.lines.push((line - base.first()) as u32);
        }
    }

    /// The documents' ids in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.id_ends);
        starts.zip(&self.id_ends).map(|(&start, &end)| &self.ids[start as usize..end as usize])
    }

    /// The base and line of the document at `position`, if it stands on a line.
    pub(super) fn line(&self, position: usize) -> Option<(LineBase, u64)> {
        let base = self.base?;
        self.lines.get(position).map(|&line| (base, base.first() + u64::from(line)))
    }

    /// Encodes, in this order: number of documents, kind of base, file, the base's line or offset, lengths, lines, ends
    /// of ids, ids.
    pub fn encode(&self) -> Vec<u8> {
        let (kind, base) = match self.base {
            None => (NO_LINES, 0),
            Some(LineBase::First(line)) => (FIRST_LINE, line),
            Some(LineBase::Offset(offset)) => (OFFSET, offset),
            Some(LineBase::Byte(byte)) => (BYTE, byte),
        };
        let header = [self.lengths.len() as u32, kind, self.file, base as u32, (base >> 32) as u32];
        let mut bytes = Vec::with_capacity(4 * HEADER_WORDS + 12 * self.lengths.len() + self.ids.len());
        for numbers in [&header[..], &self.lengths, &self.lines, &self.id_ends] {
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        bytes.extend_from_slice(&self.ids);
        bytes
    }

    /// Decodes the bytes of [`encode`](Self::encode), or returns `None` for other bytes.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<4>();
        let number = |at: usize| words.get(at).map(|word| u32::from_le_bytes(*word));
        let (num_docs, kind) = (number(0)? as usize, number(1)?);
        let numbers = |start: usize, len: usize| -> Option<Vec<u32>> {
            Some(words.get(start..start.checked_add(len)?)?.iter().map(|word| u32::from_le_bytes(*word)).collect())
        };
        let (file, base) = (number(2)?, u64::from(number(3)?) | u64::from(number(4)?) << 32);
        let base = match kind {
            NO_LINES => None,
            FIRST_LINE => Some(LineBase::First(base)),
            OFFSET => Some(LineBase::Offset(base)),
            BYTE => Some(LineBase::Byte(base)),
            _ => return None,
        };
        let num_lines = if base.is_none() { 0 } else { num_docs };
        let lengths = numbers(HEADER_WORDS, num_docs)?;
        let lines = numbers(HEADER_WORDS + num_docs, num_lines)?;
        let id_ends = numbers(HEADER_WORDS + num_docs + num_lines, num_docs)?;
        let ids = bytes.get(4 * (HEADER_WORDS + 2 * num_docs + num_lines)..)?.to_vec();
        let is_whole = id_ends.is_sorted() && id_ends.last().map_or(0, |&end| end as usize) == ids.len();
        is_whole.then_some(Self { file, lengths, lines, id_ends, ids, base })
    }
}
