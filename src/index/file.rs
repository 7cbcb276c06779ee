//! The index file, memory-mapped.

use std::borrow::Cow;
use std::path::Path;

use super::{BlockHeader, Bm25, IndexError, PostingList, TermEntry};
use crate::ids::{DocId, TermId};

/// An open index. Cheap to share (`Arc<Index>`); everything is read from the mapped file.
#[derive(Debug)]
pub struct Index {}

impl Index {
    /// Opens the index in folder `dir`, checking magic number, version, lengths and checksums.
    ///
    /// # Errors
    /// If it is missing, truncated, damaged or of another version: what is wrong, and what would mend it.
    pub fn open(dir: &Path) -> Result<Self, IndexError> {
        todo!("{dir:?}")
    }
    /// Documents.
    #[must_use]
    pub fn num_docs(&self) -> u32 {
        todo!()
    }
    /// Distinct terms.
    #[must_use]
    pub fn num_terms(&self) -> u32 {
        todo!()
    }
    /// Postings in all lists.
    #[must_use]
    pub fn num_postings(&self) -> u64 {
        todo!()
    }
    /// Tokens in all documents.
    #[must_use]
    pub fn num_tokens(&self) -> u64 {
        todo!()
    }
    /// Mean tokens a document.
    #[must_use]
    pub fn average_length(&self) -> f64 {
        todo!()
    }
    /// Tokens of each document.
    #[must_use]
    pub fn doc_lengths(&self) -> &[u32] {
        todo!()
    }
    /// The BM25 parameters that the stored impacts were computed with.
    #[must_use]
    pub fn built_with(&self) -> Bm25 {
        todo!()
    }
    /// How text was cut into terms when this index was built, so that queries are cut alike.
    #[must_use]
    pub fn tokenizer_name(&self) -> &str {
        todo!()
    }
    /// The term's number, if it is in the vocabulary.
    #[must_use]
    pub fn term(&self, term: &str) -> Option<TermId> {
        todo!("{term}")
    }
    /// The term's text.
    #[must_use]
    pub fn term_text(&self, term: TermId) -> String {
        todo!("{term}")
    }
    /// The document's id in its collection.
    #[must_use]
    pub fn external_id(&self, doc: DocId) -> Cow<'_, str> {
        todo!("{doc}")
    }
    /// The term's postings.
    ///
    /// # Panics
    /// If there is no such term.
    #[must_use]
    pub fn list(&self, term: TermId) -> PostingList<'_> {
        todo!("{term}")
    }
    /// Identifies the content: equal for equal indexes (a hash of the section checksums).
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        todo!()
    }
    /// All term entries, for upload to a device.
    #[must_use]
    pub fn term_entries(&self) -> &[TermEntry] {
        todo!()
    }
    /// All block headers, for upload to a device.
    #[must_use]
    pub fn block_headers(&self) -> &[BlockHeader] {
        todo!()
    }
    /// All packed bits, for upload to a device.
    #[must_use]
    pub fn payload(&self) -> &[u32] {
        todo!()
    }
}
