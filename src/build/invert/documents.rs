//! Documents of a batch: what the index keeps of them, and what errors name.

use std::path::Path;

use crate::files::InputError;

/// Where one batch of the collection went: consecutive documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment {
    /// The batch's place in the collection.
    pub(super) number: u64,
    /// Says whether the batch is still the same.
    pub(super) digest: u64,
    /// Bytes of the collection that it stands for.
    pub(super) text_bytes: u64,
    pub(super) skipped_files: u64,
    /// Its first document's number in the run.
    pub(super) first_doc: u32,
    pub(super) num_docs: u32,
    /// The line of the first document; 0 where documents stand on no lines.
    pub(super) first_line: u64,
    /// [`SegmentDocuments`], encoded; empty while they are on disk.
    pub(super) documents: Vec<u8>,
}

/// Lengths, lines and ids of a segment's documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SegmentDocuments {
    /// Tokens of each.
    pub(super) lengths: Vec<u32>,
    /// The line of each, counted from the first's; empty where documents stand on no lines.
    lines: Vec<u32>,
    id_ends: Vec<u32>,
    ids: Vec<u8>,
    first_line: u64,
}

impl SegmentDocuments {
    pub(super) fn push(&mut self, id: &str, line: Option<u64>, length: u32) {
        self.lengths.push(length);
        self.ids.extend_from_slice(id.as_bytes());
        self.id_ends.push(self.ids.len() as u32);
        if let Some(line) = line {
            if self.lines.is_empty() {
                self.first_line = line;
            }
            self.lines.push((line - self.first_line) as u32);
        }
    }

    pub(super) fn first_line(&self) -> u64 {
        self.first_line
    }

    /// The id of each document, in order.
    pub(super) fn ids(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.id_ends);
        starts.zip(&self.id_ends).map(|(&start, &end)| &self.ids[start as usize..end as usize])
    }

    /// The line of the document at `position`, where it stands on one.
    pub(super) fn line(&self, first_line: u64, position: usize) -> Option<u64> {
        self.lines.get(position).map(|&line| first_line + u64::from(line))
    }

    /// One after another: documents, whether there are lines, lengths, lines, ends of ids, ids.
    pub(super) fn encode(&self) -> Vec<u8> {
        let header = [self.lengths.len() as u32, u32::from(!self.lines.is_empty())];
        let mut bytes = Vec::with_capacity(8 + 12 * self.lengths.len() + self.ids.len());
        for numbers in [&header[..], &self.lengths, &self.lines, &self.id_ends] {
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        bytes.extend_from_slice(&self.ids);
        bytes
    }

    /// What [`encode`](Self::encode) wrote; `None` if it did not write this.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (words, _) = bytes.as_chunks::<4>();
        let number = |at: usize| words.get(at).map(|word| u32::from_le_bytes(*word));
        let (num_docs, has_lines) = (number(0)? as usize, number(1)?);
        let numbers = |start: usize, len: usize| -> Option<Vec<u32>> {
            Some(words.get(start..start.checked_add(len)?)?.iter().map(|word| u32::from_le_bytes(*word)).collect())
        };
        let num_lines = if has_lines == 0 { 0 } else { num_docs };
        let lengths = numbers(2, num_docs)?;
        let lines = numbers(2 + num_docs, num_lines)?;
        let id_ends = numbers(2 + num_docs + num_lines, num_docs)?;
        let ids = bytes.get(4 * (2 + 2 * num_docs + num_lines)..)?.to_vec();
        let is_whole = id_ends.is_sorted() && id_ends.last().map_or(0, |&end| end as usize) == ids.len();
        is_whole.then_some(Self { lengths, lines, id_ends, ids, first_line: 0 })
    }
}

/// That two documents have the same id.
pub(super) fn repeated_id(path: &Path, id: &str, first: Option<u64>, second: Option<u64>) -> InputError {
    let message = match first {
        Some(first) => format!("id {id:?} is already that of line {first}, expected one document an id"),
        None => format!("two documents have the id {id:?}"),
    };
    match second {
        Some(line) => InputError::line(path, line, message),
        None => InputError::file(path, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_come_back_and_damaged_bytes_do_not() {
        for lines in [Some(7), None] {
            let mut documents = SegmentDocuments::default();
            for (place, id) in ["a", "", "long-id"].into_iter().enumerate() {
                documents.push(id, lines.map(|line| line + 3 * place as u64), 5 * place as u32);
            }
            let bytes = documents.encode();
            let again = SegmentDocuments::decode(&bytes).unwrap();
            assert_eq!(again.ids().collect::<Vec<_>>(), [&b"a"[..], b"", b"long-id"]);
            assert_eq!(again.lengths, [0, 5, 10]);
            assert_eq!(again.line(documents.first_line(), 2), lines.map(|line| line + 6));
            for len in 0..bytes.len() {
                assert!(SegmentDocuments::decode(&bytes[..len]).is_none(), "{len}");
            }
        }
    }
}
