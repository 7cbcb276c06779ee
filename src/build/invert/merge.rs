//! Merging runs, a range of the vocabulary a task: of each term what any run has of it, in order of the documents.

use std::sync::Arc;

use super::cursor::Cursor;
use super::run::Run;
use super::runs::{Runs, SegmentPlace};
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
    let (mut term, mut list, mut sorted) = (Vec::new(), List::default(), List::default());
    while let Some(first) = heap.top() {
        term.clear();
        term.extend_from_slice(first.term());
        list.clear();
        while let Some(cursor) = heap.top_mut().filter(|cursor| cursor.term() == term) {
            list.append(cursor, runs.places(cursor.number()));
            let goes_on = cursor.advance()? && is_inside(cursor);
            heap.settle_top(goes_on);
        }
        list.sort(&mut sorted);
        let term = std::str::from_utf8(&term).map_err(|_| runs.runs()[0].damaged("a term is not UTF-8"))?;
        encoder.add_columns(term, &list.docs, &list.freqs)?;
    }
    Ok(encoder.take())
}

/// A term's postings, by the numbers that documents have in the index.
#[derive(Debug, Default)]
struct List {
    docs: Vec<u32>,
    freqs: Vec<u32>,
    /// Postings of one segment stand together and in order.
    pieces: Vec<Piece>,
}

/// Postings of one segment, ordered by their documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    first_doc: u32,
    start: usize,
    end: usize,
}

impl List {
    fn clear(&mut self) {
        self.docs.clear();
        self.freqs.clear();
        self.pieces.clear();
    }

    /// Appends the cursor's postings, of a run with these places.
    fn append(&mut self, cursor: &Cursor<'_>, places: &[SegmentPlace]) {
        let (mut place, mut end, mut shift) = (0, 0, 0);
        decode(cursor.postings(), |doc, freq| {
            if doc >= end {
                place += places[place..].partition_point(|place| place.end <= doc);
                // Past the last segment is no document: the index will refuse what damage made of it.
                (end, shift) = places.get(place).map_or((u32::MAX, 0), |place| (place.end, place.shift));
                self.end_piece();
                let start = self.docs.len();
                self.pieces.push(Piece { first_doc: doc.wrapping_add(shift), start, end: start });
            }
            self.docs.push(doc.wrapping_add(shift));
            self.freqs.push(freq);
        });
        self.end_piece();
    }

    fn end_piece(&mut self) {
        if let Some(last) = self.pieces.last_mut() {
            last.end = self.docs.len();
        }
    }

    /// Puts documents into order, where several runs have some each; `sorted` lends its memory.
    fn sort(&mut self, sorted: &mut Self) {
        if self.pieces.is_sorted() {
            return;
        }
        self.pieces.sort_unstable();
        sorted.clear();
        for piece in &self.pieces {
            sorted.docs.extend_from_slice(&self.docs[piece.start..piece.end]);
            sorted.freqs.extend_from_slice(&self.freqs[piece.start..piece.end]);
        }
        std::mem::swap(self, sorted);
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
