//! Requests and responses in OpenSearch's form. What a request may hold is a closed list at every level: anything else is an
//! error with its name, so that no client takes a plain first page for what it asked.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tandem_engine::index::Index;
use tandem_engine::search::{Hit, MAX_K};
use tandem_model::traffic::Mode;

/// Hits without a size.
const DEFAULT_K: u64 = 10;
/// Largest body of a query.
const MOST_QUERY: usize = 256 * 1024;
/// Most queries of an `_msearch`.
pub(super) const MOST_QUERIES: usize = 1000;

/// What is read of an object, what changes no answer of an index with one shard and no cache, and what must have its default,
/// with the JSON of that.
struct Keys {
    read: &'static [&'static str],
    without_effect: &'static [&'static str],
    defaults: &'static [(&'static str, &'static [&'static str])],
}

const WITHOUT_EFFECT: &[&str] = &["request_cache", "preference", "allow_partial_search_results", "search_type"];
const DEFAULTS: &[(&str, &[&str])] = &[
    ("from", &["0"]),
    ("_source", &["false", "[]"]),
    ("track_total_hits", &["false"]),
    ("explain", &["false"]),
    ("version", &["false"]),
    ("profile", &["false"]),
];
const BODY: Keys = Keys { read: &["query", "size"], without_effect: &[], defaults: DEFAULTS };
const URL: Keys =
    Keys { read: &["q", "size", "default_operator", "df"], without_effect: WITHOUT_EFFECT, defaults: DEFAULTS };
const HEADER: Keys = Keys { read: &["index"], without_effect: WITHOUT_EFFECT, defaults: &[] };
/// The options of clauses.
const MATCH: Keys = Keys { read: &["query", "operator"], without_effect: &[], defaults: &[("boost", &["1", "1.0"])] };
const MULTI_MATCH: Keys =
    Keys { read: &["query", "operator", "fields"], without_effect: &[], defaults: &[("type", &["\"best_fields\""])] };
const QUERY_STRING: Keys =
    Keys { read: &["query", "default_operator", "default_field", "fields"], without_effect: &[], defaults: &[] };

impl Keys {
    fn check<'a>(&self, what: &str, pairs: impl Iterator<Item = (&'a str, String)>) -> Result<(), String> {
        for (key, value) in pairs {
            let default = self.defaults.iter().find(|(name, _)| *name == key);
            match default {
                Some((_, allowed)) if !allowed.contains(&value.as_str()) => {
                    return Err(format!("{what}: {key} is {value:.60}, and only {} is supported", allowed[0]));
                }
                None if !self.read.contains(&key) && !self.without_effect.contains(&key) => {
                    return Err(format!("{what}: {key:?} is not supported"));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn check_json(&self, what: &str, value: &Value) -> Result<(), String> {
        let object = value.as_object().ok_or_else(|| format!("{what} is no object"))?;
        self.check(what, object.iter().map(|(key, value)| (key.as_str(), value.to_string())))
    }
}

/// A query of a request.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) text: String,
    pub(super) k: usize,
    pub(super) mode: Mode,
    /// Whether the answer has a total number of hits.
    has_total: bool,
}

/// Parses `_search`: its body and the parameters of its URL. `mode` is that of queries that name none.
pub(super) fn parse(body: &[u8], url_query: Option<&str>, mode: Mode) -> Result<Asked, String> {
    let pairs: Vec<(String, String)> =
        form_urlencoded::parse(url_query.unwrap_or_default().as_bytes()).into_owned().collect();
    URL.check("the URL", pairs.iter().map(|(key, value)| (key.as_str(), value.clone())))?;
    if let Some((key, _)) = pairs.iter().find(|(key, _)| pairs.iter().filter(|(other, _)| other == key).count() > 1) {
        return Err(format!("the URL has {key} twice"));
    }
    let value = |key: &str| pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str());
    let mut asked = match (value("q"), body.is_empty()) {
        (None, true) => return Err(String::from("no body, and no q in the URL")),
        (Some(_), false) => return Err(String::from("a query both in the body and in the URL")),
        (None, false) => parse_query(body, mode)?,
        (Some(text), true) => {
            let operator = value("default_operator").unwrap_or(mode.name());
            let query = json!({ "query_string": { "query": text, "default_operator": operator } });
            self::asked(&json!({ "query": query }), mode)?
        }
    };
    asked.has_total &= value("track_total_hits").is_none();
    if let Some(size) = value("size") {
        asked.k = checked_size(size.parse().ok())?;
    }
    Ok(asked)
}

/// The lines of `_msearch` in pairs: a header, which may be empty, and a body.
pub(super) fn pairs(body: &[u8]) -> Result<Vec<[&[u8]; 2]>, String> {
    let mut lines: Vec<&[u8]> = body.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).collect();
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    if lines.is_empty() || lines.len() % 2 == 1 {
        return Err(format!("{} lines, expected a header and a body per query", lines.len()));
    }
    if lines.len() / 2 > MOST_QUERIES {
        return Err(format!("{} queries, expected at most {MOST_QUERIES}", lines.len() / 2));
    }
    Ok(lines.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect())
}

