//! The server answers like the executor, in OpenSearch's form, and rejects what is too much.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use tandem_drive::live;
use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_engine::search::Executor;
use tandem_engine::search::cpu::CpuExecutor;
use tandem_http::{Client, Dialect, Limits, Outcome, Requests, ServeOptions, Served, Target, serve};
use tandem_model::base::ids::QueryId;
use tandem_model::base::time::Nanos;
use tandem_model::sched::{PolicyKind, PolicyOptions};
use tandem_model::sim::Arrivals;
use tandem_model::traffic::{ArrivalProcess, Mode};

fn index() -> Arc<Index> {
    let postings = |step: usize| (0..3000).step_by(step).map(|doc| (doc as u32, 1 + doc as u32 % 3)).collect();
    let lists: Vec<(String, Vec<(u32, u32)>)> = [2, 3, 5, 7].map(|step| (format!("term{step}"), postings(step))).into();
    Arc::new(Index::from_lists(&lists).unwrap())
}

/// Sends a request and reads until the server closes.
fn ask(address: SocketAddr, head: &str, body: &str) -> String {
    ask_within(address, head, "50", body)
}

fn ask_within(address: SocketAddr, head: &str, deadline: &str, body: &str) -> String {
    ask_with(address, head, &format!("host: localhost\r\nx-deadline-ms: {deadline}"), body)
}

