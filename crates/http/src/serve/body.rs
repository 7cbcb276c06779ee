//! Bodies in OpenSearch's form.

use serde::Serialize;
use serde_json::Value;
use tandem_core::query::Mode;
use tandem_core::search::MAX_K;

/// A query of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) text: String,
    pub(super) k: usize,
    /// The mode, if the query names one.
    pub(super) mode: Option<Mode>,
    /// Whether the answer has a total number of hits.
    has_total: bool,
}

/// Hits without a size.
const DEFAULT_K: u64 = 10;

/// Parses the body of `_search`; without a body, the `q` and `size` of the URL.
pub(super) fn parse(body: &[u8], url_query: Option<&str>) -> Result<Asked, String> {
    if body.is_empty() {
        let pairs = url_query.unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        let value = |key: &str| pairs.clone().find(|(name, _)| *name == key).map(|(_, value)| decoded(value));
        let text = value("q").ok_or("no body, and no q in the URL")?;
        let k = value("size").map_or(Ok(DEFAULT_K), |size| size.parse()).map_err(|_| "size is no number")?;
        return checked(Asked { text, k: k.try_into().unwrap_or(usize::MAX), mode: None, has_total: true });
    }
    let value: Value =
        serde_json::from_slice(body).map_err(|e| format!("line {}, column {}: {e}", e.line(), e.column()))?;
    of_value(&value)
}

/// Parses the lines of `_msearch`: a header and a body per query.
pub(super) fn parse_many(body: &[u8], most: usize) -> Result<Vec<Asked>, String> {
    let lines: Vec<&[u8]> = body.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).collect();
    if lines.is_empty() || lines.len() % 2 == 1 || lines.len() / 2 > most {
        return Err(format!(
            "{} lines, expected a header and a body per query, and at most {most} queries",
            lines.len()
        ));
    }
    let parse = |(number, line): (usize, &[u8])| {
        let value: Value = serde_json::from_slice(line).map_err(|e| format!("line {}: {e}", number + 1))?;
        if number % 2 == 0 { Ok(None) } else { of_value(&value).map(Some) }
    };
    lines.into_iter().enumerate().filter_map(|line| parse(line).transpose()).collect()
}

fn of_value(value: &Value) -> Result<Asked, String> {
    let query = value.get("query").and_then(Value::as_object).ok_or("no object \"query\"")?;
    let (kind, inner) = query.iter().next().ok_or("\"query\" is empty")?;
    let inner = match kind.as_str() {
        // The field's name does not matter, since an index has one.
        "match" => inner.as_object().and_then(|fields| fields.values().next()),
        "multi_match" | "query_string" | "simple_query_string" => Some(inner),
        other => {
            return Err(format!("query {other:?}, expected match, multi_match, query_string or simple_query_string"));
        }
    };
    let inner = inner.ok_or("\"match\" names no field")?;
    let text = inner.as_str().or_else(|| inner.get("query").and_then(Value::as_str)).ok_or("the query has no text")?;
    let operator = inner.get("operator").or_else(|| inner.get("default_operator")).and_then(Value::as_str);
    let mode = match operator.map(str::to_ascii_lowercase).as_deref() {
        None => None,
        Some("and") => Some(Mode::And),
        Some("or") => Some(Mode::Or),
        Some(other) => return Err(format!("operator {other:?}, expected and or or")),
    };
    let k = match value.get("size") {
        None => DEFAULT_K,
        Some(size) => size.as_u64().ok_or("size is no number")?,
    };
    let has_total = value.get("track_total_hits") != Some(&Value::Bool(false));
    checked(Asked { text: text.to_owned(), k: k.try_into().unwrap_or(usize::MAX), mode, has_total })
}

fn checked(asked: Asked) -> Result<Asked, String> {
    if (1..=MAX_K).contains(&asked.k) { Ok(asked) } else { Err(format!("size is {}, expected 1 to {MAX_K}", asked.k)) }
}

