//! Merging runs, a range of the vocabulary a task: of each term what any run has of it, in order of the documents.

use std::sync::Arc;

use super::cursor::Cursor;
use super::run::Run;
use super::runs::Runs;
use crate::build::postings::decode;
use crate::build::ranges::{range_bytes, write_ranges};
use crate::build::{BuildError, Progress};
use crate::index::{EncodedLists, IndexWriter, ListEncoder};

/// Merges the runs' lists by term and appends them to `writer`.
pub(super) fn merge(
    runs: &Runs,
    threads: usize,
    writer: &mut IndexWriter,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(), BuildError> {
    let ranges = cut(runs, threads);
    let norms = writer.norms();
    write_ranges(ranges.len(), threads, writer, progress, &|number| {
        let (from, to) = &ranges[number];
        merge_range(runs, from, to.as_deref(), Arc::clone(&norms))
    })
}

/// A part of the vocabulary: from one term to below another (or the end).
type TermRange = (Vec<u8>, Option<Vec<u8>>);

/// Cuts the vocabulary into ranges of about equal work.
fn cut(runs: &Runs, threads: usize) -> Vec<TermRange> {
    let mut samples: Vec<(&[u8], u64)> = runs.runs().iter().flat_map(Run::samples).collect();
    samples.sort_unstable();
    let all: u64 = samples.iter().map(|sample| sample.1).sum();
    let share = range_bytes(all, threads);
    let mut bounds: Vec<Vec<u8>> = vec![Vec::new()];
    let mut bytes = 0;
    for (term, len) in samples {
        if bytes >= share && bounds.last().is_some_and(|last| last.as_slice() < term) {
            bounds.push(term.to_vec());
            bytes = 0;
        }
        bytes += len;
    }
    (0..bounds.len()).map(|i| (bounds[i].clone(), bounds.get(i + 1).cloned())).collect()
}

fn merge_range(runs: &Runs, from: &[u8], to: Option<&[u8]>, norms: Arc<[f32]>) -> Result<EncodedLists, BuildError> {
    let mut encoder = ListEncoder::new(norms);
    let is_inside = |cursor: &Cursor<'_>| to.is_none_or(|to| cursor.term() < to);
    let mut heap = Heap::default();
    for (number, run) in runs.runs().iter().enumerate() {
        if let Some(cursor) = Cursor::seek(run, number, from)?
            && is_inside(&cursor)
        {
            heap.push(cursor);
        }
    }
    let (mut term, mut docs, mut freqs, mut pairs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    while let Some(first) = heap.top() {
        term.clear();
        term.extend_from_slice(first.term());
        docs.clear();
        freqs.clear();
        while let Some(cursor) = heap.top_mut().filter(|cursor| cursor.term() == term) {
            append(runs, cursor, &mut docs, &mut freqs);
            let goes_on = cursor.advance()? && is_inside(cursor);
            heap.settle_top(goes_on);
        }
        sort(&mut docs, &mut freqs, &mut pairs);
        let term = std::str::from_utf8(&term).map_err(|_| runs.runs()[0].damaged("a term is not UTF-8"))?;
        encoder.add_columns(term, &docs, &freqs)?;
    }
    Ok(encoder.take())
}

/// Appends the cursor's postings, by the numbers that documents have in the index.
fn append(runs: &Runs, cursor: &Cursor<'_>, docs: &mut Vec<u32>, freqs: &mut Vec<u32>) {
    let places = runs.places(cursor.number());
    let (mut place, mut end, mut shift) = (0, 0, 0);
    decode(cursor.postings(), |doc, freq| {
        if doc >= end {
            place += places[place..].partition_point(|place| place.end <= doc);
            // Past the last segment is no document: the index will refuse what damage made of it.
            (end, shift) = places.get(place).map_or((u32::MAX, 0), |place| (place.end, place.shift));
        }
        docs.push(doc.wrapping_add(shift));
        freqs.push(freq);
    });
}

/// Puts documents into order, where several runs have some each.
fn sort(docs: &mut [u32], freqs: &mut [u32], pairs: &mut Vec<u64>) {
    if docs.is_sorted() {
        return;
    }
    pairs.clear();
    pairs.extend(docs.iter().zip(&*freqs).map(|(&doc, &freq)| u64::from(doc) << 32 | u64::from(freq)));
    // A merge sort: it finds the pieces that are in order, and there are few.
    pairs.sort();
    for ((doc, freq), &pair) in docs.iter_mut().zip(freqs).zip(&*pairs) {
        (*doc, *freq) = ((pair >> 32) as u32, pair as u32);
    }
}

/// Cursors, the one with the least term on top.
#[derive(Default)]
struct Heap<'a>(Vec<Cursor<'a>>);

impl<'a> Heap<'a> {
    fn push(&mut self, cursor: Cursor<'a>) {
        self.0.push(cursor);
        let mut at = self.0.len() - 1;
        while at > 0 && self.0[at].order(&self.0[(at - 1) / 2]).is_lt() {
            self.0.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn top(&self) -> Option<&Cursor<'a>> {
        self.0.first()
    }

    fn top_mut(&mut self) -> Option<&mut Cursor<'a>> {
        self.0.first_mut()
    }

    /// Puts the top in its place after it went on, or takes it out.
    fn settle_top(&mut self, goes_on: bool) {
        if !goes_on {
            self.0.swap_remove(0);
        }
        let mut at = 0;
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.0.len() && self.0[child].order(&self.0[least]).is_lt() {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.0.swap(at, least);
            at = least;
        }
    }
}
