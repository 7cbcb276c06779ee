//! Query logs: files of queries as people typed them, in any of several forms.
//!
//! The form is recognised by the content of all lines, never by the file's name:
//!
//! | form | such as | known by |
//! | --- | --- | --- |
//! | JSON | BEIR, Elasticsearch's slow logs and requests, Rally's queries; objects or arrays | `{` or `[` comes first |
//! | topics | `<num> Number: 301`, `<title> ocean tides`, see `topics.rs` | `<` comes first |
//! | slow log | `took[5ms], source[{"query": ...}]` | `took[` and `source[` |
//! | tab-separated | MS MARCO, AOL, ORCAS, Sogou, Excite | half of the lines or more have a tab |
//! | CSV | `id,query`, values perhaps in quotes | equal numbers of cells, and a header, numbers, times or quotes among them |
//! | colon-separated | `301:ocean tides`, `20001:1:ocean tides` (Million Query) | an id and a colon come first |
//! | plain | `ocean tides`, `TEST01 ocean tides` | otherwise |
//!
//! Columns of numbers, times, addresses, answers or names are not the query. A file with several possible query columns,
//! or none, is refused with the option that decides; so are records of servers, pages and dumps. Blank lines are passed
//! over. An entry's number, which becomes its [`QueryId`], counts entries from 0; its label is its id, or that number where
//! there is none. Queries may have weighted terms (`weights.rs`).

mod colon;
mod csv;
mod foreign;
mod form;
mod json;
mod names;
mod plain;
mod recognise;
mod table;
mod topics;
mod tsv;
mod weights;

pub use weights::{counted_terms, has_unused_weights};

use std::path::Path;

use tandem_base::base::ids::QueryId;
use tandem_base::base::named::named_enum;
use tandem_base::files::InputError;

use self::form::{Form, Source};
use self::recognise::{FORMS, recognised};
use self::table::Table;
use super::Query;
use crate::index::Index;
use crate::query::Text;

/// One query of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Its name in the log, for TREC runs; its number where the log gives none.
    pub label: String,
    /// The query as typed.
    pub text: String,
    /// Its line in the file, from 1.
    pub line: u64,
}

/// A log's entries, with a description of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The entries, at least one.
    pub entries: Vec<LogEntry>,
    /// Form, columns, encoding and size, in words.
    pub found: String,
}

named_enum! {
    /// The form of a file.
    pub enum LogFormat {
        Plain = "plain": "One query per line, with any content",
        Tsv = "tsv": "Columns separated by tabs",
        Csv = "csv": "Columns separated by commas, semicolons or bars, quoted or not",
        Colon = "colon": "An id, a colon and a query per line",
        Json = "json": "JSON objects, in sequence or in arrays",
        Topics = "topics": "TREC topics, in SGML or XML",
        SlowLog = "slow-log": "The slow log of a search engine, in lines",
    }
}

impl LogFormat {
    fn form(self) -> &'static Form {
        FORMS.iter().find(|form| form.format == self).unwrap_or(&plain::PLAIN)
    }
}

/// The user's choices for a log that can be read in several ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The form of the file.
    pub format: Option<LogFormat>,
    /// The column of the query, from 1.
    pub column: Option<usize>,
    /// The number of queries that are needed. A large file is read only as far as they reach, and its form recognised there.
    pub limit: Option<usize>,
}

/// Bytes of a log, decompressed, that are read at first if only some queries are needed.
const FIRST_BYTES: u64 = 1 << 20;
/// The most bytes of a log: reading takes up to twelve times as much memory.
const MOST_BYTES: u64 = 512 << 20;

impl LogOptions {
    /// These options, with the query in this column unless they name one.
    fn or_column(self, column: usize) -> Self {
        Self { column: self.column.or(Some(column)), ..self }
    }
}

/// A log's queries, looked up in an index, with counts of the losses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryLog {
    /// Queries with a term in the index; ids are positions in the log and may have gaps.
    pub queries: Vec<Query>,
    /// Entries in the log.
    pub num_entries: usize,
    /// Terms of all entries that are not in the index.
    pub dropped_terms: u64,
    /// Entries without a term in the index; they are not among the queries.
    pub empty_queries: u64,
    /// The description of the file, as in [`Log::found`].
    pub found: String,
}

