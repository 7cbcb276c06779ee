//! Merging of runs by ranges of the vocabulary, one per task.

use std::sync::Arc;

use super::cursor::Cursor;
use super::gather::Gathered;
use super::run::{BLOCK_BYTES, Run};
use super::runs::{Runs, SegmentPlace};
use crate::index::{EncodedLists, IndexWriter, ListEncoder};
use crate::indexing::error::BuildError;
use crate::indexing::indexer::{BuildOptions, BuildSummary, Inverted};
use crate::indexing::progress::Progress;
use crate::indexing::ranges::{RangeBytes, division, write_ranges};
use crate::indexing::segment::SegmentDocuments;

/// Memory of a cursor: a block of a run on disk, which ends with the list that fills it.
const CURSOR_BYTES: u64 = (BLOCK_BYTES + BLOCK_BYTES / 4) as u64;
/// Copies of the longest list's bytes in memory while it is packed: in the runs' blocks, gathered, packed, in the
/// payload with its spare capacity, and in its probe form.
const LONGEST_COPIES: u64 = 5;
/// Other memory of a thread, for decoded short lists.
const THREAD_BYTES: u64 = 6 << 20;

/// Merges the runs' lists by term and appends them to `writer`.
fn merge(
    runs: &Runs,
    options: &BuildOptions,
    writer: &mut IndexWriter,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(), BuildError> {
    let (budget, num_docs, held_bytes) = (options.budget(), runs.num_docs(), runs.bytes());
    let room = budget.merging_bytes(num_docs, held_bytes);
    let (ranges, threads) = cut(runs, options.threads, room);
    let bytes: Vec<RangeBytes> = ranges.iter().map(|range| range.bytes).collect();
    let largest = bytes.iter().map(|range| range.all()).max().unwrap_or(0);
    if let Some(need) = budget.lacks_for_merging(num_docs, held_bytes, largest) {
        progress(Progress::Exceeding(need));
    }
    let norms = writer.norms();
    write_ranges(&bytes, room, threads, writer, progress, &|number| {
        let TermRange { from, to, .. } = &ranges[number];
        merge_range(runs, from, to.as_deref(), Arc::clone(&norms))
    })
}

/// A range of the vocabulary, up to an exclusive end or the end of the vocabulary.
#[derive(Debug)]
struct TermRange {
    from: Vec<u8>,
    to: Option<Vec<u8>>,
    bytes: RangeBytes,
}

/// Cuts the vocabulary into ranges of about equal work. Also returns the number of threads that may merge.
fn cut(runs: &Runs, threads: usize, room: u64) -> (Vec<TermRange>, usize) {
    let mut samples: Vec<(&[u8], u64)> = runs.runs().iter().flat_map(Run::samples).collect();
    samples.sort_unstable();
    let all: u64 = samples.iter().map(|sample| sample.1).sum();
    let cursors = runs.runs().iter().filter(|run| run.is_on_disk()).count() as u64 * CURSOR_BYTES;
    let (share, threads) = division(all, threads, room, cursors + THREAD_BYTES);
    // A list that does not make its block long may still be as long as a block.
    let most_unknown = runs.runs().len() as u64 * BLOCK_BYTES as u64;
    let taken = |bytes: u64, longest: u64| RangeBytes {
        merging: cursors + THREAD_BYTES + LONGEST_COPIES * longest.max(bytes.min(most_unknown)),
        packed: bytes + bytes / 2,
    };
    let mut ranges: Vec<TermRange> = Vec::new();
    let (mut from, mut bytes, mut longest) = (Vec::new(), 0, 0);
    // Blocks that begin with the same term belong to a long list of it.
    for blocks in samples.chunk_by(|a, b| a.0 == b.0) {
        let term = blocks[0].0;
        if bytes >= share && from.as_slice() < term {
            let range_from = std::mem::replace(&mut from, term.to_vec());
            ranges.push(TermRange { from: range_from, to: Some(term.to_vec()), bytes: taken(bytes, longest) });
            (bytes, longest) = (0, 0);
        }
        let len: u64 = blocks.iter().map(|block| block.1).sum();
        bytes += len;
        longest = longest.max(len);
    }
    ranges.push(TermRange { from, to: None, bytes: taken(bytes, longest) });
    (ranges, threads)
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
    let (mut term, mut gathered) = (Vec::new(), Gathered::default());
    while let Some(first) = heap.top() {
        term.clear();
        term.extend_from_slice(first.term());
        gathered.clear();
        while let Some(cursor) = heap.top_mut().filter(|cursor| cursor.term() == term) {
            gathered.push(cursor.number(), cursor.postings());
            let goes_on = cursor.advance()? && is_inside(cursor);
            heap.settle_top(goes_on);
        }
        let term = std::str::from_utf8(&term).map_err(|_| runs.runs()[0].damaged("a term is not UTF-8"))?;
        gathered.pack(runs, term, &mut encoder)?;
    }
    Ok(encoder.take())
}

/// A heap of cursors with the least term on top.
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

    /// Restores the order after the top has advanced, or removes the top.
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

impl Inverted for Runs {
    fn summary(&self) -> BuildSummary {
        self.summary.clone()
    }

    fn for_each_segment(
        &self,
        visit: &mut dyn FnMut(&SegmentDocuments) -> Result<(), BuildError>,
    ) -> Result<(), BuildError> {
        self.order.iter().try_for_each(|&(run, at)| visit(&self.runs[run].documents(at)?))
    }

    fn num_docs(&self) -> u64 {
        self.num_docs
    }

    fn bytes(&self) -> u64 {
        let a_segment = (size_of::<(usize, usize)>() + size_of::<SegmentPlace>()) as u64;
        self.runs.iter().map(Run::bytes).sum::<u64>() + self.order.len() as u64 * a_segment
    }

    fn merge_into(
        &self,
        writer: &mut IndexWriter,
        options: &BuildOptions,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<(), BuildError> {
        merge(self, options, writer, progress)
    }
}
