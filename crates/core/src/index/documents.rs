//! Lengths and names of documents, from memory or elsewhere.

use std::io;

/// Visitor of documents. Its arguments are a document's length in tokens and its name.
pub type VisitDocument<'a> = dyn FnMut(u32, Option<&[u8]>) -> io::Result<()> + 'a;

/// A source of documents' lengths and names. It can be read repeatedly, so that documents need not be in memory.
pub trait DocumentSource {
    /// Passes the documents to `visit` in order. Either all documents have names or none has.
    ///
    /// # Errors
    /// The first error of `visit` or of reading.
    fn for_each(&self, visit: &mut VisitDocument<'_>) -> io::Result<()>;
}

/// Documents in memory.
#[derive(Debug)]
pub(super) struct InMemory {
    pub(super) lengths: Vec<u32>,
    /// One name per document, or none at all.
    pub(super) ids: Vec<String>,
}

impl DocumentSource for InMemory {
    fn for_each(&self, visit: &mut VisitDocument<'_>) -> io::Result<()> {
        let mut ids = self.ids.iter();
        self.lengths.iter().try_for_each(|&length| visit(length, ids.next().map(String::as_bytes)))
    }
}
