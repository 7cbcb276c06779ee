//! Collections that come as posting lists instead of text, in exchange files.

use std::collections::HashMap;
use std::path::Path;

use tandem_base::files::InputError;

/// A term with its postings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermList {
    /// The term.
    pub term: String,
    /// The numbers of documents with the term, ascending, from 0.
    pub docs: Vec<u32>,
    /// The term's frequency in each document, at least 1.
    pub freqs: Vec<u32>,
}

/// The documents of an inverted collection, by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentTable {
    /// Tokens in each document.
    pub lengths: Vec<u32>,
    /// Their names in the collection; empty where it gives none.
    pub external_ids: Vec<String>,
}

impl DocumentTable {
    /// Refuses names that several documents have; `place` describes the place of a document's name. Fails with both
    /// places.
    pub(super) fn check_names(&self, path: &Path, place: impl Fn(usize) -> String) -> Result<(), InputError> {
        let mut first: HashMap<&str, usize> = HashMap::with_capacity(self.external_ids.len());
        for (number, name) in self.external_ids.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            if let Some(before) = first.insert(name, number) {
                let (before, place) = (place(before), place(number));
                let message = format!("{place}: id {name:?} is already that of {before}, expected one document an id");
                return Err(InputError::file(path, message));
            }
        }
        Ok(())
    }
}

/// Posting lists read one after another, from any form of file.
pub trait ListSource {
    /// The number of lists.
    fn num_lists(&self) -> u64;

    /// Refuses names that several documents have. Fails with both places.
    fn check_names(&self) -> Result<(), InputError>;

    /// Hands over the documents and keeps an empty table.
    fn take_documents(&mut self) -> DocumentTable;

    /// Reads the next list, in byte order of the terms, into `list`; returns `false` after the last. Fails if the file
    /// is damaged, or breaks the rules of [`TermList`]: with the place, and what was expected there.
    fn next_list(&mut self, list: &mut TermList) -> Result<bool, InputError>;

    /// The [`Tokenizer`](super::Tokenizer) that made the terms, if the file names it.
    fn tokenizer_name(&self) -> Option<String> {
        None
    }

    /// Notes for the user on a file that can be read, one sentence each. They are complete once all lists are read.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
