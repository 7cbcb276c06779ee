//! Reading a binary collection.

use std::fmt;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::sequence::{NUMBER_BYTES, SequenceFile};
use super::sibling;
use crate::corpus::{DocumentTable, ListSource, TermList};
use crate::files::{InputError, open_bytes};

/// Bytes of the sequence `1, N` with which only `.docs` begins; its lists are later by this much than those of `.freqs`.
const DOCS_HEAD_BYTES: u64 = 2 * NUMBER_BYTES;

/// The lists and documents of a binary collection.
///
/// Memory holds the documents and one list; also the terms if they are not in byte order.
pub struct PisaReader {
    path: PathBuf,
    docs: SequenceFile,
    freqs: SequenceFile,
    num_docs: u32,
    num_lists: u64,
    documents: DocumentTable,
    terms: Terms,
}

/// The source of the terms, in byte order.
enum Terms {
    /// The terms of the file, one after another.
    InOrder(Lines),
    /// The sorted terms, with the offsets of their lists in `.docs`.
    Picked(std::vec::IntoIter<(String, u64)>),
}

impl fmt::Debug for PisaReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PisaReader")
            .field("docs", &self.docs)
            .field("num_lists", &self.num_lists)
            .finish_non_exhaustive()
    }
}

impl PisaReader {
    /// Opens the collection whose `.docs` file is `path`: reads its documents and examines its terms.
    ///
    /// # Errors
    /// If a file can't be read, or the files disagree: with the byte or line, and what was expected there.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let mut docs = SequenceFile::open(path)?;
        let freqs = SequenceFile::open(&sibling(path, "freqs"))?;
        let num_docs = read_head(&mut docs)?;
        if freqs.len() + DOCS_HEAD_BYTES != docs.len() {
            let message = format!(
                "{} bytes, expected 8 less than the {} of {} (are they of one collection?)",
                freqs.len(),
                docs.len(),
                path.display()
            );
            return Err(InputError::file(&sibling(path, "freqs"), message));
        }
        let lengths = read_lengths(&sibling(path, "sizes"), num_docs)?;
        let external_ids = read_names(&sibling(path, "documents"), num_docs)?;
        let documents = DocumentTable { lengths, external_ids };
        let (terms, num_lists) = find_terms(path, &mut docs)?;
        Ok(Self { path: path.to_owned(), docs, freqs, num_docs, num_lists, documents, terms })
    }

    fn check(&self, list: &TermList, start: u64) -> Result<(), InputError> {
        let term = &list.term;
        let first = start + NUMBER_BYTES;
        let doc_at = |at: usize| first + at as u64 * NUMBER_BYTES;
        if list.docs.is_empty() {
            return Err(self.docs.error(start, format!("the list of {term:?} is empty, expected at least 1 document")));
        }
        if let Some(at) = list.docs.windows(2).position(|pair| pair[0] >= pair[1]) {
            let (before, after) = (list.docs[at], list.docs[at + 1]);
            let message = format!("the list of {term:?} has document {after} after {before}, expected ascending ones");
            return Err(self.docs.error(doc_at(at + 1), message));
        }
        if let Some(at) = list.docs.iter().position(|&doc| doc >= self.num_docs) {
            let message = format!("the list of {term:?} has document {} of {}", list.docs[at], self.num_docs);
            return Err(self.docs.error(doc_at(at), message));
        }
        let start = start - DOCS_HEAD_BYTES;
        if list.docs.len() != list.freqs.len() {
            let (docs, freqs) = (list.docs.len(), list.freqs.len());
            let message = format!("the list of {term:?} has {freqs} frequencies for {docs} documents");
            return Err(self.freqs.error(start, message));
        }
        if let Some(at) = list.freqs.iter().position(|&freq| freq == 0) {
            let message = format!("the list of {term:?} has frequency 0, expected at least 1");
            return Err(self.freqs.error(doc_at(at) - DOCS_HEAD_BYTES, message));
        }
        Ok(())
    }
}

impl ListSource for PisaReader {
    fn num_lists(&self) -> u64 {
        self.num_lists
    }

    fn check_names(&self) -> Result<(), InputError> {
        self.documents.check_names(&sibling(&self.path, "documents"), |number| format!("line {}", number + 1))
    }

    fn take_documents(&mut self) -> DocumentTable {
        std::mem::take(&mut self.documents)
    }

    fn next_list(&mut self, list: &mut TermList) -> Result<bool, InputError> {
        match &mut self.terms {
            Terms::InOrder(lines) => match lines.next()? {
                Some(term) => list.term = term,
                None if self.docs.is_at_end() => return Ok(false),
                None => {
                    let message = format!("continues after the lists of all {} terms of .terms", self.num_lists);
                    return Err(self.docs.error(self.docs.offset(), message));
                }
            },
            Terms::Picked(places) => {
                let Some((term, offset)) = places.next() else { return Ok(false) };
                list.term = term;
                self.docs.seek(offset)?;
                self.freqs.seek(offset - DOCS_HEAD_BYTES)?;
            }
        }
        let start = self.docs.offset();
        self.docs.read(&mut list.docs)?;
        self.freqs.read(&mut list.freqs)?;
        self.check(list, start)?;
        Ok(true)
    }
}

