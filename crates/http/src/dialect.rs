//! Dialects: how to put a query to a search server, as data.
//!
//! A dialect is a JSON file. `engines/` holds those that ship; users write others in the same form:
//!
//! | key | meaning |
//! | --- | --- |
//! | `about` | the server and what is special about it |
//! | `method` | `GET` or `POST` |
//! | `path` | what follows the target's URL; placeholders are percent-encoded |
//! | `headers` | request headers; credentials are not allowed here |
//! | `body` | JSON of the request, for one query |
//! | `lines`, `batch` | instead of `body`: JSON values per query, one per line, and the most queries per request |
//! | `responses`, `status` | with `lines`: pointer to the array of responses, and in each to its status |
//! | `hits` | JSON pointer to the array of hits; an answer without it is malformed |
//! | `server_ms` | JSON pointer to the server's own time, if it reports one |
//! | `expected` | pointers with the value that an answer must have there if the value is present |
//! | `variables` | further placeholders with their defaults, such as the name of the field |
//! | `credentials_header` | the header that carries the credentials |
//!
//! Placeholders are `{query}`, `{k}`, `{deadline_ms}` and the variables. A JSON string that is exactly `{k}` becomes a
//! number. JSON pointers follow RFC 6901.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hyper::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::Value;
use tandem_model::files::InputError;

use crate::run::Outcome;

/// The dialects that ship, by name.
const SHIPPED: [(&str, &str); 7] = [
    ("anserini", include_str!("../engines/anserini.json")),
    ("elasticsearch", include_str!("../engines/opensearch.json")),
    ("msearch", include_str!("../engines/msearch.json")),
    ("opensearch", include_str!("../engines/opensearch.json")),
    ("seekstorm", include_str!("../engines/seekstorm.json")),
    ("tandem", include_str!("../engines/tandem.json")),
    ("tantivy", include_str!("../engines/tantivy.json")),
];

/// Headers that the client sets, or that would put credentials into a file.
const FORBIDDEN: [&str; 6] =
    ["authorization", "proxy-authorization", "cookie", "content-length", "host", "transfer-encoding"];

/// Most queries that share a request.
const MOST_BATCH: u32 = 10_000;

/// The form of queries to a kind of server, and of its answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Dialect {
    /// Its name: of a shipped dialect, or the path of a file.
    pub name: String,
    pub(crate) form: Form,
}

/// The file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Form {
    about: String,
    pub(crate) method: String,
    pub(crate) path: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Option<Value>,
    #[serde(default)]
    pub(crate) lines: Vec<Value>,
    #[serde(default = "one")]
    batch: u32,
    responses: Option<String>,
    status: Option<String>,
    hits: String,
    server_ms: Option<String>,
    #[serde(default)]
    expected: BTreeMap<String, Value>,
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, String>,
    credentials_header: Option<String>,
}

fn one() -> u32 {
    1
}

/// The answer to one query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reply {
    /// Whether it is an answer, or which kind of failure.
    pub(crate) outcome: Outcome,
    /// Number of hits.
    pub(crate) hits: u32,
    /// The server's own time in milliseconds; NaN if it reports none.
    pub(crate) server_ms: f32,
}

impl Reply {
    pub(crate) fn failed(outcome: Outcome) -> Self {
        Self { outcome, hits: 0, server_ms: f32::NAN }
    }
}

