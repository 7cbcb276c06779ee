//! A term's postings from all runs, in order of the documents.
//!
//! Each run has some batches of the collection, so a list in it consists of pieces, one per batch:
//!
//! ```text
//! run 0  | batch 0 | batch 3 | batch 4 |
//! run 1  | batch 1 | batch 5 |                 the list: 0 1 2 3 4 5
//! run 2  | batch 2 |
//! ```
//!
//! A short list is decoded and its pieces are sorted. Of a long list only the encoded bytes are in memory. It is
//! decoded piece by piece while its blocks are packed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::runs::{Runs, SegmentPlace};
use crate::index::{BLOCK_LEN, BlockPostings, IndexError, ListEncoder};
use crate::indexing::postings::Decoder;

/// Lists of at least this many bytes are decoded while they are packed.
const LONG_BYTES: usize = 256 << 10;
/// Bytes whose memory is kept for the next list.
const KEPT_BYTES: usize = 1 << 20;

/// Encoded postings of a term from some runs.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    parts: Vec<RunPostings>,
    list: List,
    sorted: List,
}

#[derive(Clone, Copy, Debug)]
struct RunPostings {
    run: usize,
    start: usize,
    end: usize,
}

impl Gathered {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.parts.clear();
    }

    pub(crate) fn push(&mut self, run: usize, postings: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(postings);
        self.parts.push(RunPostings { run, start, end: self.bytes.len() });
    }

    /// Packs the gathered postings as the list of `term`.
    pub(crate) fn pack(&mut self, runs: &Runs, term: &str, encoder: &mut ListEncoder) -> Result<(), IndexError> {
        let Self { bytes, parts, list, sorted } = self;
        if bytes.len() >= LONG_BYTES {
            let mut pieces =
                Pieces::new(parts.iter().map(|part| (&bytes[part.start..part.end], runs.places(part.run))));
            // A posting takes at least one byte.
            return encoder.add_blocks(term, bytes.len(), |block| pieces.fill(block));
        }
        list.clear();
        for part in parts {
            list.append(&bytes[part.start..part.end], runs.places(part.run));
        }
        list.sort(sorted);
        encoder.add_columns(term, &list.docs, &list.freqs)
    }
}

/// A term's postings, with the documents' numbers in the index.
#[derive(Debug, Default)]
struct List {
    docs: Vec<u32>,
    freqs: Vec<u32>,
    /// Ranges of postings of one segment each, in order.
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

    fn append(&mut self, postings: &[u8], places: &[SegmentPlace]) {
        let mut at = InRun::new(places);
        for (doc, freq) in Decoder::new(postings) {
            if at.is_behind(doc) {
                at.go_to(doc);
                self.end_piece();
                let start = self.docs.len();
                self.pieces.push(Piece { first_doc: at.in_index(doc), start, end: start });
            }
            self.docs.push(at.in_index(doc));
            self.freqs.push(freq);
        }
        self.end_piece();
    }

    fn end_piece(&mut self) {
        if let Some(last) = self.pieces.last_mut() {
            last.end = self.docs.len();
        }
    }

    /// Sorts documents if several runs have some. `sorted` lends its memory.
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

/// A position among a run's segments, which maps documents to their numbers in the index.
#[derive(Clone, Copy, Debug)]
struct InRun<'a> {
    /// The segments from this one on.
    places: &'a [SegmentPlace],
    end: u32,
    shift: u32,
}

impl<'a> InRun<'a> {
    fn new(places: &'a [SegmentPlace]) -> Self {
        Self { places, end: 0, shift: 0 }
    }

    /// Whether a document of the run belongs to a later segment.
    #[inline]
    fn is_behind(&self, doc: u32) -> bool {
        doc >= self.end
    }

    fn go_to(&mut self, doc: u32) {
        self.places = &self.places[self.places.partition_point(|place| place.end <= doc)..];
        // No document follows the last segment. The index refuses what a damaged run makes of it.
        (self.end, self.shift) = self.places.first().map_or((u32::MAX, 0), |place| (place.end, place.shift));
    }

    /// Number of a document of the segment in the index.
    #[inline]
    fn in_index(&self, doc: u32) -> u32 {
        doc.wrapping_add(self.shift)
    }
}

#[derive(Debug)]
struct Rest<'a> {
    postings: Decoder<'a>,
    next: (u32, u32),
    at: InRun<'a>,
}

/// Merges the lists of some runs piece by piece, in order of the documents.
#[derive(Debug)]
struct Pieces<'a> {
    lists: Vec<Rest<'a>>,
    /// The list of the current piece.
    now: Option<usize>,
    /// The next piece of each other list: its first document, and the list.
    waiting: BinaryHeap<Reverse<(u32, usize)>>,
}