fn read_head(docs: &mut SequenceFile) -> Result<u32, InputError> {
    let mut head = Vec::new();
    if docs.length()? != 1 {
        return Err(docs.error(0, "expected a sequence of one number, the number of documents (is it a .docs file?)"));
    }
    docs.seek(0)?;
    docs.read(&mut head)?;
    match head[..] {
        [num_docs] if (1..1 << 31).contains(&num_docs) => Ok(num_docs),
        _ => Err(docs.error(NUMBER_BYTES, format!("{} documents, expected 1 to 2147483647", head[0]))),
    }
}

fn read_lengths(path: &Path, num_docs: u32) -> Result<Vec<u32>, InputError> {
    let mut sizes = SequenceFile::open(path)?;
    let mut lengths = Vec::new();
    sizes.read(&mut lengths)?;
    if lengths.len() != num_docs as usize || !sizes.is_at_end() {
        let message = format!("expected one sequence of {num_docs} lengths, as .docs has documents");
        return Err(sizes.error(0, message));
    }
    Ok(lengths)
}

/// The documents' names; empty if there is no such file.
fn read_names(path: &Path, num_docs: u32) -> Result<Vec<String>, InputError> {
    let Some(mut lines) = Lines::open(path)? else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    while let Some(name) = lines.next()? {
        if names.len() == num_docs as usize {
            return Err(lines.error(format!("more lines than the {num_docs} documents of .docs")));
        }
        names.push(name);
    }
    if names.len() < num_docs as usize {
        let message = format!("{} lines, expected a name for each of the {num_docs} documents of .docs", names.len());
        return Err(InputError::file(path, message));
    }
    Ok(names)
}

/// The source and number of the terms of the collection at `docs_path`; `docs` must be at the first list and stays there.
fn find_terms(docs_path: &Path, docs: &mut SequenceFile) -> Result<(Terms, u64), InputError> {
    let path = sibling(docs_path, "terms");
    let Some(mut lines) = Lines::open(&path)? else {
        let offsets = list_offsets(docs)?;
        let places = offsets.into_iter().enumerate().map(|(number, offset)| (number.to_string(), offset)).collect();
        return picked(places).map_err(|(term, _)| InputError::file(&path, format!("term {term:?} twice")));
    };
    let (mut count, mut before, mut is_sorted) = (0_u64, String::new(), true);
    while let Some(term) = lines.next()? {
        is_sorted &= count == 0 || before < term;
        before = term;
        count += 1;
    }
    let Some(mut lines) = Lines::open(&path)? else {
        return Err(InputError::file(&path, "was removed while it was read"));
    };
    if is_sorted {
        return Ok((Terms::InOrder(lines), count));
    }
    let offsets = list_offsets(docs)?;
    if offsets.len() as u64 != count {
        let message = format!("{count} terms for the {} lists of {}", offsets.len(), docs_path.display());
        return Err(InputError::file(&path, message));
    }
    let mut places = Vec::with_capacity(offsets.len());
    for offset in offsets {
        if let Some(term) = lines.next()? {
            places.push((term, offset));
        }
    }
    picked(places).map_err(|(term, _)| InputError::file(&path, format!("term {term:?} is on two lines")))
}

/// Sorts the offsets of lists by their terms.
///
/// # Errors
/// A term that occurs twice.
fn picked(mut places: Vec<(String, u64)>) -> Result<(Terms, u64), (String, u64)> {
    places.sort_unstable();
    if let Some(pair) = places.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(pair[1].clone());
    }
    let count = places.len() as u64;
    Ok((Terms::Picked(places.into_iter()), count))
}

fn list_offsets(docs: &mut SequenceFile) -> Result<Vec<u64>, InputError> {
    let first = docs.offset();
    let mut offsets = Vec::new();
    while !docs.is_at_end() {
        offsets.push(docs.offset());
        docs.skip()?;
    }
    docs.seek(first)?;
    Ok(offsets)
}

/// Lines of text without the line feed at their end.
struct Lines {
    reader: Box<dyn BufRead + Send>,
    path: PathBuf,
    number: u64,
}

impl Lines {
    /// Opens the file; `None` if there is none.
    fn open(path: &Path) -> Result<Option<Self>, InputError> {
        match path.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => Ok(Some(Self { reader: open_bytes(path)?, path: path.to_owned(), number: 0 })),
        }
    }

    fn error(&self, message: impl Into<String>) -> InputError {
        InputError::line(&self.path, self.number, message)
    }

    fn next(&mut self) -> Result<Option<String>, InputError> {
        self.number += 1;
        let mut bytes = Vec::new();
        let read = self.reader.read_until(b'\n', &mut bytes).map_err(|e| self.error(format!("cannot read: {e}")))?;
        if read == 0 {
            return Ok(None);
        }
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        let line = String::from_utf8(bytes);
        line.map(Some).map_err(|_| self.error("is not UTF-8 (convert the file, for example with iconv)"))
    }
}