impl Dialect {
    /// Names of the shipped dialects.
    #[must_use]
    pub fn shipped() -> Vec<&'static str> {
        SHIPPED.iter().map(|(name, _)| *name).collect()
    }

    /// The dialect of `text`: a shipped name or a path, then perhaps `,VARIABLE=VALUE` once or more.
    ///
    /// # Errors
    /// If there is no such dialect or variable, or the file is invalid: with line and column.
    pub fn named(text: &str) -> Result<Self, InputError> {
        let mut parts = text.split(',');
        let name = parts.next().unwrap_or_default();
        let path = Path::new(name);
        let mut dialect = match SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
            Some((_, source)) => Self::parse(&PathBuf::from(format!("engines/{name}.json")), name, source)?,
            None if path.exists() => {
                let source = std::fs::read_to_string(path).map_err(|e| InputError::file(path, e.to_string()))?;
                Self::parse(path, name, &source)?
            }
            None => {
                let known = Self::shipped().join(", ");
                return Err(InputError::file(
                    path,
                    format!("no such file, and no dialect of this name ships ({known})"),
                ));
            }
        };
        for part in parts {
            let wrong = |why: String| InputError::file(path, why);
            let (key, value) =
                part.split_once('=').ok_or_else(|| wrong(format!("{part:?}, expected VARIABLE=VALUE")))?;
            let known: Vec<&str> = dialect.form.variables.keys().map(String::as_str).collect();
            let known = if known.is_empty() { String::from("it has none") } else { known.join(", ") };
            match dialect.form.variables.get_mut(key) {
                Some(variable) => value.clone_into(variable),
                None => return Err(wrong(format!("no variable {key:?} ({known})"))),
            }
        }
        Ok(dialect)
    }

    /// Reads the source of a dialect.
    fn parse(path: &Path, name: &str, source: &str) -> Result<Self, InputError> {
        let form: Form = serde_json::from_str(source).map_err(|e| InputError::json(path, &e))?;
        check(&form).map_err(|(part, why)| match source.find(&part) {
            Some(at) if !part.is_empty() => {
                let before = &source[..at];
                let line = before.matches('\n').count() as u64 + 1;
                let column = before.chars().rev().take_while(|&c| c != '\n').count() as u64 + 1;
                InputError::at(path, line, column, why)
            }
            _ => InputError::file(path, why),
        })?;
        Ok(Self { name: name.to_owned(), form })
    }

    /// The server that it is for.
    #[must_use]
    pub fn about(&self) -> &str {
        &self.form.about
    }

    /// Most queries per request.
    #[must_use]
    pub fn batch(&self) -> usize {
        self.form.batch as usize
    }

    /// The header that carries credentials.
    pub(crate) fn credentials_header(&self) -> &str {
        self.form.credentials_header.as_deref().unwrap_or("authorization")
    }

    /// The dialect in the head of files: name, method, path and variables.
    #[must_use]
    pub fn provenance(&self) -> String {
        let variables: Vec<String> =
            self.form.variables.iter().map(|(key, value)| format!(", {key}={value}")).collect();
        let body: String = self.form.body.iter().chain(&self.form.lines).map(|value| format!(" {value}")).collect();
        format!("{}{}: {} {}{body}", self.name, variables.concat(), self.form.method, self.form.path)
    }

    /// Reads the response to `queries` queries with status 200.
    pub(crate) fn read(&self, body: &[u8], queries: usize, mut each: impl FnMut(Reply)) {
        let Ok(value) = serde_json::from_slice::<Value>(body) else {
            return (0..queries).for_each(|_| each(Reply::failed(Outcome::Malformed)));
        };
        let Some(pointer) = &self.form.responses else { return each(self.reply(&value)) };
        let responses = value.pointer(pointer).and_then(Value::as_array);
        let replies = responses.filter(|responses| responses.len() == queries);
        match replies {
            Some(replies) => replies.iter().for_each(|reply| each(self.reply(reply))),
            None => (0..queries).for_each(|_| each(Reply::failed(Outcome::Malformed))),
        }
    }

    fn reply(&self, value: &Value) -> Reply {
        let status = self.form.status.as_ref().and_then(|pointer| value.pointer(pointer)).and_then(Value::as_u64);
        if let Some(status) = status.filter(|&status| status != 200) {
            return Reply::failed(Outcome::of_status(status.try_into().unwrap_or(u16::MAX)));
        }
        let differs = |(pointer, expected): (&String, &Value)| value.pointer(pointer).is_some_and(|is| is != expected);
        if self.form.expected.iter().any(differs) {
            return Reply::failed(Outcome::Partial);
        }
        let Some(hits) = value.pointer(&self.form.hits).and_then(Value::as_array) else {
            return Reply::failed(Outcome::Malformed);
        };
        let server_ms = self.form.server_ms.as_ref().and_then(|pointer| value.pointer(pointer)).and_then(Value::as_f64);
        Reply {
            outcome: Outcome::Answered,
            hits: hits.len() as u32,
            server_ms: server_ms.map_or(f32::NAN, |ms| ms as f32),
        }
    }
}

/// The place of an error in the source, and the message.
type Fault = (String, String);

