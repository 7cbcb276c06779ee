//! The requests of a query log, prepared before a run: a dialect with its placeholders filled in.

use std::io::Write as _;

use hyper::Uri;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::Value;

use crate::HttpError;
use crate::dialect::Dialect;
use crate::target::Target;

/// The prepared requests of a log, one per query.
#[derive(Clone, Debug)]
pub struct Requests {
    /// The dialect's headers, a line each.
    headers: String,
    /// Path and body by query.
    queries: Vec<(String, String)>,
    pub(crate) dialect: Dialect,
}

impl Requests {
    /// Prepares the requests for `queries` to a server under `base_path`.
    ///
    /// # Errors
    /// If a path or a header is not what HTTP allows.
    pub fn new(
        dialect: &Dialect,
        base_path: &str,
        k: usize,
        deadline_ms: f64,
        queries: &[String],
    ) -> Result<Self, HttpError> {
        let form = &dialect.form;
        let common = |name: &str| match name {
            "k" => Some(k.to_string()),
            "deadline_ms" => Some(deadline_ms.to_string()),
            name => form.variables.get(name).cloned(),
        };
        let mut headers = String::new();
        for (name, value) in &form.headers {
            let value = filled(value, &common);
            if HeaderName::try_from(name).is_err() || HeaderValue::try_from(&value).is_err() {
                return Err(HttpError::Target(format!("{name}: {value} is no header")));
            }
            headers += &format!("{name}: {value}\r\n");
        }
        if form.method == "POST" && !form.headers.keys().any(|name| name.eq_ignore_ascii_case("content-type")) {
            headers += "content-type: application/json\r\n";
        }
        let prepare = |query: &String| {
            let plain = |name: &str| if name == "query" { Some(query.clone()) } else { common(name) };
            let encoded = |name: &str| plain(name).map(|value| percent_encoded(&value));
            let path = format!("{}{}", base_path.trim_end_matches('/'), filled(&form.path, &encoded));
            Uri::try_from(&path).map_err(|e| HttpError::Target(format!("query {query:.60?}: {e}")))?;
            let mut body = String::new();
            if let Some(template) = &form.body {
                body = filled_json(template, k, &plain).to_string();
            }
            for line in &form.lines {
                body += &filled_json(line, k, &plain).to_string();
                body.push('\n');
            }
            Ok((path, body))
        };
        let queries = queries.iter().map(prepare).collect::<Result<Vec<_>, HttpError>>()?;
        Ok(Self { headers, queries, dialect: dialect.clone() })
    }

    /// The name of the dialect.
    #[must_use]
    pub fn dialect_name(&self) -> &str {
        &self.dialect.name
    }

    /// Number of queries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queries.len()
    }

    /// Whether there are no queries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// The path of a query's request.
    fn path(&self, query: usize) -> &str {
        &self.queries[query].0
    }

    /// The request for a query, without headers, in one line.
    pub(crate) fn shown(&self, query: usize) -> String {
        let (path, body) = &self.queries[query];
        format!("{} {path:.300} {:.300}", self.dialect.form.method, body.trim_end().replace('\n', " "))
    }

    /// The headers that all requests to a target share, with its credentials.
    pub(crate) fn head(&self, target: &Target) -> Vec<u8> {
        let mut head = format!("host: {}\r\n{}", target.authority, self.headers).into_bytes();
        if let Some((name, credentials)) = &target.credentials {
            for part in [name.as_str().as_bytes(), b": ", credentials.value().as_bytes(), b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
        head
    }

    /// Writes the request for some queries, with headers of [`Self::head`].
    pub(crate) fn write(&self, queries: impl Iterator<Item = usize> + Clone, headers: &[u8], out: &mut Vec<u8>) {
        let path = queries.clone().next().map_or("/", |first| self.path(first));
        for part in [self.dialect.form.method.as_bytes(), b" ", path.as_bytes(), b" HTTP/1.1\r\n", headers] {
            out.extend_from_slice(part);
        }
        let bodies = queries.map(|query| self.queries[query].1.as_bytes());
        let length: usize = bodies.clone().map(<[u8]>::len).sum();
        if length > 0 {
            write!(out, "content-length: {length}\r\n").expect("a vector takes all that is written");
        }
        out.extend_from_slice(b"\r\n");
        bodies.for_each(|body| out.extend_from_slice(body));
    }
}

/// Replaces placeholders; `value` gives those that are known. One pass, so that a query may contain braces.
fn filled(text: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out += &rest[..open];
        let inner = &rest[open + 1..];
        let known = inner.find('}').and_then(|close| Some((value(&inner[..close])?, close)));
        match known {
            Some((known, close)) => {
                out += &known;
                rest = &inner[close + 1..];
            }
            None => {
                out.push('{');
                rest = inner;
            }
        }
    }
    out + rest
}

fn filled_json(template: &Value, k: usize, value: &dyn Fn(&str) -> Option<String>) -> Value {
    match template {
        Value::String(text) if text == "{k}" => k.into(),
        Value::String(text) => filled(text, value).into(),
        Value::Array(values) => values.iter().map(|one| filled_json(one, k, value)).collect(),
        Value::Object(pairs) => {
            pairs.iter().map(|(key, one)| (filled(key, value), filled_json(one, k, value))).collect()
        }
        other => other.clone(),
    }
}

fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_dialect_is_valid_and_fills_in_a_hostile_query() {
        let query = String::from("say \"hi\" {k} & \\ ä\n{query}");
        for name in Dialect::shipped() {
            let dialect = Dialect::named(name).unwrap();
            let requests = Requests::new(&dialect, "/wiki/", 10, 50.0, std::slice::from_ref(&query)).unwrap();
            let (path, body) = &requests.queries[0];
            assert!(path.starts_with("/wiki/") && !path.contains("//"), "{path}");
            let texts: Vec<Value> = body.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            let mut all = Vec::new();
            texts.iter().for_each(|value| crate::dialect::strings(value, &mut all));
            let in_path = path.contains("say%20%22hi%22%20%7Bk%7D%20%26");
            assert!(all.contains(&query) || in_path, "{name}: {path} {body}");
        }
    }

    #[test]
    fn variables_are_set_by_name_and_unknown_ones_are_refused() {
        let dialect = Dialect::named("opensearch,field=contents").unwrap();
        let requests = Requests::new(&dialect, "", 3, 50.0, &[String::from("moon")]).unwrap();
        let body: Value = serde_json::from_str(&requests.queries[0].1).unwrap();
        assert_eq!((&body["query"]["match"]["contents"], &body["size"]), (&"moon".into(), &3.into()));
        assert!(
            Dialect::named("opensearch,filed=x").unwrap_err().to_string().contains("no variable \"filed\" (field)")
        );
        assert!(Dialect::named("nope").unwrap_err().to_string().contains("opensearch"));
    }
}