/// The text behind percent-encoding, with `+` for spaces.
fn decoded(text: &str) -> String {
    let hex = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let mut ahead = bytes.clone();
        let escaped = if byte == b'%' { ahead.next().and_then(hex).zip(ahead.next().and_then(hex)) } else { None };
        match escaped {
            Some((high, low)) => {
                out.push(16 * high + low);
                bytes = ahead;
            }
            None => out.push(if byte == b'+' { b' ' } else { byte }),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A response in OpenSearch's form, to one query.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Answer<'a> {
    Hits { took: u64, timed_out: bool, _shards: Shards, hits: Hits<'a>, status: u16 },
    Error { error: Reason<'a>, status: u16 },
}

#[derive(Serialize)]
pub(super) struct Shards {
    total: u8,
    successful: u8,
    skipped: u8,
    failed: u8,
}

#[derive(Serialize)]
pub(super) struct Hits<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Total>,
    max_score: Option<f32>,
    hits: Vec<Hit<'a>>,
}

#[derive(Serialize)]
struct Total {
    value: usize,
    relation: &'static str,
}

#[derive(Serialize)]
struct Hit<'a> {
    _index: &'static str,
    _id: &'a str,
    _score: f32,
}

#[derive(Serialize)]
pub(super) struct Reason<'a> {
    r#type: &'static str,
    reason: &'a str,
}

impl<'a> Answer<'a> {
    /// External ids with scores, best first.
    pub(super) fn hits(found: &'a [(String, f32)], took: u64, asked: &Asked) -> Self {
        let hit = |(id, score): &'a (String, f32)| Hit { _index: "tandem", _id: id, _score: *score };
        // Searches stop early, so that only a lower bound is known.
        let relation = if found.len() < asked.k { "eq" } else { "gte" };
        let total = asked.has_total.then_some(Total { value: found.len(), relation });
        let max_score = found.first().map(|(_, score)| *score);
        let hits = Hits { total, max_score, hits: found.iter().map(hit).collect() };
        let shards = Shards { total: 1, successful: 1, skipped: 0, failed: 0 };
        Self::Hits { took, timed_out: false, _shards: shards, hits, status: 200 }
    }

    pub(super) fn error(status: u16, reason: &'a str) -> Self {
        let kind = if status == 429 { "rejected_execution_exception" } else { "illegal_argument_exception" };
        Self::Error { error: Reason { r#type: kind, reason }, status }
    }

    pub(super) fn status(&self) -> u16 {
        let (Self::Hits { status, .. } | Self::Error { status, .. }) = self;
        *status
    }
}

/// The response to several queries, each with its status.
#[derive(Serialize)]
pub(super) struct Answers<'a> {
    pub(super) took: u64,
    pub(super) responses: Vec<Answer<'a>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_in_all_their_forms_and_others_are_explained() {
        let parsed = |body: &str| parse(body.as_bytes(), None);
        let one = parsed(r#"{"query":{"match":{"text":"ocean tides"}},"size":3,"track_total_hits":false}"#).unwrap();
        assert_eq!((one.text.as_str(), one.k, one.mode, one.has_total), ("ocean tides", 3, None, false));
        let and = parsed(r#"{"query":{"match":{"f":{"query":"a b","operator":"AND"}}}}"#).unwrap();
        assert_eq!((and.text.as_str(), and.k, and.mode), ("a b", 10, Some(Mode::And)));
        let url = parse(b"", Some("q=ocean%20tides+%zz&size=5")).unwrap();
        assert_eq!((url.text.as_str(), url.k), ("ocean tides %zz", 5));
        for (bad, expected) in [
            ("{", "line 1, column 1"),
            ("{}", "no object \"query\""),
            (r#"{"query":{"term":{"a":"b"}}}"#, "expected match"),
            (r#"{"query":{"match":{"a":"b"}},"size":0}"#, "size is 0"),
            (r#"{"query":{"match":{"a":3}}}"#, "no text"),
        ] {
            let told = parsed(bad).unwrap_err();
            assert!(told.contains(expected), "{told}");
        }
        let many = "{}\n{\"query\":{\"match\":{\"a\":\"x\"}}}\n{}\n{\"query\":{\"match\":{\"a\":\"y\"}}}\n";
        assert_eq!(parse_many(many.as_bytes(), 9).unwrap().len(), 2);
        assert!(parse_many(b"{}\n", 9).is_err() && parse_many(many.as_bytes(), 1).is_err());
    }
}
