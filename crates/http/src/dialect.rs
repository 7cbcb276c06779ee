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
//! | `expected` | pointers with the value that a complete answer has there, if it has one |
//! | `equal` | pointers with the pointer of an equal number: an answer in which they differ is partial |
//! | `variables` | further placeholders with their defaults, such as the name of the field |
//! | `credentials_header` | the header that carries the credentials |
//!
//! Placeholders are `{query}`, `{k}`, `{deadline_ms}` and the variables. A JSON string that is exactly `{k}` becomes a
//! number. JSON pointers follow RFC 6901. In every dialect, a body with `error` or `errors` is no complete answer, whatever its
//! status.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hyper::header::{HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::{Value, json};
use tandem_model::files::InputError;

use crate::run::{Fault, Outcome};

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

/// Headers that the client sets.
const FORBIDDEN: [&str; 4] = ["content-length", "host", "transfer-encoding", "connection"];
/// Words in the names of headers, parameters and variables whose values are secret.
const SECRET: [&str; 11] = [
    "auth",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "key",
    "apikey",
    "password",
    "passwd",
    "secret",
    "token",
];
/// What says in any dialect that an answer is wrong, unless it is absent, null, false, 0 or empty.
const ERRORS: [&str; 2] = ["/error", "/errors"];

/// Most arrays and objects of a body, and most commas: a value takes more memory than its bytes.
const MOST_NESTED: usize = 100_000;
const MOST_VALUES: usize = 1_000_000;

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
    #[serde(default)]
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
    equal: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) variables: BTreeMap<String, String>,
    credentials_header: Option<String>,
}

fn one() -> u32 {
    1
}

/// The answer to one query: number of hits, and the server's own time in milliseconds, NaN if it reports none.
pub(crate) type Reply = Result<(u32, f32), Fault>;

/// Whether a name is one of those that carry credentials.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.split(['-', '_', '.'])
        .any(|word| SECRET.contains(&word) || word.ends_with("token") || word.ends_with("apikey"))
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
            if is_secret(key) {
                return Err(wrong(format!("variable {key} would be written to files (credentials: --credentials)")));
            }
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
        let malformed = |why: String| (Outcome::Malformed, format!("not the expected JSON: {why}"));
        let count = |of: &[u8]| body.iter().filter(|byte| of.contains(byte)).count();
        let value = if count(b"{[") > MOST_NESTED || count(b",") > MOST_VALUES {
            Err(malformed(String::from("too many values")))
        } else {
            serde_json::from_slice::<Value>(body).map_err(|e| malformed(e.to_string()))
        };
        let replies = value.and_then(|value| match &self.form.responses {
            None => Ok(vec![self.reply(&value)]),
            Some(array) => match value.pointer(array).and_then(Value::as_array) {
                Some(all) if all.len() == queries => Ok(all.iter().map(|one| self.reply(one)).collect()),
                _ => Err(malformed(format!("{array} is no array of {queries}"))),
            },
        });
        match replies {
            Ok(replies) => replies.into_iter().for_each(each),
            Err(fault) => (0..queries).for_each(|_| each(Err(fault.clone()))),
        }
    }

    fn reply(&self, value: &Value) -> Reply {
        let at = |pointer: &str| value.pointer(pointer).filter(|value| !value.is_null());
        let number = |pointer: &Option<String>| at(pointer.as_deref()?)?.as_f64();
        if let Some(status) = number(&self.form.status).filter(|&status| status != 200.0) {
            return Err((Outcome::of_status(status as u16), format!("status {status} of one of several queries")));
        }
        let partial = |pointer: &str, is: &Value, why: String| {
            Err((Outcome::Partial, format!("{pointer} is {:.80}{why}", is.to_string())))
        };
        let nothing = [json!(false), json!(0), json!(""), json!([]), json!({})];
        for error in ERRORS {
            if let Some(is) = at(error).filter(|is| !nothing.contains(is)) {
                return partial(error, is, String::new());
            }
        }
        let is_equal =
            |one: &Value, other: &Value| one == other || one.as_f64().is_some_and(|one| other.as_f64() == Some(one));
        for (pointer, expected) in &self.form.expected {
            if let Some(is) = at(pointer).filter(|is| !is_equal(is, expected)) {
                return partial(pointer, is, format!(", expected {expected}"));
            }
        }
        for (pointer, other) in &self.form.equal {
            if let (Some(one), Some(two)) = (at(pointer), at(other))
                && !is_equal(one, two)
            {
                return partial(pointer, one, format!(", and {other} is {:.80}", two.to_string()));
            }
        }
        match at(&self.form.hits).and_then(Value::as_array) {
            Some(hits) => Ok((hits.len() as u32, number(&self.form.server_ms).map_or(f32::NAN, |ms| ms as f32))),
            None => Err((Outcome::Malformed, format!("no array of hits at {}", self.form.hits))),
        }
    }
}

/// The place of an error in the source, and the message.
type FormFault = (String, String);

