//! The last stage: combines all parts of the dictionary, and the partial lists of each term.
//!
//! ```text
//! parts of the dictionary ──▶ terms in byte order ──▶ ranges ──▶ lists of a range's terms in all runs ──▶ index
//! ```
//!
//! The trie's slots are nearly in byte order, except for short terms, numbers and other terms. Four sorted sequences
//! are merged.

use std::sync::Arc;

use rayon::prelude::*;
use tandem_engine::index::{EncodedLists, IndexWriter, ListEncoder};
use tandem_engine::indexing::postings::Decoder;
use tandem_engine::indexing::ranges::{RangeBytes, division, write_ranges};
use tandem_engine::indexing::{BuildError, BuildOptions, BuildSummary, Inverted, Progress, SegmentDocuments};

use super::dictionary::Dictionary;
use super::run_file::RunFile;
use super::slots::sorted_groups;

#[derive(Clone, Copy, Debug)]
pub(crate) struct TermOf {
    part: u16,
    number: u32,
}

/// The whole dictionary: its parts, and the owner of each slot.
#[derive(Debug)]
pub(crate) struct Combined {
    parts: Vec<Dictionary>,
    owners: Vec<u16>,
    order: Vec<TermOf>,
    /// Place in that order of each term of each part.
    places: Vec<Vec<u32>>,
}

impl Combined {
    /// Orders the parts' terms. `owners` gives the part of each slot.
    pub(crate) fn new(parts: Vec<Dictionary>, owners: Vec<u16>) -> Self {
        let mut sequences: Vec<std::vec::IntoIter<TermOf>> = Vec::new();
        for group in sorted_groups() {
            let terms: Vec<Vec<TermOf>> = group
                .into_par_iter()
                .map(|slot| {
                    let part = owners[usize::from(slot)];
                    let mut numbers = Vec::new();
                    parts[usize::from(part)].append_sorted(slot, &mut numbers);
                    numbers.into_iter().map(|number| TermOf { part, number }).collect()
                })
                .collect();
            sequences.push(terms.concat().into_iter());
        }
        let mut combined = Self { order: Vec::new(), places: Vec::new(), parts, owners };
        let mut heads: Vec<(Vec<u8>, TermOf)> = Vec::new();
        let mut sources: Vec<std::vec::IntoIter<TermOf>> = Vec::new();
        for mut sequence in sequences {
            if let Some(first) = sequence.next() {
                heads.push((combined.bytes_of(first), first));
                sources.push(sequence);
            }
        }
        let mut order = Vec::with_capacity(combined.parts.iter().map(|part| part.terms.len()).sum());
        while let Some(least) = (0..heads.len()).min_by(|&a, &b| heads[a].0.cmp(&heads[b].0)) {
            order.push(heads[least].1);
            match sources[least].next() {
                Some(next) => {
                    heads[least].0.clear();
                    combined.parts[usize::from(next.part)].append_term(next.number, &mut heads[least].0);
                    heads[least].1 = next;
                }
                None => {
                    heads.swap_remove(least);
                    drop(sources.swap_remove(least));
                }
            }
        }
        combined.places = combined.parts.iter().map(|part| vec![0; part.terms.len()]).collect();
        for (place, term) in (0..).zip(&order) {
            combined.places[usize::from(term.part)][term.number as usize] = place;
        }
        combined.order = order;
        combined
    }

    pub(crate) fn parts(&self) -> &[Dictionary] {
        &self.parts
    }

    fn bytes(&self) -> u64 {
        let terms: u64 = self.parts.iter().map(Dictionary::bytes).sum();
        terms + (self.order.len() * (size_of::<TermOf>() + size_of::<u32>())) as u64
    }

    /// Encodes all terms in order, each with its length, bytes, part and number.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &term in &self.order {
            let text = self.bytes_of(term);
            bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&text);
            bytes.extend_from_slice(&term.part.to_le_bytes());
            bytes.extend_from_slice(&term.number.to_le_bytes());
        }
        bytes
    }

    fn bytes_of(&self, term: TermOf) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.parts[usize::from(term.part)].append_term(term.number, &mut bytes);
        bytes
    }

    fn slot_of(&self, term: TermOf) -> u16 {
        self.parts[usize::from(term.part)].terms[term.number as usize].slot as u16
    }
}

/// A collection as the paper leaves it: a dictionary, and a file of partial lists per run.
#[derive(Debug)]
pub(crate) struct PartialLists {
    pub(crate) dictionary: Combined,
    pub(crate) runs: Vec<RunFile>,
    /// Number of the first document of each run.
    pub(crate) first_docs: Vec<u32>,
    pub(crate) num_docs: u64,
    pub(crate) summary: BuildSummary,
}

