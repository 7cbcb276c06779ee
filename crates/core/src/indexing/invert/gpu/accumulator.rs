//! The host's side of a run that grows on a device.

use std::io;

use super::backend::{Backend, DistinctWords, InvertedRun, STOP, most_tokens, most_words};
use crate::corpus::{Batch, Cutter, Tokenizer};
use crate::files::InputError;
use crate::indexing::documents::SegmentDocuments;
use crate::indexing::invert::interner::Interner;
use crate::indexing::invert::run::{ListVisitor, RunSource, Segment};
use crate::search::device::GpuError;

/// Documents of some batches, on a device until they are inverted.
#[derive(Debug)]
pub(crate) struct GpuAccumulator {
    backend: Box<dyn Backend>,
    cutter: Cutter,
    doc_ends: Vec<u32>,
    /// Segments whose documents' lengths are not known yet.
    segments: Vec<(Segment, SegmentDocuments)>,
    documents_bytes: usize,
    num_docs: u32,
    text_bytes: usize,
    last_len: usize,
    words: DistinctWords,
    terms: Interner,
    term_of: Vec<u32>,
    run: InvertedRun,
}

/// Reasons why a batch was not added.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A document can't be read.
    Input(InputError),
    /// The device failed, and its data is lost.
    Gpu(GpuError),
    /// The batch does not fit into a piece.
    TooLarge,
}

struct Piece<'a> {
    memory: &'a mut [u8],
    len: usize,
    is_too_small: bool,
}

impl Piece<'_> {
    fn push(&mut self, bytes: &[u8]) {
        match self.memory.get_mut(self.len..self.len + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.len += bytes.len();
            }
            None => self.is_too_small = true,
        }
    }
}

impl GpuAccumulator {
    pub(crate) fn new(backend: Box<dyn Backend>) -> Self {
        Self {
            backend,
            cutter: Cutter::default(),
            doc_ends: Vec::new(),
            segments: Vec::new(),
            documents_bytes: 0,
            num_docs: 0,
            text_bytes: 0,
            last_len: 0,
            words: DistinctWords::default(),
            terms: Interner::default(),
            term_of: Vec::new(),
            run: InvertedRun::default(),
        }
    }

    /// Parses batch `number` and sends its text to the device. Returns the number of its documents.
    pub(crate) fn add(&mut self, number: u64, batch: &Batch, tokenizer: &Tokenizer) -> Result<u32, Refusal> {
        let room = self.backend.room();
        let mut piece = Piece { memory: self.backend.piece().map_err(Refusal::Gpu)?, len: 0, is_too_small: false };
        let mut documents = SegmentDocuments::new(batch.file(), batch.line_base());
        self.doc_ends.clear();
        let skipped = batch.for_each(|document| {
            if piece.is_too_small {
                return;
            }
            for text in [&document.title, &document.text] {
                tokenizer.simplify(text, &mut self.cutter, |text| piece.push(text));
                piece.push(b"\n");
            }
            self.doc_ends.push(piece.len as u32);
            documents.push(&document.id, document.line, 0);
        });
        let skipped = skipped.map_err(Refusal::Input)?;
        let num_docs = self.doc_ends.len();
        if piece.is_too_small || num_docs > room.piece_docs {
            return Err(Refusal::TooLarge);
        }
        let len = piece.len;
        if num_docs > 0 {
            self.last_len = len;
            self.backend.send(len, &self.doc_ends, tokenizer.words()).map_err(Refusal::Gpu)?;
        }
        let segment = Segment {
            number,
            digest: batch.digest(),
            text_bytes: batch.bytes(),
            skipped,
            first_doc: self.num_docs,
            num_docs: num_docs as u32,
            documents: Vec::new(),
        };
        self.num_docs += num_docs as u32;
        self.text_bytes += len;
        self.documents_bytes += documents.bytes() + size_of::<(Segment, SegmentDocuments)>();
        self.segments.push((segment, documents));
        Ok(num_docs as u32)
    }

