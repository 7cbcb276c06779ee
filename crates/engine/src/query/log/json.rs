//! Queries in JSON: objects one after another or in an array, engines' search requests, engines' slow logs.

use std::path::Path;

use serde_json::{Deserializer, Map, Value};
use tandem_base::files::{InputError, json_message};

use super::form::Form;
use super::names::{IDS, QUERIES, normal};
use super::table::Table;
use super::{LogEntry, LogFormat, weights};

pub(super) const JSON: Form = Form {
    format: LogFormat::Json,
    likeness: |log| {
        // Sogou puts queries into brackets, but never first on a line.
        let first = log.lines[0].1.trim_start();
        f64::from(first.starts_with('{') || first.starts_with('[') && !first.contains('\t'))
    },
    read: |log, _| Ok(parse(log.path, &log.behind_remarks())?.table("JSON")),
};

/// An engine's slow log in lines.
pub(super) const SLOW_LOG: Form = Form {
    format: LogFormat::SlowLog,
    likeness: |log| f64::from(log.share(|line| line.contains("took[") && line.contains("source[")) > 0.5),
    read: |log, _| Ok(parse_slow_lines(log.text).table("slow log")),
};

struct Found {
    entries: Vec<LogEntry>,
    /// Objects without a query, such as headers of requests.
    skipped: usize,
}

/// Clauses of a request that only filter and hold no words of the query.
const NARROWING: [&str; 9] =
    ["filter", "must_not", "range", "exists", "ids", "aggs", "sort", "function_score_functions", "rescore"];
/// Keys of a field's clause that hold the words.
const WORDS: [&str; 3] = ["query", "value", "like"];
/// Fields that say how a request is run; an object with only these is a header of the next one.
const HEADERS: [&str; 7] =
    ["index", "preference", "routing", "search_type", "allow_partial_search_results", "type", "ccs"];

/// Reads all values of `text`, independently of line breaks. Fails with line and column: text that is not JSON, objects
/// without a query.
fn parse(path: &Path, text: &str) -> Result<Found, InputError> {
    let mut found = Found { entries: Vec::new(), skipped: 0 };
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    let (mut line, mut counted) = (1, 0);
    let mut whole = Vec::new();
    loop {
        let start = values.byte_offset();
        let start = start + text[start..].len() - text[start..].trim_start().len();
        line += text[counted..start].matches('\n').count() as u64;
        counted = start;
        match values.next() {
            None => break,
            Some(value) => {
                let value = value.map_err(|e| {
                    let message = format!("{}, expected objects with `query`", json_message(&e));
                    InputError::at(path, e.line().max(1) as u64, e.column().max(1) as u64, message)
                })?;
                whole.push((line, value));
            }
        }
    }
    // A single object may map ids to queries.
    if let [(line, Value::Object(map))] = &whole[..]
        && field(map, QUERIES).is_none()
        && !map.is_empty()
        && map.values().all(|value| value.is_string() && !map.contains_key("source"))
    {
        map.iter().for_each(|(id, query)| found.add(Some(id.clone()), query.as_str().unwrap_or_default(), *line));
    } else {
        whole.iter().try_for_each(|(line, value)| take(path, *line, value, &mut found))?;
    }
    Ok(found)
}

fn take(path: &Path, line: u64, value: &Value, found: &mut Found) -> Result<(), InputError> {
    let map = match value {
        Value::Array(values) => return values.iter().try_for_each(|value| take(path, line, value, found)),
        Value::String(query) => {
            found.add(None, query, line);
            return Ok(());
        }
        Value::Object(map) => map,
        other => return Err(InputError::line(path, line, format!("`{other}`, expected an object with `query`"))),
    };
    for wrapper in ["queries", "topics", "operations", "hits"] {
        if let Some(list @ Value::Array(_)) = map.get(wrapper) {
            return take(path, line, list, found);
        }
    }
    let id = field(map, IDS).and_then(|id| match id {
        Value::String(id) => Some(id.clone()),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    });
    if map.contains_key("title") && map.contains_key("text") && !map.contains_key("query") {
        return Err(InputError::line(
            path,
            line,
            "is a document with `title` and `text`, expected an object with `query`",
        ));
    }
    let query = query_of(map);
    if let Some(weighted) = weights::of_json(map, query.is_some()) {
        found.add(id, &weighted.map_err(|message| InputError::line(path, line, message))?, line);
        return Ok(());
    }
    match query {
        Some(query) => found.add(id, &query, line),
        None if map.keys().all(|key| HEADERS.contains(&&**key))
            || map.contains_key("operation-type")
            || is_request(map) =>
        {
            found.skipped += 1;
        }
        None => {
            let wrong = field(map, "query").map(|query| format!("`query` is `{query}`, expected text or a request"));
            return Err(InputError::line(path, line, wrong.unwrap_or_else(|| "no field `query`".to_owned())));
        }
    }
    Ok(())
}

/// Whether an object is an engine's request, which may ask for no words.
fn is_request(map: &Map<String, Value>) -> bool {
    source(map).is_some()
        || map.get("query").is_some_and(Value::is_object)
        || map.get("body").is_some_and(Value::is_object)
}

/// The request that a slow log's record holds as text.
fn source(map: &Map<String, Value>) -> Option<Value> {
    let nested = || map.get("elasticsearch")?.get("slowlog")?.get("source");
    let named = map.get("elasticsearch.slowlog.source").or_else(|| map.get("source"));
    serde_json::from_str(named.or_else(nested)?.as_str()?).ok()
}

fn query_of(map: &Map<String, Value>) -> Option<String> {
    if let Some(request) = source(map) {
        return request_words(&request);
    }
    match field(map, QUERIES) {
        Some(Value::String(query)) => Some(query.clone()),
        Some(request @ Value::Object(_)) => request_words(request),
        _ => map.get("body").or_else(|| map.get("operation")).and_then(|body| query_of(body.as_object()?)),
    }
}

