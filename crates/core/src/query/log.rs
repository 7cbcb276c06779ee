//! Query logs: files of queries as people typed them.
//!
//! A file, plain or packed (`.gz`, `.zst`), is in one of five forms. The first line that is not blank decides:
//!
//! | form | a line | told by |
//! | --- | --- | --- |
//! | JSON lines | `{"id": "q1", "query": "ocean tides"}`, `id` optional, other fields passed over | `{` comes first |
//! | tab-separated | `q1<TAB>ocean tides` | the line has a tab |
//! | TREC topics | `<num> Number: 301`, `<title> ocean tides`, see [`topics`](super::topics) | `<` comes first |
//! | PISA | `301:ocean tides` | an id comes first: letters, digits, `-`, `_`, `.`, the last a digit; then a colon |
//! | plain | `ocean tides` | otherwise |
//!
//! Every line must keep to the form of the first. Blank lines are passed over. An entry's number, which becomes its
//! [`QueryId`], counts entries from 0; its label is its `id`, or that number where there is none.

use std::io::BufRead;
use std::path::Path;

use serde::Deserialize;

use super::Query;
use super::topics::parse_topics;
use crate::base::ids::QueryId;
use crate::files::{InputError, json_message, open_text, read_line};
use crate::index::Index;

/// One query of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its name in the log, for TREC runs; its number where the log gives none.
    pub label: String,
    /// What was typed.
    pub text: String,
    /// The line that it stands in, from 1.
    pub line: u64,
}

/// A log's queries, looked up in an index, and what was lost on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryLog {
    /// Queries that have a term in the index; ids are positions in the log, so they may have gaps.
    pub queries: Vec<Query>,
    /// Entries in the log.
    pub num_entries: usize,
    /// Terms that are not in the index; over all entries.
    pub dropped_terms: u64,
    /// Entries that have no term in the index; they are not among the queries.
    pub empty_queries: u64,
}

/// The form of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    JsonLines,
    TabSeparated,
    Topics,
    Pisa,
    Plain,
}

impl Form {
    fn of(line: &str) -> Self {
        if line.trim_start().starts_with('{') {
            Self::JsonLines
        } else if line.contains('\t') {
            Self::TabSeparated
        } else if line.trim_start().starts_with('<') {
            Self::Topics
        } else if line.split_once(':').is_some_and(|(id, _)| is_pisa_id(id)) {
            Self::Pisa
        } else {
            Self::Plain
        }
    }
}