impl Inverted for PartialLists {
    fn summary(&self) -> BuildSummary {
        self.summary.clone()
    }

    fn for_each_segment(
        &self,
        visit: &mut dyn FnMut(&SegmentDocuments) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        self.runs.iter().try_for_each(|run| run.segments()?.iter().try_for_each(&mut *visit))
    }

    fn num_docs(&self) -> u64 {
        self.num_docs
    }

    fn bytes(&self) -> u64 {
        self.dictionary.bytes()
    }

    fn merge_into(
        &self,
        writer: &mut IndexWriter,
        options: &BuildOptions,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(), BuildError> {
        let room = options.budget().merging_bytes(self.num_docs, self.bytes());
        let ranges = self.cut(options.threads, room)?;
        let bytes: Vec<RangeBytes> = ranges.iter().map(|range| range.bytes).collect();
        let norms = writer.norms();
        write_ranges(&bytes, room, options.threads, writer, progress, &|number| {
            let TermRange { from, to, .. } = ranges[number];
            self.merge_range(from, to, ListEncoder::new(Arc::clone(&norms)))
        })
    }
}

/// Places `from..to` in the order of terms, and the memory for merging them.
struct TermRange {
    from: usize,
    to: usize,
    bytes: RangeBytes,
}

impl PartialLists {
    /// Cuts the vocabulary into ranges of about equal work.
    fn cut(&self, threads: usize, room: u64) -> Result<Vec<TermRange>, BuildError> {
        let order = &self.dictionary.order;
        let mut bytes_of = vec![0_u64; order.len()];
        for run in &self.runs {
            let mut is_whole = true;
            run.for_each_section(|slot, entries| {
                let places = &self.dictionary.places[usize::from(self.dictionary.owners[usize::from(slot)])];
                for entry in entries {
                    match places.get(entry.term as usize) {
                        Some(&place) => bytes_of[place as usize] += u64::from(entry.len),
                        None => is_whole = false,
                    }
                }
            })?;
            if !is_whole {
                return Err(run.damaged());
            }
        }
        let (most, _) = division(bytes_of.iter().sum(), threads, room, 0);
        let mut ranges = Vec::new();
        let (mut from, mut bytes) = (0, 0);
        for (place, len) in bytes_of.iter().enumerate() {
            bytes += len;
            if bytes >= most || place + 1 == order.len() {
                // The memory is for the bytes, and for a document and a frequency each.
                let bytes_taken = RangeBytes { merging: 9 * bytes, packed: 2 * bytes };
                ranges.push(TermRange { from, to: place + 1, bytes: bytes_taken });
                (from, bytes) = (place + 1, 0);
            }
        }
        Ok(ranges)
    }

    fn merge_range(&self, from: usize, to: usize, mut encoder: ListEncoder) -> Result<EncodedLists, BuildError> {
        let Combined { order, places, owners, .. } = &self.dictionary;
        let mut slots: Vec<u16> = order[from..to].iter().map(|&term| self.dictionary.slot_of(term)).collect();
        slots.sort_unstable();
        slots.dedup();
        // A partial list is a term's place, a run, and a place and length in `bytes`.
        let mut partial: Vec<(u32, u32, usize, usize)> = Vec::new();
        let mut bytes: Vec<u8> = Vec::new();
        for &slot in &slots {
            let places = &places[usize::from(owners[usize::from(slot)])];
            let place_of = |term: u32| places[term as usize] as usize;
            for (number, run) in (0..).zip(&self.runs) {
                run.for_each_list(
                    slot,
                    |term| (from..to).contains(&place_of(term)),
                    |term, list| {
                        partial.push((place_of(term) as u32, number, bytes.len(), list.len()));
                        bytes.extend_from_slice(list);
                    },
                )?;
            }
        }
        partial.sort_unstable();
        let (mut term, mut docs, mut freqs) = (Vec::new(), Vec::new(), Vec::new());
        for lists in partial.chunk_by(|a, b| a.0 == b.0) {
            docs.clear();
            freqs.clear();
            for &(_, run, at, len) in lists {
                let first_doc = self.first_docs[run as usize];
                for (doc, freq) in Decoder::new(&bytes[at..at + len]) {
                    docs.push(doc.wrapping_add(first_doc));
                    freqs.push(freq);
                }
            }
            term.clear();
            let TermOf { part, number } = order[lists[0].0 as usize];
            self.dictionary.parts[usize::from(part)].append_term(number, &mut term);
            let term = std::str::from_utf8(&term).map_err(|_| self.runs[0].damaged())?;
            encoder.add_columns(term, &docs, &freqs)?;
        }
        Ok(encoder.take())
    }
}