fn ask_with(address: SocketAddr, head: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let headers = format!("{headers}\r\nconnection: close\r\ncontent-length: {}", body.len());
    write!(stream, "{head} HTTP/1.1\r\n{headers}\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_server_answers_like_its_executor_rejects_overload_and_ends_gracefully() {
    let index = index();
    let (told, listening) = channel();
    let served = {
        let index = Arc::clone(&index);
        thread::spawn(move || {
            let policy = PolicyKind::CpuOnly.with(PolicyOptions::default());
            let options = ServeOptions {
                name: String::from("wiki"),
                address: "127.0.0.1:0".parse().unwrap(),
                workers: 1,
                deadline: Nanos::from_ms(50.0),
                most_queries: 8,
                mode: Mode::Or,
            };
            serve(&index, &policy, &options, |address| told.send(address).unwrap()).unwrap()
        })
    };
    let address = listening.recv().unwrap();
    // The same hits as the executor, in the same order.
    let body = r#"{"query":{"match":{"text":"term3 term5"}},"size":4,"_source":false}"#;
    let answer = ask(address, "POST /wiki/_search", body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let value: serde_json::Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    let query = Query::prepare(QueryId(0), "", &["term3", "term5"], &index).unwrap();
    let mut hits = Vec::new();
    CpuExecutor::new(Arc::clone(&index), index.built_with()).search(&query, Mode::Or, 4, &mut hits).unwrap();
    let ids: Vec<String> = hits.iter().map(|hit| index.external_id(hit.doc).into_owned()).collect();
    let served_ids: Vec<&str> =
        value["hits"]["hits"].as_array().unwrap().iter().map(|hit| hit["_id"].as_str().unwrap()).collect();
    assert_eq!(served_ids, ids);
    // Several queries; one without a known term has no hits.
    let lines = "\n{\"query\":{\"match\":{\"a\":\"term2\"}},\"size\":1}\n{\"index\":\"wiki\"}\n{\"query\":{\"match\":{\"a\":\"nothing\"}}}\n";
    let many = ask(address, "POST /_msearch", lines);
    assert!(many.contains("\"status\":200") && many.contains("\"hits\":[]"), "{many}");
    assert!(ask(address, "GET /_search?q=term2&size=1", "").starts_with("HTTP/1.1 200"));
    // All forms of a query, and errors.
    for (body, expected) in [
        (r#"{"query":{"match":{"f":{"query":"term3 term5","operator":"AND"}}}}"#, r#""_id":"15""#),
        (r#"{"query":{"multi_match":{"query":"term3","fields":["a"]}},"size":1}"#, r#""relation":"gte""#),
        (
            r#"{"query":{"query_string":{"query":"term7","default_operator":"and"}},"track_total_hits":false}"#,
            r#""hits":{"max_score""#,
        ),
        (r#"{"query":{"match":{"a":"term3"}},"size":0}"#, r#""hits":[]"#),
        ("{", "line 1 column 1"),
        ("{}", "with one of match, multi_match"),
        (r#"{"query":{"term":{"a":"b"}}}"#, "with one of match, multi_match"),
        (r#"{"query":{"match":{"a":"b"}},"size":10001}"#, "size is 10001"),
        (r#"{"query":{"match":{"a":{"query":"b","operator":"x"}}}}"#, "expected and or or"),
        (r#"{"query":{"match":{"a":3}}}"#, "match is no object"),
        (r#"{"query":{"match":{"a":{}}}}"#, "has no text"),
        (r#"{"query":{"match":{"a":"b","c":"d"}}}"#, "expected one field"),
        (r#"{"query":{"match":{"a":{"query":"b","fuzziness":2}}}}"#, "fuzziness"),
        (r#"{"query":{"match":{"a":"b"}},"aggs":{}}"#, "aggs"),
        (r#"{"query":{"match":{"a":"b"}},"from":10}"#, "from is 10"),
        (r#"{"query":{"query_string":"a AND b"}}"#, "AND"),
        (r#"{"query":{"query_string":{"query":"a -b"}}}"#, "-b"),
        (r#"{"query":{"simple_query_string":{"query":"f:b"}}}"#, "f:b"),
        (r#"{"query":{"multi_match":{"query":"b","fields":["a^2"]}}}"#, "boosts"),
        (&format!(r#"{{"query":{{"match":{{"a":"{}"}}}}}}"#, "w ".repeat(1025)), "1025 terms"),
        (&format!(r#"{{"query":{{"match":{{"a":"{}"}}}}}}"#, "w".repeat(300_000)), "expected at most 262144"),
    ] {
        let answer = ask(address, "POST /_search", body);
        // Errors name no JSON.
        let status = if expected.contains('"') { "HTTP/1.1 200" } else { "HTTP/1.1 400" };
        assert!(answer.contains(expected) && answer.starts_with(status), "{answer}");
    }
    let term = r#"{"query":{"match":{"a":"term3"}}}"#;
    let of_size = ask(address, "POST /_search?size=1&request_cache=false", term);
    assert_eq!(of_size.matches("_id").count(), 1, "{of_size}");
    let host = "host: 127.0.0.1:9200";
    let many = format!("{{}}\n{term}\n");
    for (head, headers, body, status, expected) in [
        ("POST /_search?routing=3", host, term, 400, "routing"),
        ("POST /_search?q=a", host, term, 400, "both in the body and in the URL"),
        ("GET /_search?q=a&q=b", host, "", 400, "q twice"),
        ("GET /_search?q=a%20OR%20b", host, "", 400, "OR"),
        ("DELETE /_search", host, "", 405, "DELETE"),
        ("OPTIONS /wiki/_search", host, "", 405, "allow: GET, POST"),
        ("POST /other/_search", host, term, 404, "no such index: other"),
        ("POST /_search", "host: localhost\r\ncontent-encoding: gzip", "\u{1f}", 415, "gzip"),
        ("POST /_search", "host: evil.example", term, 403, "evil.example"),
        ("POST http://evil.example/_search", host, term, 403, "evil.example"),
        ("POST /_search", "host: [::1]:9200\r\norigin: http://evil.example", term, 403, "evil.example"),
        ("POST /_msearch", host, &many.repeat(1001), 400, "1001 queries"),
        ("POST /_msearch", host, &format!("{{\"index\":\"other\"}}\n{term}\n"), 400, "no such index: other"),
        ("POST /_msearch", host, &format!("{{\"routing\":\"1\"}}\n{term}\n"), 400, "routing"),
        ("POST /_msearch?max_concurrent_searches=1", host, &many, 400, "max_concurrent_searches"),
    ] {
        let answer = ask_with(address, head, headers, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) && answer.contains(expected), "{head}: {answer}");
    }
    // More than a slice of queries, and more than may wait at once.
    let hundred = ask(address, "POST /_msearch", &many.repeat(100));
    assert_eq!(hundred.matches("\"took\"").count() + hundred.matches("\"error\"").count(), 101, "{hundred}");
    let before = served_so_far(address);
    assert!(ask(address, "GET /_search?q=term2%20term3+%zz&size=1", "").starts_with("HTTP/1.1 200"));
    assert!(ask(address, "POST /_msearch", "{}\n").contains("expected a header and a body per query"));
    assert!(ask(address, "GET /nothing", "").starts_with("HTTP/1.1 404"));
    assert!(ask_within(address, "GET /_search?q=term2", "soon", "").starts_with("HTTP/1.1 400"));
    // The client of this crate, at a rate that one worker cannot serve at opt-level 0: nothing is lost.
    let dialect = Dialect::named("tandem").unwrap();
    let target = Target::new(&format!("http://{address}/"), &dialect, &[], None).unwrap();
    let queries: Vec<String> = ["term2 term3 term5 term7", "term3"].map(String::from).into();
    let requests = Requests::new(&dialect, target.path(), 10, 50.0, &queries).unwrap();
    let limits = Limits { connections: 64, ..Limits::for_deadline(Nanos::from_ms(50.0)) };
    let client = Client::of_one(&target, &requests, limits);
    let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, 1, 5000, queries.len());
    let run = client.drive(&arrivals, 20_000.0, 0.0).unwrap();
    assert_eq!(run.count(Outcome::Answered) + run.count(Outcome::Rejected), 5000);
    assert!(run.answered().all(|record| record.hits == 10));
    let metrics = ask(address, "GET /metrics", "");
    assert!(metrics.contains("tandem_queries_answered_total") && metrics.contains("quantile=\"0.99\""), "{metrics}");
    // A request that arrives while the server ends is answered before its connection is closed.
    let mut kept = TcpStream::connect(address).unwrap();
    let request = "GET /_search?q=term2 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    kept.write_all(request.as_bytes()).unwrap();
    assert!(kept.read(&mut [0; 4096]).unwrap() > 0);
    live::interrupt();
    kept.write_all(request.as_bytes()).unwrap();
    let mut last = String::new();
    kept.read_to_string(&mut last).unwrap();
    assert!(last.starts_with("HTTP/1.1 200"), "{last}");
    let Served { answered, rejected, refused } = served.join().unwrap();
    assert_eq!((answered + rejected, refused), (before.0 + 5000 + 3, before.1 + 3));
    assert!(TcpStream::connect(address).is_err());
}

/// The queries that are answered or rejected, and the requests that are refused.
fn served_so_far(address: SocketAddr) -> (u64, u64) {
    let metrics = ask(address, "GET /metrics", "");
    let value = |name: &str| -> u64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("tandem_{name} ")));
        line.and_then(|text| text.parse().ok()).unwrap()
    };
    (value("queries_answered_total") + value("queries_rejected_total"), value("requests_refused_total"))
}
