//! A builder of small indexes from posting lists in memory.

use std::path::Path;

use super::{Bm25, IndexError, IndexWriter, ListEncoder};

/// Collects lists in memory, in byte order of the terms, and writes the index. Larger collections use [`ListEncoder`]s
/// and an [`IndexWriter`] directly.
#[derive(Debug)]
pub struct IndexBuilder {
    doc_lengths: Vec<u32>,
    external_ids: Vec<String>,
    bm25: Bm25,
    tokenizer: String,
    encoder: ListEncoder,
}

impl IndexBuilder {
    /// Starts an index of documents with these lengths (tokens) and external ids, in order of
    /// [`DocId`](crate::base::ids::DocId).
    ///
    /// `external_ids` may be empty. Documents are then named by their numbers.
    #[must_use]
    pub fn new(doc_lengths: Vec<u32>, external_ids: Vec<String>, bm25: Bm25) -> Self {
        let tokens: u64 = doc_lengths.iter().map(|&length| u64::from(length)).sum();
        let norms = bm25.norms(&doc_lengths, tokens as f64 / doc_lengths.len().max(1) as f64);
        let encoder = ListEncoder::new(norms.into());
        Self { doc_lengths, external_ids, bm25, tokenizer: "ascii".to_owned(), encoder }
    }

    /// Sets the tokenizer's name, which is `ascii` by default.
    #[must_use]
    pub fn tokenizer(mut self, name: &str) -> Self {
        name.clone_into(&mut self.tokenizer);
        self
    }

    /// Adds the next term's postings: `(document, frequency)`, ascending by document, frequencies at least 1.
    ///
    /// # Errors
    /// If terms or postings are out of order, or out of range.
    pub fn add(&mut self, term: &str, postings: &[(u32, u32)]) -> Result<(), IndexError> {
        self.encoder.add(term, postings)
    }

    /// Writes the index into the folder `dir`, whole or not at all.
    ///
    /// # Errors
    /// If no list was added, or the file system fails.
    pub fn write(mut self, dir: &Path) -> Result<(), IndexError> {
        let mut writer = IndexWriter::create(dir, self.doc_lengths, self.external_ids, self.bm25, &self.tokenizer)?;
        writer.append(&self.encoder.take())?;
        writer.finish()
    }
}
