//! A batch of documents, inverted.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::corpus::{Batch, Tokenizer};
use crate::files::InputError;

/// Lists of consecutive documents, sorted by term; documents count from 0 in the run.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) ids: Vec<String>,
    /// The line of each document, where it stands on one.
    pub(super) lines: Vec<Option<u64>>,
    pub(super) doc_lengths: Vec<u32>,
    /// Bytes of the collection that the run stands for.
    pub(super) text_bytes: u64,
    pub(super) skipped_files: usize,
    terms: String,
    /// For each term, where it ends in `terms` and where its postings end in `postings`.
    ends: Vec<(usize, usize)>,
    /// Gaps and frequencies, each as a variable number of bytes of seven bits, low bits first.
    postings: Vec<u8>,
}

impl Run {
    /// Parses a batch, cuts its documents into terms and collects postings by term.
    pub(super) fn invert(batch: &Batch, tokenizer: &Tokenizer) -> Result<Self, InputError> {
        let mut run = Self { text_bytes: batch.bytes(), ..Self::default() };
        let mut ranks: HashMap<Box<str>, usize, BuildHasherDefault<TermHasher>> = HashMap::default();
        let mut lists: Vec<Vec<(u32, u32)>> = Vec::new();
        run.skipped_files = batch.for_each(|document| {
            let doc = run.ids.len() as u32;
            let mut length = 0;
            let mut count = |term: &str| {
                length += 1;
                let Some(&rank) = ranks.get(term) else {
                    ranks.insert(term.into(), lists.len());
                    lists.push(vec![(doc, 1)]);
                    return;
                };
                match lists[rank].last_mut() {
                    Some((last, freq)) if *last == doc => *freq += 1,
                    _ => lists[rank].push((doc, 1)),
                }
            };
            tokenizer.for_each_term(&document.title, &mut count);
            tokenizer.for_each_term(&document.text, &mut count);
            run.ids.push(document.id.into_owned());
            run.lines.push(document.line);
            run.doc_lengths.push(length);
        })?;
        let mut sorted: Vec<(Box<str>, usize)> = ranks.into_iter().collect();
        sorted.sort_unstable();
        for (term, rank) in sorted {
            run.terms.push_str(&term);
            let mut next = 0;
            for &(doc, freq) in &lists[rank] {
                put(&mut run.postings, doc - next);
                put(&mut run.postings, freq);
                next = doc + 1;
            }
            run.ends.push((run.terms.len(), run.postings.len()));
        }
        Ok(run)
    }

    /// Terms in the run.
    pub(super) fn num_terms(&self) -> usize {
        self.ends.len()
    }

    /// The term at `position` in byte order.
    pub(super) fn term(&self, position: usize) -> &str {
        &self.terms[self.start(position).0..self.ends[position].0]
    }

    /// Bytes of the postings of the term at `position`.
    pub(super) fn posting_bytes(&self, position: usize) -> usize {
        self.ends[position].1 - self.start(position).1
    }

    /// Appends the postings of the term at `position`; the run's documents begin at `first_doc`.
    pub(super) fn append_postings(&self, position: usize, first_doc: u32, docs: &mut Vec<u32>, freqs: &mut Vec<u32>) {
        let mut bytes = &self.postings[self.start(position).1..self.ends[position].1];
        let mut next = first_doc;
        while !bytes.is_empty() {
            let doc = next + take(&mut bytes);
            docs.push(doc);
            freqs.push(take(&mut bytes));
            next = doc + 1;
        }
    }

    /// The position of the first term that is not below `bound`.
    pub(super) fn first_from(&self, bound: &str) -> usize {
        let (mut low, mut high) = (0, self.num_terms());
        while low < high {
            let middle = low.midpoint(high);
            if self.term(middle) < bound { low = middle + 1 } else { high = middle }
        }
        low
    }

    fn start(&self, position: usize) -> (usize, usize) {
        position.checked_sub(1).map_or((0, 0), |before| self.ends[before])
    }
}

fn put(bytes: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn take(bytes: &mut &[u8]) -> u32 {
    let mut value = 0;
    let mut shift = 0;
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        value |= u32::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// Hashes whole terms at once: the standard hasher takes half of the time of inversion.
#[derive(Default)]
struct TermHasher(u64);

impl Hasher for TermHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    /// The end mark of a `str`: a map of nothing but terms needs none.
    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_roundtrip() {
        let values = [0, 1, 127, 128, 16_383, 16_384, u32::MAX - 1, u32::MAX];
        let mut bytes = Vec::new();
        values.iter().for_each(|&value| put(&mut bytes, value));
        let mut rest = bytes.as_slice();
        assert_eq!(values.map(|_| take(&mut rest)), values);
        assert!(rest.is_empty());
    }
}