/// Whether this is an id and no word of a query: `701`, `wt09-1`, but not `site` or `http`.
fn is_pisa_id(text: &str) -> bool {
    text.ends_with(|last: char| last.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[derive(Deserialize)]
struct JsonEntry {
    id: Option<JsonId>,
    query: String,
}

/// Ids are text or numbers: both are common.
#[derive(Deserialize)]
#[serde(untagged)]
enum JsonId {
    Text(String),
    Number(serde_json::Number),
}

/// Reads a query log.
///
/// # Errors
/// With the line and, where it helps, the column: bytes that are not UTF-8, JSON that is not an object with a `query`,
/// lines that lack the tab or colon that the first line has, topics without number or title; or no queries at all.
pub fn read_log(path: &Path) -> Result<Vec<LogEntry>, InputError> {
    parse_log(path, open_text(path)?)
}

/// Reads a query log from any source; `name` stands for it in errors.
///
/// # Errors
/// As [`read_log`].
pub fn parse_log(name: impl AsRef<Path>, mut reader: impl BufRead) -> Result<Vec<LogEntry>, InputError> {
    let path = name.as_ref();
    let mut entries: Vec<LogEntry> = Vec::new();
    let mut form = None;
    let mut text = String::new();
    for line in 1.. {
        if !read_line(path, &mut reader, line, &mut text)? {
            break;
        }
        let text = text.trim_end_matches(['\n', '\r']);
        if text.trim().is_empty() {
            continue;
        }
        let form = *form.get_or_insert_with(|| Form::of(text));
        let (label, text) = match form {
            Form::Plain => (None, text),
            Form::TabSeparated => match text.split_once('\t') {
                Some((id, text)) => (Some(id.trim().to_owned()), text),
                None => {
                    return Err(InputError::line(path, line, "no tab, expected `id<TAB>query` as in the first line"));
                }
            },
            Form::Pisa => match text.split_once(':') {
                Some((id, text)) => (Some(id.trim().to_owned()), text),
                None => {
                    return Err(InputError::line(path, line, "no colon, expected `id:query` as in the first line"));
                }
            },
            Form::Topics => return read_topics(path, line, text, reader),
            Form::JsonLines => {
                let entry: JsonEntry = serde_json::from_str(text).map_err(|e| json_error(path, line, &e))?;
                let label = entry.id.map(|id| match id {
                    JsonId::Text(id) => id,
                    JsonId::Number(id) => id.to_string(),
                });
                entries.push(entry_of(label, &entry.query, entries.len(), line));
                continue;
            }
        };
        entries.push(entry_of(label, text, entries.len(), line));
    }
    if entries.is_empty() {
        return Err(InputError::file(path, "no queries, expected one a line"));
    }
    Ok(entries)
}

/// Reads topics that begin on line `line`, with `first_line`.
fn read_topics(
    path: &Path,
    line: u64,
    first_line: &str,
    mut reader: impl BufRead,
) -> Result<Vec<LogEntry>, InputError> {
    // Blank lines in place of those before: lines keep their numbers.
    let mut text = "\n".repeat(line as usize - 1) + first_line + "\n";
    let mut next = String::new();
    for line in line + 1.. {
        if !read_line(path, &mut reader, line, &mut next)? {
            break;
        }
        text += &next;
    }
    parse_topics(path, &text)
}

fn entry_of(label: Option<String>, text: &str, number: usize, line: u64) -> LogEntry {
    let label = label.filter(|label| !label.is_empty()).unwrap_or_else(|| number.to_string());
    LogEntry { label, text: text.trim().to_owned(), line }
}

fn json_error(path: &Path, line: u64, error: &serde_json::Error) -> InputError {
    let message = format!("{}, expected an object with `query`", json_message(error));
    InputError::at(path, line, error.column().max(1) as u64, message)
}

/// Reads the log at `path` and looks its queries up in `index`; `terms_of` cuts text into terms as the index did.
///
/// # Errors
/// Those of [`read_log`], a query of more terms than [`Query::MAX_TERMS`], and a log of which no query has a term in the
/// index.
pub fn prepare_queries(
    path: &Path,
    index: &Index,
    terms_of: impl Fn(&str) -> Vec<String>,
) -> Result<QueryLog, InputError> {
    let entries = read_log(path)?;
    let log = look_up(&entries, index, terms_of);
    if let Some(long) = log.queries.iter().find(|query| query.terms.len() > Query::MAX_TERMS) {
        let message = format!("{} terms, expected at most {}", long.terms.len(), Query::MAX_TERMS);
        return Err(InputError::line(path, entries[long.id.0 as usize].line, message));
    }
    if log.queries.is_empty() {
        let message = match log.num_entries {
            1 => String::from("its one query has no term in the index"),
            all => format!("none of its {all} queries has a term in the index"),
        };
        return Err(InputError::file(path, message));
    }
    Ok(log)
}

/// Looks up `entries` in `index`.
#[must_use]
pub fn look_up(entries: &[LogEntry], index: &Index, terms_of: impl Fn(&str) -> Vec<String>) -> QueryLog {
    let mut log = QueryLog { num_entries: entries.len(), ..QueryLog::default() };
    for (number, entry) in entries.iter().enumerate() {
        let terms = terms_of(&entry.text);
        match Query::prepare(QueryId(number as u32), &entry.label, &terms, index) {
            Some(query) => {
                log.dropped_terms += u64::from(query.dropped_terms);
                log.queries.push(query);
            }
            None => {
                log.dropped_terms += terms.len() as u64;
                log.empty_queries += 1;
            }
        }
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{Bm25, IndexBuilder};

    fn parsed(text: &str) -> Vec<(String, String, u64)> {
        parse_log("q", text.as_bytes()).unwrap().into_iter().map(|e| (e.label, e.text, e.line)).collect()
    }

    fn row(label: &str, text: &str, line: u64) -> (String, String, u64) {
        (label.into(), text.into(), line)
    }

    #[test]
    fn the_first_line_tells_the_form() {
        assert_eq!(parsed("ocean tides\r\n\n moon \n"), [row("0", "ocean tides", 1), row("1", "moon", 3)]);
        assert_eq!(parsed("\nq7\tocean  tides\n\tmoon\n"), [row("q7", "ocean  tides", 2), row("1", "moon", 3)]);
        assert_eq!(parsed("wt09-1:ocean: tides\n2 : moon"), [row("wt09-1", "ocean: tides", 1), row("2", "moon", 2)]);
        assert_eq!(parsed("site:moon.org\n12:30"), [row("0", "site:moon.org", 1), row("1", "12:30", 2)]);
        assert_eq!(parsed("\n \n<top>\n<num> Number: 7\n<title> moon\n</top>\n"), [row("7", "moon", 3)]);
        let json =
            "{\"query\": \"a{b\", \"id\": 5}\n{\"id\": \"x\", \"more\": [1], \"query\": \"ü\"}\n{\"query\": \"c\"}";
        assert_eq!(parsed(json), [row("5", "a{b", 1), row("x", "ü", 2), row("2", "c", 3)]);
    }

    #[test]
    fn packed_logs_read_alike() {
        let dir = tempfile::tempdir().unwrap();
        let (plain, packed) = (dir.path().join("q.tsv"), dir.path().join("q.tsv.zst"));
        std::fs::write(&plain, "1\ta b\n2\tc\n").unwrap();
        std::fs::write(&packed, zstd::encode_all(&b"1\ta b\n2\tc\n"[..], 3).unwrap()).unwrap();
        assert_eq!(read_log(&plain).unwrap(), read_log(&packed).unwrap());
    }

    #[test]
    fn refusals_name_the_place() {
        for (bytes, expected) in [
            (&b""[..], "q: no queries"),
            (b"\n \n", "q: no queries"),
            (b"a\nb\xff\n", "q:2:2: is not UTF-8"),
            (b"1\ta\n2 b\n", "q:2: no tab"),
            (b"1:a\n2 b\n", "q:2: no colon"),
            (b"\n<top>\n<num> 7\n</top>\n", "q:2: the topic that begins here has no query"),
            (b"{\"query\": \"a\"}\n{\"query\": 5}\n", "q:2:11: invalid type: integer `5`, expected a string"),
            (b"{\"query\": \"a\"}\nplain\n", "q:2:1: expected value"),
            (b"{\"id\": 5}\n", "q:1:9: missing field `query`"),
            (b"{\"query\": \"a", "q:1:12: EOF while parsing a string"),
        ] {
            let message = parse_log("q", bytes).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message:?}, expected {expected:?}");
        }
    }

    #[test]
    fn what_is_not_in_the_index_is_counted() {
        let dir = tempfile::tempdir().unwrap();
        let mut builder = IndexBuilder::new(vec![3, 3], Vec::new(), Bm25::default());
        builder.add("moon", &[(0, 1)]).unwrap();
        builder.add("tides", &[(0, 2), (1, 1)]).unwrap();
        builder.write(dir.path()).unwrap();
        let index = Index::open(dir.path()).unwrap();
        let path = dir.path().join("q.txt");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        std::fs::write(&path, "tides of moon\nfrogs and toads\nmoon moon\n").unwrap();
        let log = prepare_queries(&path, &index, words).unwrap();
        assert_eq!((log.num_entries, log.dropped_terms, log.empty_queries), (3, 4, 1));
        let ids: Vec<u32> = log.queries.iter().map(|query| query.id.0).collect();
        assert_eq!(ids, [0, 2]);
        assert_eq!((log.queries[1].terms.len(), log.queries[1].terms[0].qtf), (1, 2));
        std::fs::write(&path, "frogs\n").unwrap();
        let message = prepare_queries(&path, &index, words).unwrap_err().to_string();
        assert!(message.ends_with("its one query has no term in the index"), "{message}");
    }
}
