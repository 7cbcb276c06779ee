//! Building an index from posting lists.

use std::path::Path;

use super::{Bm25, IndexError};

/// Writes an index, list after list in byte order of the terms.
#[derive(Debug)]
pub struct IndexBuilder {}

impl IndexBuilder {
    /// Starts an index of documents with these lengths (tokens) and external ids, in order of [`DocId`](crate::ids::DocId).
    #[must_use]
    pub fn new(doc_lengths: Vec<u32>, external_ids: Vec<String>, bm25: Bm25) -> Self {
        todo!("{doc_lengths:?} {external_ids:?} {bm25:?}")
    }

    /// Adds the next term's postings: `(document, frequency)`, ascending by document, frequencies at least 1.
    ///
    /// # Errors
    /// If terms or postings are out of order, or out of range.
    pub fn add(&mut self, term: &str, postings: &[(u32, u32)]) -> Result<(), IndexError> {
        todo!("{term} {postings:?}")
    }

    /// Writes the index into the folder `dir`, whole or not at all.
    ///
    /// # Errors
    /// If nothing was added, or the file system refuses.
    pub fn write(self, dir: &Path) -> Result<(), IndexError> {
        todo!("{dir:?}")
    }
}