fn check(form: &Form) -> Result<(), Fault> {
    let fault = |part: &str, why: String| Err((format!("\"{part}\""), why));
    if !["GET", "POST"].contains(&form.method.as_str()) {
        return fault(&form.method, format!("method {:?}, expected GET or POST", form.method));
    }
    if !form.path.starts_with('/') {
        return fault(&form.path, format!("path {:?}, expected to begin with /", form.path));
    }
    let is_post = form.method == "POST";
    match (&form.body, form.lines.is_empty()) {
        (Some(_), false) => return fault("lines", String::from("has body and lines, expected one of them")),
        (None, true) if is_post => {
            return fault("POST", String::from("has neither body nor lines, and POST needs one"));
        }
        (Some(_), _) | (_, false) if !is_post => return fault("GET", String::from("GET has no body")),
        _ => {}
    }
    if form.lines.is_empty() != form.responses.is_none() {
        return fault("responses", String::from("lines and responses need each other"));
    }
    if form.batch == 0 || form.batch > MOST_BATCH || (form.batch > 1 && form.lines.is_empty()) {
        return fault("batch", format!("batch is {}, expected 1, or up to {MOST_BATCH} with lines", form.batch));
    }
    let pointers = [&form.responses, &form.status, &form.server_ms].into_iter().flatten();
    for pointer in pointers.chain([&form.hits]).chain(form.expected.keys()) {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return fault(pointer, format!("{pointer:?} is no JSON pointer, expected to begin with /"));
        }
    }
    for (name, value) in &form.headers {
        let lower = name.to_ascii_lowercase();
        if FORBIDDEN.contains(&lower.as_str()) || Some(&lower) == form.credentials_header.as_ref() {
            return fault(name, format!("header {name} does not belong into a dialect (credentials: --credentials)"));
        }
        if HeaderName::try_from(name).is_err() || HeaderValue::try_from(value).is_err() {
            return fault(name, format!("{name}: {value} is no header"));
        }
    }
    if let Some(name) = form.credentials_header.as_ref().filter(|name| HeaderName::try_from(name.as_str()).is_err()) {
        return fault(name, format!("{name:?} is no name of a header"));
    }
    let mut texts: Vec<String> = vec![form.path.clone()];
    texts.extend(form.headers.values().cloned());
    form.body.iter().chain(&form.lines).for_each(|value| strings(value, &mut texts));
    let known = |name: &str| ["query", "k", "deadline_ms"].contains(&name) || form.variables.contains_key(name);
    for text in &texts {
        if let Some(name) = placeholders(text).find(|name| !known(name)) {
            let why = format!("unknown placeholder {{{name}}} (query, k, deadline_ms, or a key of variables)");
            return Err((format!("{{{name}}}"), why));
        }
    }
    if !texts.iter().any(|text| placeholders(text).any(|name| name == "query")) {
        return Err((String::new(), String::from("{query} appears nowhere")));
    }
    Ok(())
}

/// All keys and strings of a JSON value.
pub(crate) fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(values) => values.iter().for_each(|value| strings(value, into)),
        Value::Object(pairs) => pairs.iter().for_each(|(key, value)| {
            into.push(key.clone());
            strings(value, into);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The names of `text` that are in braces and consist of lower-case letters and underscores.
pub(crate) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name)).filter(|name| is_name(name))
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(source: &str) -> Result<Dialect, String> {
        Dialect::parse(Path::new("d.json"), "d", source).map_err(|e| e.to_string())
    }

    #[test]
    fn errors_of_a_dialect_have_line_and_column() {
        let with = |line: &str| parse(&format!("{{\"about\": \"x\", \"method\": \"GET\",\n{line}}}"));
        let valid = "\"path\": \"/?q={query}\", \"hits\": \"/hits\"";
        assert!(with(valid).is_ok());
        for (line, place, expected) in [
            ("\"path\": \"/?q={query}&f={field}\", \"hits\": \"/h\"", "d.json:2:24:", "unknown placeholder {field}"),
            ("\"path\": \"/?q=x\", \"hits\": \"/h\"", "d.json:", "{query} appears nowhere"),
            ("\"path\": \"/?q={query}\", \"hits\": \"hits\"", "d.json:2:24:", "\"hits\" is no JSON pointer"),
            ("\"path\": \"/{query}\", \"hitz\": \"/h\"", "d.json:2:", "unknown field `hitz`"),
            (&format!("{valid}, \"headers\": {{\"Authorization\": \"x\"}}"), "d.json:2:", "credentials: --credentials"),
            (&format!("{valid}, \"body\": {{}}"), "d.json:1:26:", "GET has no body"),
        ] {
            let told = with(line).unwrap_err();
            assert!(told.starts_with(place) && told.contains(expected), "{told}");
        }
    }

    #[test]
    fn answers_are_read_by_their_pointers() {
        let read = |name: &str, queries, body: &str| {
            let mut replies = Vec::new();
            Dialect::named(name).unwrap().read(body.as_bytes(), queries, |reply| replies.push(reply));
            replies
        };
        let outcomes = |replies: &[Reply]| replies.iter().map(|reply| reply.outcome).collect::<Vec<_>>();
        let one = read("opensearch", 1, r#"{"took":3,"timed_out":false,"hits":{"hits":[{},{}]}}"#);
        assert_eq!((one[0].outcome, one[0].hits, one[0].server_ms), (Outcome::Answered, 2, 3.0));
        let late = read("opensearch", 1, r#"{"timed_out":true,"hits":{"hits":[]}}"#);
        assert_eq!(outcomes(&late), [Outcome::Partial]);
        for bad in ["", "[", "{}", "{\"hits\":3}", &"[".repeat(100_000)] {
            assert_eq!(outcomes(&read("opensearch", 1, bad)), [Outcome::Malformed], "{bad:.10}");
        }
        let two = read("msearch", 2, r#"{"responses":[{"status":200,"hits":{"hits":[]}},{"status":429,"error":{}}]}"#);
        assert_eq!(outcomes(&two), [Outcome::Answered, Outcome::Rejected]);
        assert_eq!(outcomes(&read("msearch", 2, r#"{"responses":[]}"#)), [Outcome::Malformed; 2]);
    }
}
