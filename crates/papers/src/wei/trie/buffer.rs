//! Buffers of parsers: parsed documents, regrouped by slot.

use tandem_engine::corpus::{Batch, Cutter, Skipped, Tokenizer};
use tandem_engine::indexing::SegmentDocuments;
use tandem_model::files::InputError;

use super::slots::{NUM_SLOTS, slot_of};
use super::stream::Stream;

/// Parsed documents, numbered from 0 in the buffer.
#[derive(Debug)]
pub(crate) struct Buffer {
    streams: Vec<Stream>,
    pub(crate) segments: Vec<SegmentDocuments>,
    pub(crate) num_docs: u32,
    pub(crate) text_bytes: u64,
    pub(crate) skipped: Skipped,
    pub(crate) tokens: u64,
}

impl Default for Buffer {
    fn default() -> Self {
        let streams = std::iter::repeat_with(Stream::default).take(NUM_SLOTS).collect();
        Self { streams, segments: Vec::new(), num_docs: 0, text_bytes: 0, skipped: Skipped::default(), tokens: 0 }
    }
}

/// Calls `push` with the bytes of each term of a text.
pub(crate) fn for_each_term(tokenizer: &Tokenizer, text: &str, cutter: &mut Cutter, mut push: impl FnMut(&[u8])) {
    let keeps_words = tokenizer.keeps_words();
    tokenizer.for_each_word(text, cutter, |word| {
        if keeps_words {
            return push(word);
        }
        let word = String::from_utf8_lossy(word);
        if let Some(term) = tokenizer.term_of(&word) {
            push(term.as_bytes());
        }
    });
}

impl Buffer {
    /// Parses a batch: cuts it into words, stems each of them as the paper does, omits stop words, and appends the
    /// bytes behind the slot's letters to the slot's stream. Fails if a document cannot be read; the buffer is unusable
    /// then.
    pub(crate) fn parse(
        &mut self,
        batch: &Batch,
        tokenizer: &Tokenizer,
        cutter: &mut Cutter,
    ) -> Result<(), InputError> {
        let mut documents = SegmentDocuments::new(batch.file(), batch.line_base());
        let Self { streams, num_docs, .. } = self;
        let skipped = batch.for_each(|document| {
            let mut length = 0;
            let mut push = |term: &[u8]| {
                let (slot, cut) = slot_of(term);
                streams[usize::from(slot)].push(*num_docs, &term[cut..]);
                length += 1;
            };
            for text in [&document.title, &document.text] {
                for_each_term(tokenizer, text, cutter, &mut push);
            }
            documents.push(&document.id, document.line, length);
            *num_docs += 1;
        })?;
        self.tokens += documents.lengths.iter().map(|&length| u64::from(length)).sum::<u64>();
        self.segments.push(documents);
        self.text_bytes += batch.bytes();
        self.skipped += skipped;
        Ok(())
    }

    /// Adds a term of `doc`, as a parser would.
    #[cfg(test)]
    pub(crate) fn push(&mut self, doc: u32, term: &[u8]) {
        let (slot, cut) = slot_of(term);
        self.streams[usize::from(slot)].push(doc, &term[cut..]);
        self.tokens += 1;
    }

    pub(crate) fn stream(&self, slot: u16) -> &Stream {
        &self.streams[usize::from(slot)]
    }

    pub(crate) fn clear(&mut self) {
        self.streams.iter_mut().for_each(Stream::clear);
        self.segments.clear();
        (self.num_docs, self.text_bytes, self.skipped, self.tokens) = (0, 0, Skipped::default(), 0);
    }
}
