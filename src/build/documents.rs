//! Documents of a batch: what the index keeps of them, and what errors name.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64;

use super::{BuildError, Inverted};
use crate::corpus::LineBase;
use crate::files::InputError;
use crate::index::ExternalIds;

/// Lengths, lines and ids of a batch's documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SegmentDocuments {
    /// Which of the collection's files they are of.
    pub(crate) file: u32,
    /// Tokens of each.
    pub(crate) lengths: Vec<u32>,
    /// The line of each, counted from the base's first; empty where documents stand on no lines.
    lines: Vec<u32>,
    id_ends: Vec<u32>,
    ids: Vec<u8>,
    base: Option<LineBase>,
}

/// Words before the lengths in the encoded form.
const HEADER_WORDS: usize = 5;
/// What the base is, in the encoded form.
const NO_LINES: u32 = 0;
const FIRST_LINE: u32 = 1;
const OFFSET: u32 = 2;

impl SegmentDocuments {
    /// Documents of file number `file` of the collection, whose lines are counted from a base; none yet.
    pub(crate) fn new(file: u32, base: Option<LineBase>) -> Self {
        Self { file, base, ..Self::default() }
    }

    /// Adds the next document.
    pub(crate) fn push(&mut self, id: &str, line: Option<u64>, length: u32) {
        self.lengths.push(length);
        self.ids.extend_from_slice(id.as_bytes());
        self.id_ends.push(self.ids.len() as u32);
        if let (Some(line), Some(base)) = (line, self.base) {
            self.lines.push((line - base.first()) as u32);
        }
    }

    /// Says how long the documents are, of which that was not known when they were added.
    pub(crate) fn set_lengths(&mut self, lengths: &[u32]) {
        self.lengths.copy_from_slice(lengths);
    }

    /// Bytes of memory in use.
    pub(crate) fn bytes(&self) -> usize {
        4 * (self.lengths.len() + self.lines.len() + self.id_ends.len()) + self.ids.len()
    }

    /// The id of each document, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(&0).chain(&self.id_ends);
        starts.zip(&self.id_ends).map(|(&start, &end)| &self.ids[start as usize..end as usize])
    }

    /// What the document at `position` stands on, if it stands on a line.
    fn line(&self, position: usize) -> Option<(LineBase, u64)> {
        let base = self.base?;
        self.lines.get(position).map(|&line| (base, base.first() + u64::from(line)))
    }

    /// One after another: documents, what lines are counted from, the file, the first line's number or place, lengths, lines, ends
    /// of ids, ids.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, base) = match self.base {
            None => (NO_LINES, 0),
            Some(LineBase::First(line)) => (FIRST_LINE, line),
            Some(LineBase::Offset(offset)) => (OFFSET, offset),
        };
        let header = [self.lengths.len() as u32, kind, self.file, base as u32, (base >> 32) as u32];
        let mut bytes = Vec::with_capacity(4 * HEADER_WORDS + 12 * self.lengths.len() + self.ids.len());
        for numbers in [&header[..], &self.lengths, &self.lines, &self.id_ends] {
            bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        bytes.extend_from_slice(&self.ids);
        bytes
    }

    /// What [`encode`](Self::encode) wrote; `None` if it did not write this.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
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

/// The length of each document of `inverted`, whose files are `paths`.
///
/// # Errors
/// If the documents can't be read, or two of them have one id.
pub(super) fn check(inverted: &dyn Inverted, paths: &[PathBuf]) -> Result<Vec<u32>, BuildError> {
    let mut lengths = Vec::new();
    let mut hashes: Vec<u64> = Vec::new();
    inverted.for_each_segment(&mut |documents| {
        hashes.extend(documents.ids().map(xxh3_64));
        lengths.extend_from_slice(&documents.lengths);
        Ok(())
    })?;
    hashes.par_sort_unstable();
    let mut repeated: Vec<u64> = hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    drop(hashes);
    repeated.dedup();
    if !repeated.is_empty() {
        check_ids(inverted, paths, &repeated)?;
    }
    Ok(lengths)
}

/// A document in errors: its file, and its line where it stands on one.
type Place = (u32, Option<(LineBase, u64)>);

/// Compares the ids that have one of these hashes.
fn check_ids(inverted: &dyn Inverted, paths: &[PathBuf], repeated: &[u64]) -> Result<(), BuildError> {
    let mut seen: HashMap<Vec<u8>, Place> = HashMap::new();
    inverted.for_each_segment(&mut |documents| {
        for (position, id) in documents.ids().enumerate() {
            if repeated.binary_search(&xxh3_64(id)).is_err() {
                continue;
            }
            let place = (documents.file, documents.line(position));
            if let Some(first) = seen.insert(id.to_vec(), place) {
                return Err(repeated_id(paths, &String::from_utf8_lossy(id), first, place).into());
            }
        }
        Ok(())
    })
}

/// That two documents have the same id.
fn repeated_id(paths: &[PathBuf], id: &str, first: Place, second: Place) -> InputError {
    let path = |file: u32| paths.get(file as usize).map_or(Path::new(""), PathBuf::as_path);
    let elsewhere = if first.0 == second.0 { String::new() } else { format!(" of {}", path(first.0).display()) };
    // Lines may have to be counted for it, now that they are of use.
    let line = |(file, line): Place| line.and_then(|(base, line)| base.number(path(file), line));
    let message = match line(first) {
        Some(first) => format!("id {id:?} is already that of line {first}{elsewhere}, expected one document an id"),
        None => format!("two documents have the id {id:?}"),
    };
    match line(second) {
        Some(line) => InputError::line(path(second.0), line, message),
        None => InputError::file(path(second.0), message),
    }
}

/// The documents' ids, read again from what is inverted.
#[derive(Debug)]
pub(super) struct Ids(pub(super) Arc<dyn Inverted>);

impl ExternalIds for Ids {
    fn for_each(&self, visit: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut failed = None;
        let read = self.0.for_each_segment(&mut |documents| {
            if failed.is_none() {
                failed = documents.ids().try_for_each(&mut *visit).err();
            }
            Ok(())
        });
        read.map_err(io::Error::other)?;
        failed.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_come_back_and_damaged_bytes_do_not() {
        for base in [Some(LineBase::First(7)), Some(LineBase::Offset(1 << 40)), None] {
            let lines = base.map(LineBase::first);
            let mut documents = SegmentDocuments::new(3, base);
            for (place, id) in ["a", "", "long-id"].into_iter().enumerate() {
                documents.push(id, lines.map(|line| line + 3 * place as u64), 5 * place as u32);
            }
            let bytes = documents.encode();
            let again = SegmentDocuments::decode(&bytes).unwrap();
            assert_eq!(again.ids().collect::<Vec<_>>(), [&b"a"[..], b"", b"long-id"]);
            assert_eq!((&again, again.lengths.as_slice()), (&documents, &[0, 5, 10][..]));
            assert_eq!(again.line(2), base.map(|base| (base, base.first() + 6)));
            for len in 0..bytes.len() {
                assert!(SegmentDocuments::decode(&bytes[..len]).is_none(), "{len}");
            }
        }
    }
}