/// Reads a query log. Fails with the line and, where it helps, the column: JSON without queries, lines that lack the
/// columns of most, topics without number or title. About the whole file: it is no log of queries, may be read in
/// several ways, or holds none.
pub fn read_log(path: &Path, options: &LogOptions) -> Result<Log, InputError> {
    read_until(path, options, |log| Ok((log.entries.len(), log)))
}

/// Reads more and more of a log until `use_of` finds as many queries as are needed in it.
fn read_until<T>(
    path: &Path,
    options: &LogOptions,
    use_of: impl Fn(Log) -> Result<(usize, T), InputError>,
) -> Result<T, InputError> {
    let mut most = if options.limit.is_some() { FIRST_BYTES } else { MOST_BYTES };
    loop {
        let (text, is_whole) = Text::start(path, most)?;
        if is_whole {
            return Ok(use_of(understood(path, text, options)?)?.1);
        }
        // The end of what was read may cut a query, or hide the form.
        if let (Some(needed), Ok(mut log)) = (options.limit, understood(path, text, options)) {
            log.entries.pop();
            log.found += &format!(" in the first {} MiB", most >> 20);
            if let Ok((found, used)) = use_of(log)
                && found >= needed
            {
                return Ok(used);
            }
        }
        if most >= MOST_BYTES {
            let message = format!(
                "has more than {} MiB of text (split it; where there is --limit, it reads the first queries only)",
                most >> 20
            );
            return Err(InputError::file(path, message));
        }
        most *= 4;
    }
}

/// Reads a query log from bytes; `name` is its file in errors. Fails as [`read_log`].
pub fn parse_log(name: impl AsRef<Path>, bytes: &[u8], options: &LogOptions) -> Result<Log, InputError> {
    let path = name.as_ref();
    understood(path, Text::decode(path, bytes.to_vec())?, options)
}

fn understood(path: &Path, text: Text, options: &LogOptions) -> Result<Log, InputError> {
    let Text { text, encoding } = text;
    let lines: Vec<(u64, &str)> = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).collect();
    let Table { entries, mut found } = match lines.first() {
        Some(_) => recognised(Source { path, text: &text, lines }, options)?,
        None => return Err(InputError::file(path, "no queries, expected one a line")),
    };
    if entries.is_empty() {
        return Err(InputError::file(path, format!("no queries ({found})")));
    }
    let words: usize = entries.iter().map(|entry| entry.text.split_whitespace().count()).sum();
    found.extend(encoding.map(|encoding| format!(", {encoding}")));
    let queries = if entries.len() == 1 { "query" } else { "queries" };
    found += &format!("; {} {queries}, {:.1} words on average", entries.len(), words as f64 / entries.len() as f64);
    Ok(Log { entries, found })
}

/// Reads the log at `path` and looks its queries up in `index`; `terms_of` tokenizes text as for the index. Fails with
/// those of [`read_log`], a query of more terms than [`Query::MAX_TERMS`], and a log without any query that has a term
/// in the index.
pub fn prepare_queries(
    path: &Path,
    options: &LogOptions,
    index: &Index,
    terms_of: impl Fn(&str) -> Vec<String>,
) -> Result<QueryLog, InputError> {
    read_until(path, options, |log| {
        let log = looked_up(path, log, index, &terms_of)?;
        Ok((log.queries.len(), log))
    })
}