/// The words of a request in an engine's query language.
fn request_words(request: &Value) -> Option<String> {
    let mut words = Vec::new();
    gather(request.get("query").unwrap_or(request), "", &mut words);
    (!words.is_empty()).then(|| words.join(" "))
}

/// Gathers the texts below `clause`, named `key`, each once.
fn gather(clause: &Value, key: &str, words: &mut Vec<String>) {
    match clause {
        Value::Object(map) => {
            let is_leaf =
                |map: &Map<String, Value>| WORDS.iter().any(|&word| map.get(word).is_some_and(Value::is_string));
            for (name, value) in map.iter().filter(|(name, _)| !NARROWING.contains(&&***name)) {
                // A clause also holds fields, operators and analysers, which are not words.
                if !is_leaf(map) || WORDS.contains(&&**name) {
                    let is_field =
                        ["match", "match_phrase", "match_phrase_prefix", "match_bool_prefix", "term", "prefix"]
                            .contains(&key);
                    gather(value, if is_field { "query" } else { name }, words);
                }
            }
        }
        Value::Array(clauses) => clauses.iter().for_each(|clause| gather(clause, key, words)),
        Value::String(text) if WORDS.contains(&key) && !words.contains(text) => words.push(text.clone()),
        _ => {}
    }
}

fn field<'a>(map: &'a Map<String, Value>, names: &str) -> Option<&'a Value> {
    let named = |wanted: &str| map.iter().find(|(name, _)| normal(name) == wanted).map(|(_, value)| value);
    names.split(' ').find_map(named)
}

impl Found {
    fn table(self, form: &str) -> Table {
        let Self { entries, skipped } = self;
        let skipped = if skipped > 0 { format!(", {skipped} records without words left out") } else { String::new() };
        Table { entries, found: format!("{form}{skipped}") }
    }

    /// Adds a query, unless it has no words. Its label is its id, or its number.
    fn add(&mut self, id: Option<String>, query: &str, line: u64) {
        let text = query.trim().to_owned();
        if text.is_empty() {
            self.skipped += 1;
        } else {
            let label = id.filter(|id| !id.is_empty()).unwrap_or_else(|| self.entries.len().to_string());
            self.entries.push(LogEntry { label, text, line });
        }
    }
}

/// Reads a slow log in lines whose records hold `source[...]`; also counts records without a query.
fn parse_slow_lines(text: &str) -> Found {
    let mut found = Found { entries: Vec::new(), skipped: 0 };
    for (line, text) in (1..).zip(text.lines()) {
        if text.trim().is_empty() {
            continue;
        }
        let request = text.split_once("source[").and_then(|(_, source)| {
            Deserializer::from_str(source).into_iter::<Value>().next()?.ok().as_ref().and_then(request_words)
        });
        match request {
            Some(words) => found.add(None, &words, line),
            None => found.skipped += 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String, u64)> {
        let found = parse(Path::new("q"), text).map_err(|e| e.to_string()).unwrap();
        found.entries.into_iter().map(|e| (e.label, e.text, e.line)).collect()
    }

    #[test]
    fn queries_are_found_wherever_they_stand() {
        for (text, expected) in [
            (r#"{"_id": "7", "text": "ocean tides", "metadata": {}}"#, ("7", "ocean tides")),
            (r#"[{"qid": 7, "question": "ocean tides", "answer": ["moon"]}]"#, ("7", "ocean tides")),
            (r#"{"queries": [{"id": "7", "query": "ocean tides"}]}"#, ("7", "ocean tides")),
            (r#"{"7": "ocean tides"}"#, ("7", "ocean tides")),
            (r#"["ocean tides"]"#, ("0", "ocean tides")),
            (r#"{"query": {"match": {"body": "ocean tides"}}, "size": 10}"#, ("0", "ocean tides")),
            (r#"{"query": {"match": {"body": {"query": "ocean tides", "operator": "and"}}}}"#, ("0", "ocean tides")),
            (
                r#"{"name": "x", "operation-type": "search", "body": {"query": {"query_string": {"query": "ocean tides",
                "default_field": "text"}}}}"#,
                ("0", "ocean tides"),
            ),
            (
                r#"{"index": "x"}
                {"query": {"bool": {"must": [{"multi_match": {"query": "ocean", "fields": ["a", "b"]}}, {"term": {"t": "tides"}}],
                "filter": {"term": {"lang": "en"}}, "must_not": {"match": {"a": "moon"}}}}}"#,
                ("0", "ocean tides"),
            ),
            (
                r#"{"type": "index_search_slowlog", "took": "2ms", "source": "{\"query\":{\"match\":{\"t\":\"ocean tides\"}}}"}"#,
                ("0", "ocean tides"),
            ),
        ] {
            let found = parsed(text);
            assert_eq!(found.iter().map(|e| (&*e.0, &*e.1)).collect::<Vec<_>>(), [expected], "{text}");
        }
        assert_eq!(parsed(r#"["", "ocean", {"query": " "}]"#), [("0".into(), "ocean".into(), 1)]);
        let slow = "[2026-01-02T03:04:05,6][WARN ][index.search.slowlog.query] [n] [i][0] took[5ms], took_millis[5], \
                    source[{\"query\":{\"match\":{\"t\":{\"query\":\"ocean [tides]\"}}}}], id[7], \n";
        let found = parse_slow_lines(&format!("{slow}{}", slow.replace("match", "range")));
        assert_eq!((found.entries[0].text.as_str(), found.entries.len(), found.skipped), ("ocean [tides]", 1, 1));
    }
}