impl<'a> Pieces<'a> {
    fn new(lists: impl Iterator<Item = (&'a [u8], &'a [SegmentPlace])>) -> Self {
        let mut pieces = Self { lists: Vec::new(), now: None, waiting: BinaryHeap::new() };
        for (postings, places) in lists {
            let mut postings = Decoder::new(postings);
            if let Some(next) = postings.next() {
                pieces.lists.push(Rest { postings, next, at: InRun::new(places) });
                pieces.wait(pieces.lists.len() - 1);
            }
        }
        pieces.now = pieces.waiting.pop().map(|Reverse((_, list))| list);
        pieces
    }

    /// Queues a list whose next posting belongs to another segment.
    fn wait(&mut self, list: usize) {
        let Rest { next: (doc, _), at, .. } = &mut self.lists[list];
        at.go_to(*doc);
        self.waiting.push(Reverse((at.in_index(*doc), list)));
    }

    /// Writes the next postings and returns their number, which is below a block only at the end.
    fn fill(&mut self, block: &mut BlockPostings) -> usize {
        let mut len = 0;
        while let Some(list) = self.now {
            let Rest { postings, next, at } = &mut self.lists[list];
            let mut is_over = false;
            while len < BLOCK_LEN && !is_over && !at.is_behind(next.0) {
                (block.docs[len], block.freqs[len]) = (at.in_index(next.0), next.1);
                len += 1;
                match postings.next() {
                    Some(posting) => *next = posting,
                    None => is_over = true,
                }
            }
            if !is_over && !at.is_behind(next.0) {
                break;
            }
            if !is_over {
                self.wait(list);
            }
            self.now = self.waiting.pop().map(|Reverse((_, list))| list);
        }
        len
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexing::postings::Postings;
    use tandem_base::base::random::Random;

    /// Runs of random batches of a collection of `num_docs` documents that all contain the term: encoded lists, and
    /// segments.
    fn runs_of(random: &mut Random, num_docs: u32, num_runs: usize) -> (Vec<Vec<u8>>, Vec<Vec<SegmentPlace>>) {
        let mut lists: Vec<Postings> = (0..num_runs).map(|_| Postings::default()).collect();
        let mut places: Vec<Vec<SegmentPlace>> = vec![Vec::new(); num_runs];
        let mut docs_of = vec![0; num_runs];
        let mut doc = 0;
        while doc < num_docs {
            let run = random.below(num_runs as u32) as usize;
            let len = (1 + random.below(700)).min(num_docs - doc);
            for _ in 0..len {
                lists[run].count(0, docs_of[run]);
                (0..doc % 3).for_each(|_| lists[run].count(0, docs_of[run]));
                docs_of[run] += 1;
                doc += 1;
            }
            places[run].push(SegmentPlace { end: docs_of[run], shift: (doc - len).wrapping_sub(docs_of[run] - len) });
        }
        let mut encoded = vec![Vec::new(); num_runs];
        for ((list, bytes), docs) in lists.iter().zip(&mut encoded).zip(docs_of) {
            if docs > 0 {
                list.read(0, |slice| bytes.extend_from_slice(slice));
            }
        }
        (encoded, places)
    }

    #[test]
    fn pieces_of_all_runs_come_in_order() {
        let mut random = Random::new(9, 0);
        for (num_docs, num_runs) in [(1, 1), (127, 2), (128, 1), (129, 3), (50_000, 1), (50_000, 7), (9_999, 40)] {
            let (encoded, places) = runs_of(&mut random, num_docs, num_runs);
            let expected: Vec<(u32, u32)> = (0..num_docs).map(|doc| (doc, 1 + doc % 3)).collect();
            let (mut list, mut sorted) = (List::default(), List::default());
            encoded.iter().zip(&places).for_each(|(bytes, places)| list.append(bytes, places));
            list.sort(&mut sorted);
            assert!(list.docs.iter().copied().zip(list.freqs.iter().copied()).eq(expected.iter().copied()));

            let mut pieces = Pieces::new(encoded.iter().zip(&places).map(|(bytes, places)| (&bytes[..], &places[..])));
            let mut block = BlockPostings { docs: [0; BLOCK_LEN], freqs: [0; BLOCK_LEN] };
            let mut found = Vec::new();
            loop {
                let len = pieces.fill(&mut block);
                found.extend(block.docs[..len].iter().copied().zip(block.freqs[..len].iter().copied()));
                if len < BLOCK_LEN {
                    break;
                }
            }
            assert!(found == expected, "{num_docs} documents, {num_runs} runs");
            assert_eq!(pieces.fill(&mut block), 0);
        }
    }
}