/// Parses a pair of lines. `knows` says whether there is an index of a name.
pub(super) fn parse_pair(
    [header, body]: [&[u8]; 2],
    mode: Mode,
    knows: impl Fn(&str) -> bool,
) -> Result<Asked, String> {
    if !header.is_empty() {
        let header: Value = serde_json::from_slice(header).map_err(|e| format!("header: {e}"))?;
        HEADER.check_json("header", &header)?;
        let names = match &header["index"] {
            Value::Null => Vec::new(),
            Value::String(name) => vec![Some(name.as_str())],
            Value::Array(names) => names.iter().map(Value::as_str).collect(),
            _ => vec![None],
        };
        if let Some(name) = names.into_iter().find(|name| !name.is_some_and(&knows)) {
            return Err(format!("no such index: {:.60}", name.unwrap_or("(no name)")));
        }
    }
    parse_query(body, mode)
}

fn parse_query(body: &[u8], mode: Mode) -> Result<Asked, String> {
    if body.len() > MOST_QUERY {
        return Err(format!("a query of {} bytes, expected at most {MOST_QUERY}", body.len()));
    }
    asked(&serde_json::from_slice(body).map_err(|e| e.to_string())?, mode)
}

fn checked_size(size: Option<u64>) -> Result<usize, String> {
    let k = usize::try_from(size.ok_or("size is no number")?).unwrap_or(usize::MAX);
    if k > MAX_K { Err(format!("size is {k}, expected at most {MAX_K}")) } else { Ok(k) }
}

fn asked(body: &Value, mode: Mode) -> Result<Asked, String> {
    BODY.check_json("the body", body)?;
    let expected = "expected \"query\" with one of match, multi_match, query_string or simple_query_string";
    let clauses = body["query"].as_object().filter(|clauses| clauses.len() == 1).ok_or(expected)?;
    let (kind, clause) = clauses.iter().next().ok_or(expected)?;
    // The name of the field does not matter, since an index has one.
    let (keys, clause) = match kind.as_str() {
        "match" => {
            match clause.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.values().next()) {
                Some(clause) => (MATCH, clause),
                None => return Err(String::from("match: expected one field")),
            }
        }
        "multi_match" => (MULTI_MATCH, clause),
        "query_string" | "simple_query_string" => (QUERY_STRING, clause),
        _ => return Err(format!("{kind:?} is not supported, {expected}")),
    };
    if !clause.is_string() {
        keys.check_json(kind, clause)?;
    }
    let text = clause.as_str().or_else(|| clause["query"].as_str()).ok_or("the query has no text")?;
    if kind.ends_with("query_string")
        && let Some(word) = text.split_whitespace().find(|word| is_operator(word))
    {
        return Err(format!("{kind}: operators such as {word:.60} are not supported (match takes words as they are)"));
    }
    if clause["fields"].as_array().is_some_and(|fields| fields.iter().any(|name| name.to_string().contains('^'))) {
        return Err(format!("{kind}: boosts of fields are not supported"));
    }
    let mode = match clause.get("operator").or_else(|| clause.get("default_operator")).map(Value::as_str) {
        None => mode,
        Some(Some("and" | "AND")) => Mode::And,
        Some(Some("or" | "OR")) => Mode::Or,
        Some(other) => return Err(format!("operator {}, expected and or or", other.unwrap_or("without text"))),
    };
    let k = checked_size(body.get("size").map_or(Some(DEFAULT_K), Value::as_u64))?;
    Ok(Asked { text: text.to_owned(), k, mode, has_total: body["track_total_hits"] != false })
}

/// Whether a word of the languages of `query_string` is more than a word.
fn is_operator(word: &str) -> bool {
    ["AND", "OR", "NOT", "&&", "||"].contains(&word)
        || word.starts_with(['+', '-', '!', '<', '>', '|'])
        || word.contains([':', '"', '~', '*', '?', '^', '(', ')', '{', '}', '[', ']', '\\', '/'])
}

/// A response in OpenSearch's form.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) json: String,
}

#[derive(Serialize)]
struct Found<'a> {
    _index: &'static str,
    _id: std::borrow::Cow<'a, str>,
    _score: f32,
}

impl Answer {
    pub(super) fn hits(hits: &[Hit], index: &Index, asked: &Asked, took: Duration) -> Self {
        let found = |hit: &Hit| Found { _index: "tandem", _id: index.external_id(hit.doc), _score: hit.score };
        let hits = &hits[..hits.len().min(asked.k)];
        let found: Vec<Found<'_>> = hits.iter().map(found).collect();
        let found = serde_json::to_string(&found).expect("scores and texts are JSON");
        let best = hits.first().map_or(String::from("null"), |hit| hit.score.to_string());
        // Searches stop early, so that only a lower bound of the total is known.
        let relation = if hits.len() < asked.k { "eq" } else { "gte" };
        let total = format!(r#""total":{{"value":{},"relation":"{relation}"}},"#, hits.len());
        let (total, took) = (if asked.has_total { &*total } else { "" }, took.as_millis());
        let shards = r#"{"total":1,"successful":1,"skipped":0,"failed":0}"#;
        let hits = format!(r#"{{{total}"max_score":{best},"hits":{found}}}"#);
        let json = format!(r#"{{"took":{took},"timed_out":false,"_shards":{shards},"hits":{hits},"status":200}}"#);
        Self { status: 200, json }
    }

    pub(super) fn error(status: u16, reason: &str) -> Self {
        let kind = match status {
            404 => "index_not_found_exception",
            429 => "rejected_execution_exception",
            _ => "illegal_argument_exception",
        };
        let error = json!({ "error": { "type": kind, "reason": reason }, "status": status });
        Self { status, json: error.to_string() }
    }
}