    /// Whether the device may lack room for another batch.
    pub(crate) fn is_full(&mut self) -> Result<bool, GpuError> {
        let room = self.backend.room();
        let counts = self.backend.counts()?;
        let tokens = counts.tokens + most_tokens(self.last_len) + most_tokens(room.piece_bytes);
        let words = counts.words + most_words(self.last_len) + most_words(room.piece_bytes);
        // Each piece begins at its own row.
        let text_bytes = self.text_bytes + (self.segments.len() + 1) * ROW_BYTES + room.piece_bytes;
        let docs = self.num_docs as usize + room.piece_docs;
        Ok(tokens > room.tokens || words > room.words || text_bytes > room.text_bytes || docs > room.docs)
    }

    /// Bytes of the host's memory in use, including the words, terms and lists that will come back with the run: about
    /// a quarter of the text.
    pub(crate) fn bytes(&self) -> usize {
        let room = self.backend.room();
        2 * room.piece_bytes + self.documents_bytes + self.text_bytes / 4
    }

    /// Inverts the added documents, if there are any. Lists that are not taken are lost with the next batch.
    pub(crate) fn invert(&mut self, tokenizer: &Tokenizer) -> Result<Lists<'_>, GpuError> {
        self.terms.clear();
        if self.segments.is_empty() {
            return Ok(Lists { of: self, order: Vec::new() });
        }
        self.backend.distinct_words(&mut self.words)?;
        let Self { words, terms, term_of, .. } = self;
        term_of.clear();
        term_of.extend(words.iter().map(|word| {
            if tokenizer.keeps_words() {
                return terms.intern(word);
            }
            let word = String::from_utf8_lossy(word);
            tokenizer.term_of(&word).map_or(STOP, |term| terms.intern(term.as_bytes()))
        }));
        // The device sorts by the terms' ranks in byte order, so that lists come back in that order.
        let order = terms.sorted();
        let mut places = vec![0; order.len()];
        (0..).zip(&order).for_each(|(place, &term)| places[term as usize] = place);
        term_of.iter_mut().filter(|term| **term != STOP).for_each(|term| *term = places[*term as usize]);
        self.backend.invert(&self.term_of, order.len() as u32, &mut self.run)?;
        Ok(Lists { of: self, order })
    }
}

/// Pieces begin at multiples of this.
pub(crate) const ROW_BYTES: usize = 64;

#[derive(Debug)]
pub(crate) struct Lists<'a> {
    of: &'a mut GpuAccumulator,
    /// Numbers of the terms, in byte order of the terms.
    order: Vec<u32>,
}

impl RunSource for Lists<'_> {
    fn bytes(&self) -> usize {
        self.of.run.lists.len() + self.of.terms.bytes() + self.of.documents_bytes
    }

    fn is_empty(&self) -> bool {
        self.of.segments.is_empty()
    }

    fn for_each_list(&self, visit: &mut ListVisitor<'_>) -> io::Result<()> {
        let InvertedRun { lists, starts, .. } = &self.of.run;
        let ends = starts.iter().skip(1).map(|&start| start as usize).chain([lists.len()]);
        for ((&term, &start), end) in self.order.iter().zip(starts).zip(ends) {
            visit(self.of.terms.word(term), &lists[start as usize..end])?;
        }
        Ok(())
    }

    fn take_segments(&mut self) -> Vec<Segment> {
        let lengths = &self.of.run.doc_lengths;
        let take = |(mut segment, mut documents): (Segment, SegmentDocuments)| {
            documents.set_lengths(&lengths[segment.first_doc as usize..][..segment.num_docs as usize]);
            segment.documents = documents.encode();
            segment
        };
        let segments = self.of.segments.drain(..).map(take).collect();
        (self.of.num_docs, self.of.text_bytes, self.of.documents_bytes) = (0, 0, 0);
        segments
    }
}
