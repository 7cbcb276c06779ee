//! The index and the queries of a search.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tandem_engine::corpus::Tokenizer;
use tandem_engine::index::Index;
use tandem_engine::query::{LogOptions, Query, counted_terms, has_unused_weights};
use tandem_model::base::ids::QueryId;
use tandem_model::files::InputError;
use tandem_model::traffic::Mode;

use super::Arguments;
use crate::defaults::{default_index, read_queries};
use crate::failure::Failure;
use tandem_report::number::counted;

/// Number of queries of the default log that are answered if none are given.
const SHOWN_QUERIES: usize = 3;

/// The index and the queries of a search.
pub(super) struct Input {
    pub(super) index: Arc<Index>,
    pub(super) index_dir: PathBuf,
    /// The queries, at least one.
    pub(super) queries: Vec<Query>,
}

/// The named inputs, or the defaults.
pub(super) fn input(arguments: &Arguments) -> Result<Input, Failure> {
    let Some(index_dir) = arguments.index.clone() else { return default_input(arguments) };
    let index = Arc::new(Index::open(&index_dir).map_err(|e| {
        let hint = if arguments.queries.is_none() && !index_dir.exists() {
            " (the first word names the index's folder)"
        } else {
            ""
        };
        Failure::input(format!("{e}{hint}"))
    })?);
    let queries = match (&arguments.words[..], &arguments.queries) {
        ([], Some(path)) => prepare_log(path, &arguments.form.options(), &index)?,
        (words @ [_, ..], _) => vec![prepare_words(&words.join(" "), &index, arguments.mode)?],
        ([], None) => return Err(Failure::input("nothing to search for: give words or --queries FILE")),
    };
    if arguments.words.is_empty() {
        tell_of_unknown_words(&queries, arguments.mode);
    }
    Ok(Input { index, index_dir, queries })
}

/// Reports the treatment of queries that need all of their words, if no document contains some of these.
fn tell_of_unknown_words(queries: &[Query], mode: Mode) {
    let queries = queries.iter().filter(|query| query.dropped_terms > 0).count();
    if queries > 0 && mode != Mode::Or {
        let asked = counted(queries, "query asks", "queries ask");
        errln!("mode {mode}: {asked} for words that no document holds: {LEFT_OUT}");
    }
}

/// The treatment of words that no document contains, in modes that need all words.
const LEFT_OUT: &str = "they are left out, and documents that hold all of the others are found";

/// The default index, with the user's queries or the first few of the index's queries.
fn default_input(arguments: &Arguments) -> Result<Input, Failure> {
    let (index, own_queries) = default_index()?;
    let index_dir = own_queries.parent().unwrap_or(Path::new(".")).to_owned();
    errln!("no INDEX given: searching the synthetic index in {}", index_dir.display());
    let queries = match &arguments.queries {
        Some(path) => prepare_log(path, &arguments.form.options(), &index)?,
        None => {
            let mut queries = prepare_log(&own_queries, &LogOptions::default(), &index)?;
            errln!("no queries given: the first {SHOWN_QUERIES} of {}", own_queries.display());
            queries.truncate(SHOWN_QUERIES);
            queries
        }
    };
    Ok(Input { index, index_dir, queries })
}

/// The queries of a log that have terms in the index: at least one.
fn prepare_log(path: &Path, form: &LogOptions, index: &Index) -> Result<Vec<Query>, Failure> {
    let queries = read_queries(path, form, index)?;
    if queries.is_empty() {
        return Err(InputError::file(path, "holds no query with a term that is in the index").into());
    }
    Ok(queries)
}

/// A query of words from the command line.
fn prepare_words(words: &str, index: &Index, mode: Mode) -> Result<Query, Failure> {
    let tokenizer = Tokenizer::from_name(index.tokenizer_name()).map_err(Failure::input)?;
    if has_unused_weights(words) {
        errln!("note: weights are taken as words, since not each word has one above 0");
    }
    let terms = counted_terms(words, index, |text| tokenizer.terms(text));
    if terms.is_empty() {
        return Err(Failure::input("the query is empty: it holds no word, or only stop words"));
    }
    let words: Vec<&str> = terms.iter().map(|(term, _)| term.as_str()).collect();
    let query = Query::counted(QueryId(0), "1", terms.clone(), index)
        .ok_or_else(|| Failure::input(format!("no document holds any of these words: {}", words.join(" "))))?;
    let unknown: Vec<&str> = words.into_iter().filter(|term| index.term(term).is_none()).collect();
    if !unknown.is_empty() {
        let left_out = if mode == Mode::Or { "they are left out" } else { LEFT_OUT };
        errln!("{} of {} words are in no document ({}): {left_out}", unknown.len(), terms.len(), unknown.join(", "));
    }
    Ok(query)
}
