//! Documents as vectors of weighted terms, in Anserini's JSON lines: `{"id": "7", "vector": {"tides": 12, "ocean": 3}}`.
//!
//! Learned sparse models such as SPLADE and uniCOIL write them. Whole weights up to [`MAX_IMPACT`] are impacts as they are. If the
//! collection has any other weight, all are scaled, so that the largest becomes [`MAX_IMPACT`], and rounded, halves up, to at
//! least 1. Other fields are ignored.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tandem_base::files::{InputError, json_message, read_lines};

use super::jsonl::Id;
use super::{DocumentTable, ListSource, TermList};
use crate::index::MAX_IMPACT;

/// The lists of a file of vectors. Memory holds all of them, in eight bytes per posting.
#[derive(Debug)]
pub struct VectorReader {
    path: PathBuf,
    documents: DocumentTable,
    /// The line of each document.
    lines: Vec<u64>,
    num_lists: u64,
    lists: std::collections::btree_map::IntoIter<String, List>,
    /// The factor of all weights.
    scale: f32,
}

#[derive(Debug, Default)]
struct List {
    docs: Vec<u32>,
    weights: Vec<f32>,
}

#[derive(Deserialize)]
struct Record<'a> {
    #[serde(borrow, alias = "_id", alias = "docid")]
    id: Id<'a>,
    #[serde(borrow)]
    vector: BTreeMap<Cow<'a, str>, f64>,
}

impl VectorReader {
    /// Reads a file, plain, in gzip or in zstd. Fails if it can't be read, or a line is not an object with `id` and a
    /// `vector` of numbers above 0: with line and column.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let mut documents = DocumentTable::default();
        let mut lists: BTreeMap<String, List> = BTreeMap::new();
        let (mut lines, mut largest, mut are_whole) = (Vec::new(), 0.0_f32, true);
        for read in read_lines(path)? {
            let (line, text) = read?;
            if text.trim().is_empty() {
                continue;
            }
            let column = 1 + text.len() - text.trim_start().len();
            if !text[column - 1..].starts_with('{') {
                return Err(InputError::at(path, line, column as u64, "expected an object with `id` and `vector`"));
            }
            let record: Record<'_> = serde_json::from_str(&text).map_err(|e| {
                let message = format!("{}, expected an object with `id` and `vector`", json_message(&e));
                InputError::at(path, line, e.column().max(1) as u64, message)
            })?;
            let doc = documents.external_ids.len() as u32;
            let mut length = 0.0;
            for (term, weight) in record.vector {
                if !(weight > 0.0 && weight < 1e9) {
                    let message =
                        format!("the weight of {term:?} is {weight}, expected a number above 0 and below 1e9");
                    return Err(InputError::line(path, line, message));
                }
                if term.is_empty() || term.contains(char::is_whitespace) {
                    let message = format!("a weight for {term:?}, expected one for a single term");
                    return Err(InputError::line(path, line, message));
                }
                let weight = weight as f32;
                (largest, are_whole) = (largest.max(weight), are_whole && weight.fract() == 0.0);
                length += weight;
                if !lists.contains_key(&*term) {
                    lists.insert(term.clone().into_owned(), List::default());
                }
                let list = lists.get_mut(&*term).expect("it was inserted");
                list.docs.push(doc);
                list.weights.push(weight);
            }
            lines.push(line);
            documents.external_ids.push(record.id.0.into_owned());
            documents.lengths.push(length.ceil() as u32);
        }
        let most = MAX_IMPACT as f32;
        let scale = if are_whole && largest <= most { 1.0 } else { most / largest };
        Ok(Self {
            path: path.to_owned(),
            documents,
            lines,
            num_lists: lists.len() as u64,
            lists: lists.into_iter(),
            scale,
        })
    }
}

impl ListSource for VectorReader {
    fn num_lists(&self) -> u64 {
        self.num_lists
    }

    fn check_names(&self) -> Result<(), InputError> {
        self.documents.check_names(&self.path, |number| format!("line {}", self.lines[number]))
    }

    fn take_documents(&mut self) -> DocumentTable {
        std::mem::take(&mut self.documents)
    }

    fn next_list(&mut self, list: &mut TermList) -> Result<bool, InputError> {
        let Some((term, List { docs, weights })) = self.lists.next() else { return Ok(false) };
        let freqs = weights.iter().map(|weight| ((weight * self.scale).round() as u32).max(1)).collect();
        *list = TermList { term, docs, freqs };
        Ok(true)
    }

    fn notes(&self) -> Vec<String> {
        let noted = (self.scale != 1.0).then(|| format!("weights are multiplied by {:.4e} and rounded", self.scale));
        noted.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<TermList>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.jsonl");
        std::fs::write(&path, text).unwrap();
        let mut reader =
            VectorReader::open(&path).map_err(|e| e.to_string().split_once("v.jsonl").unwrap().1.to_owned())?;
        let (mut lists, mut list) = (Vec::new(), TermList::default());
        while reader.next_list(&mut list).unwrap() {
            lists.push(list.clone());
        }
        Ok(lists)
    }

    #[test]
    fn vectors_become_lists_in_the_order_of_terms() {
        let text = "{\"id\": 1, \"contents\": \"x\", \"vector\": {\"tides\": 12, \"ocean\": 3}}\n\n{\"id\": \"b\", \"vector\": \
                    {\"tides\": 200}}\n";
        let list = |term: &str, docs: &[u32], freqs: &[u32]| TermList {
            term: term.to_owned(),
            docs: docs.to_vec(),
            freqs: freqs.to_vec(),
        };
        assert_eq!(read(text).unwrap(), [list("ocean", &[0], &[3]), list("tides", &[0, 1], &[12, 200])]);
        let text = "{\"id\": 1, \"vector\": {\"a\": 2.5, \"b\": 0.5}}\n{\"id\": 2, \"vector\": {\"a\": 0.001}}";
        assert_eq!(read(text).unwrap(), [list("a", &[0, 1], &[255, 1]), list("b", &[0], &[51])]);
    }

    #[test]
    fn what_is_no_vector_is_refused_with_its_place() {
        for (text, expected) in [
            (
                "{\"id\": 1, \"vector\": {\"a\": 0}}",
                ":1: the weight of \"a\" is 0, expected a number above 0 and below 1e9",
            ),
            (
                "\n{\"id\": 1, \"text\": \"a\"}",
                ":2:22: missing field `vector`, expected an object with `id` and `vector`",
            ),
            ("[1]", ":1:1: expected an object"),
            ("{\"id\": 1, \"vector\": {\"a b\": 1}}", ":1: a weight for \"a b\", expected one for a single term"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
