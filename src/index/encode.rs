//! From postings to packed lists, on any number of threads.
//!
//! Each thread fills a [`ListEncoder`] with a range of the vocabulary and hands over [`EncodedLists`]; an
//! [`IndexWriter`](super::IndexWriter) appends those in order of the terms. The file does not depend on how the vocabulary
//! was cut: padding is added on writing.

use std::sync::Arc;

use super::codec::{pack_docs, pack_freqs};
use super::{BLOCK_LEN, BlockHeader, Bm25, IndexError, TermEntry};

/// Packed lists of a range of the vocabulary, ready to be appended to an index.
#[derive(Debug, Default)]
pub struct EncodedLists {
    /// The terms' bytes, one after another.
    pub(super) text: Vec<u8>,
    /// Where each term ends in `text`.
    pub(super) text_ends: Vec<usize>,
    /// One a term; `payload_word` and `first_block` count from the start of this chunk.
    pub(super) entries: Vec<TermEntry>,
    pub(super) headers: Vec<BlockHeader>,
    /// The lists' words without padding between them.
    pub(super) payload: Vec<u32>,
}

impl EncodedLists {
    /// Lists in the chunk.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What the chunk holds in memory, roughly.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.text.len() + self.entries.len() * 32 + self.headers.len() * 16 + self.payload.len() * 4
    }

    /// The term at `position` in the chunk.
    pub(super) fn term(&self, position: usize) -> &[u8] {
        let start = position.checked_sub(1).map_or(0, |before| self.text_ends[before]);
        &self.text[start..self.text_ends[position]]
    }

    /// The words of the list at `position`.
    pub(super) fn words(&self, position: usize) -> &[u32] {
        let start = self.entries[position].payload_word as usize;
        let end = self.entries.get(position + 1).map_or(self.payload.len(), |next| next.payload_word as usize);
        &self.payload[start..end]
    }
}

/// Packs posting lists; one a thread.
#[derive(Debug)]
pub struct ListEncoder {
    norms: Arc<[f32]>,
    lists: EncodedLists,
    docs: Vec<u32>,
    freqs: Vec<u32>,
}

impl ListEncoder {
    /// An encoder for the documents with these BM25 norms ([`IndexWriter::norms`](super::IndexWriter::norms)).
    #[must_use]
    pub fn new(norms: Arc<[f32]>) -> Self {
        Self { norms, lists: EncodedLists::default(), docs: Vec::new(), freqs: Vec::new() }
    }

    /// Adds the next term's postings: `(document, frequency)`, ascending by document, frequencies at least 1.
    ///
    /// # Errors
    /// If terms or postings are out of order, or out of range.
    pub fn add(&mut self, term: &str, postings: &[(u32, u32)]) -> Result<(), IndexError> {
        let (mut docs, mut freqs) = (std::mem::take(&mut self.docs), std::mem::take(&mut self.freqs));
        docs.clear();
        freqs.clear();
        docs.extend(postings.iter().map(|p| p.0));
        freqs.extend(postings.iter().map(|p| p.1));
        let result = self.add_columns(term, &docs, &freqs);
        (self.docs, self.freqs) = (docs, freqs);
        result
    }

    /// Adds the next term's postings, documents and frequencies apart and equally many.
    ///
    /// # Errors
    /// As [`ListEncoder::add`].
    pub fn add_columns(&mut self, term: &str, docs: &[u32], freqs: &[u32]) -> Result<(), IndexError> {
        self.check(term, docs, freqs)?;
        let lists = &mut self.lists;
        let payload_start = lists.payload.len();
        let first_block = lists.headers.len();
        let mut max_impact = 0.0_f32;
        let mut previous = None;
        for (docs, freqs) in docs.chunks(BLOCK_LEN).zip(freqs.chunks(BLOCK_LEN)) {
            let word_offset = lists.payload.len() - payload_start;
            let doc_bits = pack_docs(previous, docs, &mut lists.payload);
            let freq_bits = pack_freqs(freqs, &mut lists.payload);
            let norms = docs.iter().map(|&doc| self.norms[doc as usize]);
            let block_max = Bm25::max_impact(freqs.iter().copied().zip(norms));
            let last_doc = docs[docs.len() - 1];
            lists.headers.push(BlockHeader {
                last_doc,
                // A list has fewer than 2^31 postings of at most 8 bytes: 2^32 words are never reached.
                word_offset: word_offset as u32,
                doc_bits,
                freq_bits,
                len_minus_one: (docs.len() - 1) as u8,
                reserved: 0,
                max_impact: block_max,
            });
            max_impact = max_impact.max(block_max);
            previous = Some(last_doc);
        }
        lists.entries.push(TermEntry {
            payload_word: payload_start as u64,
            first_block: u32::try_from(first_block)
                .map_err(|_| IndexError::Collection("a chunk of lists has over 2^32 blocks".into()))?,
            doc_freq: docs.len() as u32,
            max_impact,
            reserved: 0,
        });
        lists.text.extend_from_slice(term.as_bytes());
        lists.text_ends.push(lists.text.len());
        Ok(())
    }

    /// What is packed so far, in bytes: when to [`take`](Self::take) it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lists.bytes()
    }

    /// Hands over what is packed so far; the next term starts a new chunk.
    #[must_use]
    pub fn take(&mut self) -> EncodedLists {
        std::mem::take(&mut self.lists)
    }

    fn check(&self, term: &str, docs: &[u32], freqs: &[u32]) -> Result<(), IndexError> {
        let refuse = |what: String| Err(IndexError::Collection(format!("list of term {term:?}: {what}")));
        if let Some(last) = self.lists.len().checked_sub(1)
            && self.lists.term(last) >= term.as_bytes()
        {
            let last = String::from_utf8_lossy(self.lists.term(last));
            return refuse(format!("comes after {last:?}, expected ascending byte order"));
        }
        if docs.is_empty() || docs.len() != freqs.len() {
            return refuse(format!("{} documents and {} frequencies", docs.len(), freqs.len()));
        }
        if let Some(at) = docs.windows(2).position(|pair| pair[0] >= pair[1]) {
            return refuse(format!("document {} after {}, expected ascending documents", docs[at + 1], docs[at]));
        }
        let last_doc = docs[docs.len() - 1];
        if last_doc as usize >= self.norms.len() {
            return refuse(format!("document {last_doc} of {}", self.norms.len()));
        }
        if let Some(at) = freqs.iter().position(|&freq| freq == 0) {
            return refuse(format!("document {} has frequency 0, expected at least 1", docs[at]));
        }
        Ok(())
    }
}
