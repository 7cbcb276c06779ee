//! What an index keeps of documents, from wherever it is.

use std::io;

/// What is shown a document's length, in tokens, and its name.
pub type VisitDocument<'a> = dyn FnMut(u32, Option<&[u8]>) -> io::Result<()> + 'a;

/// Lengths and names of documents, in their order, as often as they are asked for: they need not be in memory.
pub trait DocumentSource {
    /// Shows `visit` each document; either all have a name or none has.
    ///
    /// # Errors
    /// Those of `visit`, or if they can't be read.
    fn for_each(&self, visit: &mut VisitDocument<'_>) -> io::Result<()>;
}

/// Documents in memory.
#[derive(Debug)]
pub(super) struct InMemory {
    pub(super) lengths: Vec<u32>,
    /// One a document, or none.
    pub(super) ids: Vec<String>,
}

impl DocumentSource for InMemory {
    fn for_each(&self, visit: &mut VisitDocument<'_>) -> io::Result<()> {
        let mut ids = self.ids.iter();
        self.lengths.iter().try_for_each(|&length| visit(length, ids.next().map(String::as_bytes)))
    }
}
