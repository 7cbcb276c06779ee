//! A worker's part of the collection, inverted batch by batch.
//!
//! Any free worker takes the next batch, so a worker's documents are not consecutive. They form **segments**, one per
//! batch, in the collection's order. Within the worker they are numbered consecutively. Their numbers in the index are
//! known once all batches have been read.

use std::io;

use tandem_base::files::InputError;

use super::interner::Interner;
use super::pending::Pending;
use super::run::{ListVisitor, RunSource, Segment};
use crate::corpus::{Batch, Cutter, Tokenizer};
use crate::indexing::postings::Postings;
use crate::indexing::segment::SegmentDocuments;

const STOP: u32 = u32::MAX;

/// Documents of some batches, as growing lists by term.
#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    words: Interner,
    /// The term of each word, or [`STOP`]. It is empty if words are terms.
    term_of: Vec<u32>,
    /// Empty if words are terms.
    terms: Interner,
    postings: Postings,
    num_docs: u32,
    segments: Vec<Segment>,
    segment_bytes: usize,
    cutter: Cutter,
    pending: Pending,
}

impl Accumulator {
    /// Parses batch `number`, cuts its documents into terms and adds them.
    pub(crate) fn add(&mut self, number: u64, batch: &Batch, tokenizer: &Tokenizer) -> Result<(), InputError> {
        let first_doc = self.num_docs;
        let mut documents = SegmentDocuments::new(batch.file(), batch.line_base());
        let keeps_words = tokenizer.keeps_words();
        let Self { words, term_of, terms, postings, num_docs, cutter, pending, .. } = self;
        // A word shares the list of its term.
        let mut list_of = |word: &[u8], number: u32| {
            if keeps_words {
                return Some(number);
            }
            if number as usize == term_of.len() {
                term_of.push(new_term(word, tokenizer, terms));
            }
            Some(term_of[number as usize]).filter(|&term| term != STOP)
        };
        let skipped = batch.for_each(|document| {
            let doc = *num_docs;
            let mut length = 0;
            for text in [&document.title, &document.text] {
                tokenizer.for_each_word(text, cutter, |word| {
                    if pending.push(word) {
                        length += pending.count(words, postings, doc, &mut list_of);
                    }
                });
            }
            length += pending.count(words, postings, doc, &mut list_of);
            documents.push(&document.id, document.line, length);
            *num_docs += 1;
        })?;
        let segment = Segment {
            number,
            digest: batch.digest(),
            text_bytes: batch.bytes(),
            skipped,
            first_doc,
            num_docs: self.num_docs - first_doc,
            documents: documents.encode(),
        };
        self.segment_bytes += segment.documents.len() + size_of::<Segment>();
        self.segments.push(segment);
        Ok(())
    }

    pub(crate) fn num_docs(&self) -> u32 {
        self.num_docs
    }
}

impl RunSource for Accumulator {
    fn bytes(&self) -> usize {
        let interned = self.words.bytes() + self.terms.bytes() + self.term_of.len() * 4;
        interned + self.postings.bytes() + self.segment_bytes
    }

    fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    fn for_each_list(&self, visit: &mut ListVisitor<'_>) -> io::Result<()> {
        let terms = if self.term_of.is_empty() { &self.words } else { &self.terms };
        let mut bytes = Vec::new();
        for number in terms.sorted() {
            bytes.clear();
            self.postings.read(number, |slice| bytes.extend_from_slice(slice));
            visit(terms.word(number), &bytes)?;
        }
        Ok(())
    }

    /// The memory is kept for the next documents.
    fn take_segments(&mut self) -> Vec<Segment> {
        self.words.clear();
        self.term_of.clear();
        self.terms.clear();
        self.postings.clear();
        (self.num_docs, self.segment_bytes) = (0, 0);
        std::mem::take(&mut self.segments)
    }
}

#[cfg(test)]
impl Accumulator {
    /// An accumulator of a batch of JSON lines with these texts, cut at blanks.
    pub(crate) fn of_lines(texts: &[&str]) -> Self {
        use crate::corpus::{Collection, Words};
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.jsonl");
        let lines = (0..).zip(texts).map(|(id, text)| format!("{{\"id\":{id},\"text\":\"{text}\"}}\n"));
        std::fs::write(&path, lines.collect::<String>()).unwrap();
        let mut accumulator = Self::default();
        let batch = Collection::open(&path, 1).unwrap().next_batch().unwrap().unwrap();
        accumulator.add(0, &batch, &Tokenizer::new(Words::Ascii)).unwrap();
        accumulator
    }
}

#[cold]
fn new_term(word: &[u8], tokenizer: &Tokenizer, terms: &mut Interner) -> u32 {
    let word = String::from_utf8_lossy(word);
    tokenizer.term_of(&word).map_or(STOP, |term| terms.intern(term.as_bytes()))
}
