//! Bodies in OpenSearch's form.

use std::collections::HashMap;
use std::time::Duration;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tandem_core::index::Index;
use tandem_core::query::Mode;
use tandem_core::search::{Hit, MAX_K};

/// A query of a request.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) text: String,
    pub(super) k: usize,
    pub(super) mode: Mode,
    /// Whether the answer has a total number of hits.
    has_total: bool,
}

#[derive(Deserialize)]
struct Body {
    query: Kind,
    size: Option<usize>,
    /// A number or a flag.
    track_total_hits: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// The field's name does not matter, since an index has one.
    Match(HashMap<String, Text>),
    MultiMatch(Text),
    QueryString(Text),
    SimpleQueryString(Text),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected the text, or an object with the text as \"query\"")]
enum Text {
    Plain(String),
    Full {
        query: String,
        #[serde(alias = "default_operator")]
        operator: Option<String>,
    },
}

/// Parses the body of `_search`; without a body, the `q` and `size` of the URL. `mode` is that of queries that name none.
pub(super) fn parse(body: &[u8], url_query: Option<&str>, mode: Mode) -> Result<Asked, String> {
    if !body.is_empty() {
        return serde_json::from_slice(body).map_err(|e| e.to_string()).and_then(|body| checked(body, mode));
    }
    let pairs = form_urlencoded::parse(url_query.unwrap_or_default().as_bytes());
    let value = |key: &str| pairs.clone().find(|(name, _)| name == key).map(|(_, value)| value.into_owned());
    let text = value("q").ok_or("no body, and no q in the URL")?;
    let size = value("size").map(|size| size.parse()).transpose().map_err(|_| "size is no number")?;
    checked(Body { query: Kind::QueryString(Text::Plain(text)), size, track_total_hits: None }, mode)
}

/// Parses the lines of `_msearch`: a header and a body per query.
pub(super) fn parse_many(body: &[u8], mode: Mode) -> Result<Vec<Asked>, String> {
    let lines: Vec<&[u8]> = body.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
    if lines.is_empty() || lines.len() % 2 == 1 {
        return Err(format!("{} lines, expected a header and a body per query", lines.len()));
    }
    let parse = |(number, pair): (usize, &[&[u8]])| {
        let header = serde_json::from_slice::<IgnoredAny>(pair[0]).map_err(|e| e.to_string());
        header.and_then(|_| parse(pair[1], None, mode)).map_err(|e| format!("query {number}: {e}"))
    };
    lines.chunks_exact(2).enumerate().map(parse).collect()
}

fn checked(Body { query, size, track_total_hits }: Body, mode: Mode) -> Result<Asked, String> {
    let text = match query {
        Kind::Match(fields) => fields.into_values().next().ok_or("\"match\" names no field")?,
        Kind::MultiMatch(text) | Kind::QueryString(text) | Kind::SimpleQueryString(text) => text,
    };
    let (text, operator) = match text {
        Text::Plain(text) => (text, None),
        Text::Full { query, operator } => (query, operator),
    };
    let mode = match operator.as_deref() {
        None => mode,
        Some("and" | "AND") => Mode::And,
        Some("or" | "OR") => Mode::Or,
        Some(other) => return Err(format!("operator {other:?}, expected and or or")),
    };
    let k = size.unwrap_or(10);
    if !(1..=MAX_K).contains(&k) {
        return Err(format!("size is {k}, expected 1 to {MAX_K}"));
    }
    Ok(Asked { text, k, mode, has_total: track_total_hits != Some(serde_json::Value::Bool(false)) })
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
        let kind = if status == 429 { "rejected_execution_exception" } else { "illegal_argument_exception" };
        let error = serde_json::json!({ "error": { "type": kind, "reason": reason }, "status": status });
        Self { status, json: error.to_string() }
    }

    /// The response to several queries, each with its status.
    pub(super) fn many(answers: &[Self], took: Duration) -> Self {
        let answers: Vec<&str> = answers.iter().map(|answer| &*answer.json).collect();
        Self { status: 200, json: format!(r#"{{"took":{},"responses":[{}]}}"#, took.as_millis(), answers.join(",")) }
    }
}
