//! Bodies in OpenSearch's form.

use std::time::Duration;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tandem_engine::index::Index;
use tandem_engine::search::{Hit, MAX_K};
use tandem_model::traffic::Mode;

/// Hits without a size.
const DEFAULT_K: u64 = 10;

/// A query of a request.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) text: String,
    pub(super) k: usize,
    pub(super) mode: Mode,
    /// Whether the answer has a total number of hits.
    has_total: bool,
}

/// Parses the body of `_search`; without a body, the `q` and `size` of the URL. `mode` is that of queries that name none.
pub(super) fn parse(body: &[u8], url_query: Option<&str>, mode: Mode) -> Result<Asked, String> {
    if !body.is_empty() {
        return serde_json::from_slice(body).map_err(|e| e.to_string()).and_then(|body| asked(&body, mode));
    }
    let pairs = form_urlencoded::parse(url_query.unwrap_or_default().as_bytes());
    let value = |key: &str| pairs.clone().find(|(name, _)| name == key).map(|(_, value)| value.into_owned());
    let text = value("q").ok_or("no body, and no q in the URL")?;
    let size: Option<u64> = value("size").map(|size| size.parse()).transpose().map_err(|_| "size is no number")?;
    asked(&json!({ "query": { "query_string": text }, "size": size.unwrap_or(DEFAULT_K) }), mode)
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

fn asked(body: &Value, mode: Mode) -> Result<Asked, String> {
    let query = &body["query"];
    // The name of the field does not matter, since an index has one.
    let field = query["match"].as_object().and_then(|fields| fields.values().next());
    let others = ["multi_match", "query_string", "simple_query_string"];
    let asked = field.or_else(|| others.iter().find_map(|kind| query.get(kind)));
    let asked = asked.ok_or("expected \"query\" with match, multi_match, query_string or simple_query_string")?;
    let text = asked.as_str().or_else(|| asked["query"].as_str()).ok_or("the query has no text")?;
    let mode = match asked.get("operator").or_else(|| asked.get("default_operator")).map(Value::as_str) {
        None => mode,
        Some(Some("and" | "AND")) => Mode::And,
        Some(Some("or" | "OR")) => Mode::Or,
        Some(other) => return Err(format!("operator {}, expected and or or", other.unwrap_or("without text"))),
    };
    let size = body.get("size").map_or(Some(DEFAULT_K), Value::as_u64).ok_or("size is no number")?;
    let k = usize::try_from(size).unwrap_or(usize::MAX);
    if !(1..=MAX_K).contains(&k) {
        return Err(format!("size is {k}, expected 1 to {MAX_K}"));
    }
    Ok(Asked { text: text.to_owned(), k, mode, has_total: body["track_total_hits"] != false })
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
        let error = json!({ "error": { "type": kind, "reason": reason }, "status": status });
        Self { status, json: error.to_string() }
    }

    /// The response to several queries, each with its status.
    pub(super) fn many(answers: &[Self], took: Duration) -> Self {
        let answers: Vec<&str> = answers.iter().map(|answer| &*answer.json).collect();
        Self { status: 200, json: format!(r#"{{"took":{},"responses":[{}]}}"#, took.as_millis(), answers.join(",")) }
    }
}
