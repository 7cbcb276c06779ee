//! Collections that come as posting lists, not as text: what exchange files hold.

use std::collections::HashMap;
use std::path::Path;

use crate::files::InputError;

/// A term and its postings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TermList {
    /// The term.
    pub term: String,
    /// The documents that contain it, ascending, from 0.
    pub docs: Vec<u32>,
    /// How often each contains it, at least 1.
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
    /// Refuses names that several documents have; `place` says where the name of a document stands.
    ///
    /// # Errors
    /// With both places.
    pub(crate) fn check_names(&self, path: &Path, place: impl Fn(usize) -> String) -> Result<(), InputError> {
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

/// Posting lists that are read one after another, whatever file they stand in.
pub trait ListSource {
    /// How many lists there are.
    fn num_lists(&self) -> u64;

    /// Hands over the documents; what stays is empty.
    fn take_documents(&mut self) -> DocumentTable;

    /// Reads the next list, in byte order of the terms, into `list`; `false` past the last.
    ///
    /// # Errors
    /// If the file is damaged, or breaks what [`TermList`] promises: where, and what was expected.
    fn next_list(&mut self, list: &mut TermList) -> Result<bool, InputError>;

    /// The [`Tokenizer`](super::Tokenizer) that the terms were made with, where the file says so.
    fn tokenizer_name(&self) -> Option<String> {
        None
    }

    /// What the user should know of the file though it can be read, a sentence each. Complete once all lists are read.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