fn check(form: &Form) -> Result<(), FormFault> {
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
    let compared = form.expected.keys().chain(form.equal.keys()).chain(form.equal.values());
    for pointer in pointers.chain([&form.hits]).chain(compared) {
        if !pointer.is_empty() && !pointer.starts_with('/') {
            return fault(pointer, format!("{pointer:?} is no JSON pointer, expected to begin with /"));
        }
    }
    let parameters = form.path.split_once('?').map_or("", |(_, query)| query).split('&');
    let names = parameters
        .map(|pair| pair.split('=').next().unwrap_or_default())
        .chain(form.variables.keys().map(String::as_str));
    if let Some(name) = names.into_iter().find(|name| is_secret(name)) {
        return fault(name, format!("{name} does not belong into a dialect (credentials: --credentials)"));
    }
    for (name, value) in &form.headers {
        let lower = name.to_ascii_lowercase();
        let is_credentials = form.credentials_header.as_ref().is_some_and(|header| header.eq_ignore_ascii_case(name));
        if FORBIDDEN.contains(&lower.as_str()) || is_secret(name) || is_credentials {
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
        let outcomes = |replies: &[Reply]| {
            replies
                .iter()
                .map(|reply| reply.as_ref().map_or_else(|fault| fault.0, |_| Outcome::Answered))
                .collect::<Vec<_>>()
        };
        let one = read("opensearch", 1, r#"{"took":3,"timed_out":false,"hits":{"hits":[{"_id":[1,{}]},{}]}}"#);
        assert_eq!(one, [Ok((2, 3.0))]);
        for (part, why) in [
            (r#""timed_out":true"#, "/timed_out is true, expected false"),
            (r#""_shards":{"total":2,"successful":1,"failed":0}"#, "/_shards/successful is 1, and /_shards/total is 2"),
            (r#""_shards":{"total":2,"successful":2,"failed":1}"#, "/_shards/failed is 1, expected 0"),
            (r#""_shards":{"failed":0,"failures":[{}]}"#, "/_shards/failures is [{}], expected []"),
            (r#""_clusters":{"total":2,"successful":1,"skipped":1}"#, "/_clusters/skipped is 1, expected 0"),
            (r#""terminated_early":true"#, "/terminated_early is true"),
            (r#""error":{"type":"x"}"#, "/error is {\"type\":\"x\"}"),
        ] {
            let told = read("opensearch", 1, &format!("{{{part},\"hits\":{{\"hits\":[]}}}}")).remove(0).unwrap_err();
            assert!(told.0 == Outcome::Partial && told.1.contains(why), "{told:?}");
        }
        let whole =
            r#"{"timed_out":null,"error":null,"_shards":{"total":2,"successful":2,"failed":0.0},"hits":{"hits":[]}}"#;
        assert_eq!(outcomes(&read("opensearch", 1, whole)), [Outcome::Answered]);
        for other in ["anserini", "seekstorm", "tantivy"] {
            let told = read(other, 1, r#"{"error":"no index","candidates":[],"results":[],"hits":[]}"#);
            assert_eq!(outcomes(&told), [Outcome::Partial], "{other}");
        }
        for bad in [
            "",
            "[",
            "{}",
            "{\"hits\":3}",
            "{\"hits\":{\"hits\":[]}} x",
            &"[".repeat(100_000),
            &format!("[{}]", "{},".repeat(200_000)),
        ] {
            assert_eq!(outcomes(&read("opensearch", 1, bad)), [Outcome::Malformed], "{bad:.10}");
        }
        let two = read(
            "msearch",
            2,
            r#"{"took":1,"responses":[{"status":200,"hits":{"hits":[]}},{"status":429,"error":{}}]}"#,
        );
        assert_eq!(outcomes(&two), [Outcome::Answered, Outcome::Rejected]);
        let lost = r#"{"responses":[{"_shards":{"total":2,"successful":1},"hits":{"hits":[]}}]}"#;
        assert_eq!(outcomes(&read("msearch", 1, lost)), [Outcome::Partial]);
        for bad in [r#"{"responses":[]}"#, r#"{"responses":3}"#, r#"{"responses":[{},{},{}]}"#, "[]", "{}"] {
            assert_eq!(outcomes(&read("msearch", 2, bad)), [Outcome::Malformed; 2], "{bad}");
        }
    }

    #[test]
    fn names_of_credentials_belong_into_no_dialect() {
        for secret in ["X-Api-Key", "apikey", "authorization", "x-auth-token", "private_token", "Cookie", "my.secret"] {
            assert!(is_secret(secret), "{secret}");
        }
        for plain in ["content-type", "x-deadline-ms", "tokenizer", "keyword", "field", "author"] {
            assert!(!is_secret(plain), "{plain}");
        }
        let with = |part: &str| parse(&format!(r#"{{"about":"x","method":"GET","hits":"/h",{part}}}"#)).unwrap_err();
        for part in [
            r#""path":"/?q={query}","headers":{"X-Api-Key":"s3cret"}"#,
            r#""path":"/?api_key=s3cret&q={query}""#,
            r#""path":"/?q={query}","variables":{"token":"s3cret"}"#,
        ] {
            assert!(with(part).contains("--credentials") && !with(part).contains("s3cret"), "{part}");
        }
    }
}