fn looked_up(
    path: &Path,
    Log { entries, found }: Log,
    index: &Index,
    terms_of: impl Fn(&str) -> Vec<String>,
) -> Result<QueryLog, InputError> {
    let log = QueryLog { found, ..look_up(&entries, index, terms_of) };
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
pub fn look_up(entries: &[LogEntry], index: &Index, terms_of: impl Fn(&str) -> Vec<String>) -> QueryLog {
    let mut log = QueryLog { num_entries: entries.len(), ..QueryLog::default() };
    for (number, entry) in entries.iter().enumerate() {
        let terms = weights::counted_terms(&entry.text, index, &terms_of);
        let num_terms = terms.len() as u64;
        match Query::counted(QueryId(number as u32), &entry.label, terms, index) {
            Some(query) => {
                log.dropped_terms += u64::from(query.dropped_terms);
                log.queries.push(query);
            }
            None => {
                log.dropped_terms += num_terms;
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

    fn read(text: &str) -> Result<Log, String> {
        parse_log("q", text.as_bytes(), &LogOptions::default()).map_err(|e| e.to_string())
    }

    fn parsed(text: &str) -> Vec<(String, String, u64)> {
        read(text).unwrap().entries.into_iter().map(|e| (e.label, e.text, e.line)).collect()
    }

    fn row(label: &str, text: &str, line: u64) -> (String, String, u64) {
        (label.into(), text.into(), line)
    }

    #[test]
    fn places_and_labels_are_kept() {
        assert_eq!(parsed("ocean tides\r\n\n moon \n"), [row("0", "ocean tides", 1), row("1", "moon", 3)]);
        assert_eq!(parsed("\nq7\tocean  tides\n\tmoon\n"), [row("q7", "ocean  tides", 2), row("1", "moon", 3)]);
        assert_eq!(parsed("wt09-1:ocean: tides\n2 : moon"), [row("wt09-1", "ocean: tides", 1), row("2", "moon", 2)]);
        assert_eq!(parsed("site:moon.org\n12:30 train"), [row("0", "site:moon.org", 1), row("1", "12:30 train", 2)]);
        assert_eq!(parsed("\n \n<top>\n<num> Number: 7\n<title> moon\n</top>\n"), [row("7", "moon", 3)]);
        assert_eq!(parsed("# 1998\n<top>\n<num> 7\n<title> moon\n</top>\n"), [row("7", "moon", 2)]);
        let json =
            "{\"query\": \"a{b\", \"id\": 5}\n{\"id\": \"x\", \"more\": [1], \"query\": \"ü\"}\n{\"query\": \"c\"}";
        assert_eq!(parsed(json), [row("5", "a{b", 1), row("x", "ü", 2), row("2", "c", 3)]);
        let csv = "id,query\r\n1,\"keeper,\nlighthouse\"\r\n2,moon\r\n";
        assert_eq!(parsed(csv), [row("1", "keeper,\nlighthouse", 2), row("2", "moon", 4)]);
    }

    #[test]
    fn known_logs_are_read_and_described() {
        let aol = "AnonID\tQuery\tQueryTime\tItemRank\tClickURL\n";
        let click = "142\tocean tides\t2006-03-01 07:17:12\t1\thttp://a.org\n";
        let of = |form, columns, query| format!("{form}-separated, {columns} columns, query in column {query}");
        for (text, expected, found) in [
            (&*format!("{aol}{click}"), "142 ocean tides", &*of("tab", 5, "2 (`Query`), header")),
            (
                &format!("{click}{}142\tmoon\t2006-03-02 09:10:11\n", click.replace("\t1\t", "\t2\t")),
                "0 ocean tides|1 moon",
                "tab-separated, 5 columns, query in column 2, 1 further clicks on the same results left out; 2 queries, 1.5 words",
            ),
            ("2\tandro\n1215\t3 levels of government\n", "2 andro|1215 3 levels of government", "tab-separated, 2"),
            ("1:1:ocean tides\n2:3:moon\n", "1 ocean tides|2 moon", "colon-separated, 2 columns"),
            ("10103\tocean tides\tD1265\thttps://a.org/t\n", "10103 ocean tides", &of("tab", 4, "2")),
            (
                "00:00:00\t2982199073774412\t[海洋 潮汐]\t8 3\tdown.cn/a.html\n",
                "2982199073774412 海洋 潮汐",
                &of("tab", 5, "3"),
            ),
            ("84711\t3\tocean tides\n84712\t3\tmoon\n", "84711 ocean tides|84712 moon", &of("tab", 3, "3")),
            ("who is it\t['moon']\nwhere\t['a', 'b']\n", "0 who is it|1 where", &of("tab", 2, "1")),
            ("q1,new moon\nq2,tides\n", "q1 new moon|q2 tides", "comma-separated, 2 columns"),
            ("paris, france\nrome, italy\n", "0 paris, france|1 rome, italy", "one query a line; 2"),
            ("query\nocean tides\n", "0 ocean tides", "one query a line (`query`), header passed over"),
            ("1 ocean tides\n2 moon\n3 a b\n", "0 ocean tides|1 moon|2 a b", "one query a line behind numbers"),
            (
                "2026-01-02 03:04:05 ocean tides\n2026-01-02 03:04:06 moon\n",
                "0 ocean tides|1 moon",
                "one query a line behind",
            ),
            (
                "TEST01 portia\nTEST02 new moon\n",
                "TEST01 portia|TEST02 new moon",
                "an id and a query a line, 2 columns, query in column 2; 2 queries, 1.5 words",
            ),
            (
                "    120 ocean tides\n      7 90s music\n",
                "0 ocean tides|1 90s music",
                "one query a line behind numbers",
            ),
            (
                "lat,lon,query\n52.5,13.4,ocean tides\n52.5,13.4,moon\n",
                "0 ocean tides|1 moon",
                &of("comma", 3, "3 (`query`), header"),
            ),
            (
                "sep=;\nid;query\n7;ocean tides\n8;moon\n",
                "7 ocean tides|8 moon",
                &of("semicolon", 2, "2 (`query`), header"),
            ),
            (
                "# Site\nSearch Term,Unique Searches,Views of Pages / Search\nocean tides,7,1.5\nmoon,3,1.5\n",
                "7 ocean tides|3 moon",
                &of("comma", 3, "1 (`Search Term`), header"),
            ),
            ("ps4 games\nps5 games\n", "0 ps4 games|1 ps5 games", "one query a line; 2"),
            ("#tides\n# moon\n", "0 #tides|1 # moon", "one query a line; 2"),
        ] {
            let log = read(text).unwrap();
            let entries: Vec<String> = log.entries.iter().map(|e| format!("{} {}", e.label, e.text)).collect();
            assert_eq!(entries.join("|"), expected, "{text}");
            assert!(log.found.starts_with(found), "{:?}, expected {found:?}", log.found);
        }
    }

    #[test]
    fn packed_logs_read_alike_whatever_they_are_called() {
        let dir = tempfile::tempdir().unwrap();
        let (plain, packed) = (dir.path().join("q.tsv"), dir.path().join("q.txt"));
        std::fs::write(&plain, "1\ta b\n2\tc\n").unwrap();
        let packed_bytes = zstd::encode_all(&b"1\ta b\n2\tc\n"[..], 3).unwrap();
        std::fs::write(&packed, [&packed_bytes[..], &[0; 512]].concat()).unwrap();
        let options = LogOptions::default();
        assert_eq!(read_log(&plain, &options).unwrap(), read_log(&packed, &options).unwrap());
    }

    #[test]
    fn refusals_name_the_place_or_the_option() {
        for (text, expected) in [
            ("", "q: no queries"),
            ("\n \n", "q: no queries"),
            ("1\ta\n2 b\n", "q:2: no tab"),
            ("1:a\n2 b\n", "q:2: no colon"),
            ("\n<top>\n<num> 7\n</top>\n", "q:2: the topic that begins here has no query"),
            ("{\"query\": \"a\"}\n{\"query\": 5}\n", "q:2: `query` is `5`, expected text or a request"),
            ("{\"query\": \"a\"}\nplain\n", "q:2:1: expected value"),
            ("{\"id\": 5}\n", "q:1: no field `query`"),
            ("{\"query\": \"a", "q:1:12: EOF while parsing a string"),
            ("{\"id\": 5, \"title\": \"a\", \"text\": \"b\"}", "q:1: is a document"),
            ("# tandem: 0.1.0\nquery_id,mode\n", "q:1: is a file of results of this program"),
            ("query_id,mode,terms,cpu_us\n0,or,2,1.5\n1,or,2,1.5\n", "q: has no column of words"),
            ("1\t17 22\n2\t9\n", "q: holds numbers only, of terms perhaps"),
            ("1:17 22\n2:9\n", "q: holds numbers only"),
            ("17 22\n9\n", "q: holds numbers only"),
            ("17\t22\n9\n3\t4\t5\n", "q: holds numbers only"),
            (
                "enwiki:A\nenwiki:A/Of%20a\nenwiki:A/Of%20b\nenwiki:B/On%20c\nenwiki:B/On%20d\nenwiki:B/On%20e\n",
                "q: has no column of words (url",
            ),
            ("query-id\tcorpus-id\tscore\nq1\td7\t1\n", "q: has no column of words"),
            ("301 0 FT911-3 1\n301 0 FT911-4 0\n", "q: holds relevance judgements"),
            ("1 0 1239 1\n1 0 1502 0\n", "q: holds relevance judgements"),
            ("301 Q0 FT911-3 1 2.5 run\n", "q: holds a TREC run"),
            (
                "1\td1\tocean tides\tthe tides of the ocean\n",
                "q: columns 3 and 4 may each be the query (--column N decides)",
            ),
            ("<!DOCTYPE html>\n<title>404</title>\n", "q: is an HTML page"),
            (" id | query\n----+------\n  1 | tides\n(1 row)\n", "q: is a table drawn for a screen"),
            ("INSERT INTO q (id, text) VALUES\n(1, 'tides');\n", "q: is an SQL dump"),
            (
                "10.0.0.1 - - [12/Mar/2023:10:00:01 +0000] \"GET /search?q=tides HTTP/1.1\" 200 9\n",
                "q: 1 of its 1 lines are records of requests",
            ),
            ("HighTerm: tides # freq=120\nLowTerm: moon # freq=7\n", "q: 2 of its 2 lines are records"),
            (
                "2023-03-12 10:00:01.123 INFO path=/select params={q=tides&rows=10} hits=7\n",
                "q: 1 of its 1 lines are records",
            ),
            ("a\tb\nc\nd\n", "q: 33 % of its lines have tabs (--log-format tsv or plain decides)"),
        ] {
            let message = read(text).expect_err(text);
            assert!(message.starts_with(expected), "{message:?}, expected {expected:?}");
        }
        let decided = |text: &str, format, column| {
            let log = parse_log("q", text.as_bytes(), &LogOptions { format, column, limit: None }).unwrap();
            log.entries.into_iter().map(|entry| entry.text).collect::<Vec<_>>()
        };
        assert_eq!(decided("1\td1\tocean tides\tthe tides\n", None, Some(4)), ["the tides"]);
        let numbered: Vec<String> = (0..20).map(|i| format!("{} tides\n", 7 * i % 5)).collect();
        assert_eq!(decided(&numbered.concat(), None, None), ["tides"; 20]);
        let of_users: Vec<String> = (0..20).map(|i| format!("u{} 16786116{i} new tides 7\n", i % 3)).collect();
        assert_eq!(decided(&of_users.concat(), None, None), ["new tides 7"; 20]);
        assert_eq!(decided("HTTP/2 x=1\n", Some(LogFormat::Plain), None), ["HTTP/2 x=1"]);
        assert_eq!(decided("17 22\n9\n", Some(LogFormat::Plain), None), ["17 22", "9"]);
        assert_eq!(decided("a\tb\nc\nd\n", Some(LogFormat::Plain), None), ["a\tb", "c", "d"]);
    }

    #[test]
    fn only_the_start_of_a_large_log_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("q.tsv");
        let rows: String = (0..200_000).map(|row| format!("q{row}\ttides of the moon\n")).collect();
        // No reader gets as far as the zeros.
        std::fs::write(&path, [rows.as_bytes(), b"\0\n"].concat()).unwrap();
        let ten = LogOptions { limit: Some(10), ..LogOptions::default() };
        let log = read_log(&path, &ten).unwrap();
        assert!((10..100_000).contains(&log.entries.len()), "{}", log.entries.len());
        assert_eq!(log.entries[9].label, "q9");
        assert!(log.found.ends_with(" in the first 1 MiB"), "{}", log.found);
        let all = LogOptions { limit: Some(200_001), ..LogOptions::default() };
        assert!(read_log(&path, &all).unwrap_err().to_string().ends_with(":200001: holds zero bytes, expected text"));
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
        let log = prepare_queries(&path, &LogOptions::default(), &index, words).unwrap();
        assert_eq!((log.num_entries, log.dropped_terms, log.empty_queries), (3, 4, 1));
        let ids: Vec<u32> = log.queries.iter().map(|query| query.id.0).collect();
        assert_eq!(ids, [0, 2]);
        assert_eq!((log.queries[1].terms.len(), log.queries[1].terms[0].qtf), (1, 2));
        std::fs::write(&path, "frogs\n").unwrap();
        let message = prepare_queries(&path, &LogOptions::default(), &index, words).unwrap_err().to_string();
        assert!(message.ends_with("its one query has no term in the index"), "{message}");
    }
}
