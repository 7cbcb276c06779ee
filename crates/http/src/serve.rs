//! `tandem serve`: the lab's executors and scheduler behind OpenSearch's dialect.
//!
//! ```text
//!   sockets ─▶ hyper ─▶ queries ─▶ Dispatcher and policy ─▶ orders ─▶ workers, one executor each
//!      ▲     the server's thread           ▲                              │
//!      └──────────── responses ◀───────────┴──────────── answers ◀────────┘
//! ```
//!
//! A query passes between threads twice: to its worker, and back. The server's thread asks the policy when queries arrive, a
//! worker when it has finished, so that its next order needs no other thread. A thread that sleeps wakes later than a short
//! query takes. On machines with a core for each thread and one more, the workers and the server's thread therefore look
//! for work without pause while queries arrive.
//!
//! | request | response |
//! | --- | --- |
//! | `POST` or `GET /_search`, `/NAME/_search` | hits of one query: `match`, `multi_match`, `query_string`, or `?q=` |
//! | `POST /_msearch`, `/NAME/_msearch` | hits of several queries, each with its status |
//! | `GET /metrics` | counters in Prometheus' text form |
//! | another key, parameter, operator, method or encoding | status 400, 405 or 415 with its name |
//! | header `x-deadline-ms` | deadline of the request's queries; late ones are rejected if the policy sheds |
//! | too many queries wait, or too many bytes | status 429 with `Retry-After` |
//!
//! | limit | |
//! | --- | --- |
//! | an `_msearch` | 4 MiB and 1,000 queries, 32 of them at a time |
//! | a query | 256 KiB and 1,024 terms |
//! | bodies and answers of all connections | 128 MiB |
//! | half a request, or none | 15 s |
//! | connections | 1,024; further ones get status 503 |
//! | Host and Origin on loopback | loopback names, so that a web page cannot read an index through a name of its own |

mod body;
mod scheduler;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ALLOW, CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, ORIGIN, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tandem_drive::live;
use tandem_engine::corpus::Tokenizer;
use tandem_engine::index::Index;
use tandem_model::base::time::Nanos;
use tandem_model::sched::PolicyFactory;
use tandem_model::traffic::Mode;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use self::body::{Answer, Asked};
use self::scheduler::Scheduler;
use crate::HttpError;

/// Most connections; further ones get [`FULL`].
const MOST_CONNECTIONS: usize = 1024;
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n";
/// Largest body of a request.
const MOST_BODY: usize = 4 << 20;
/// Bytes of all bodies and answers.
const MOST_BYTES: usize = 128 << 20;
const TOO_MANY_BYTES: &str = "too many bytes in requests and answers";
/// Bytes of a hit in an answer, before it is known.
const HIT_BYTES: usize = 100;
/// Queries of an `_msearch` that are in the server at a time.
const SLICE: usize = 32;
/// A connection that sends no whole request, or reads no response, is closed after this time.
const IDLE: Duration = Duration::from_secs(15);
/// After the signal to end, requests that have arrived are taken for this time.
const DRAIN: Duration = Duration::from_millis(250);
/// Time for answers after that, and for connections without a query.
const GRACE: Duration = Duration::from_secs(10);
const IDLE_GRACE: Duration = Duration::from_secs(1);
/// Longest time between two looks at signals.
const LOOK: Duration = Duration::from_millis(100);

/// What connections share.
struct Shared {
    scheduler: Arc<Scheduler>,
    bytes: Arc<AtomicUsize>,
    /// Whether each response closes its connection.
    ends: AtomicBool,
}

/// Bytes of a body or an answer, given back when dropped.
struct Reserved {
    of: Arc<AtomicUsize>,
    bytes: usize,
}

impl Reserved {
    fn new(of: &Arc<AtomicUsize>, bytes: usize) -> Result<Self, Answer> {
        let reserved = Self { of: Arc::clone(of), bytes };
        if of.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST_BYTES {
            return Err(Answer::error(429, TOO_MANY_BYTES));
        }
        Ok(reserved)
    }

    /// Notes the bytes once they are known.
    fn resize(&mut self, bytes: usize) {
        self.of.fetch_add(bytes, Ordering::Relaxed);
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.of.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A text that is written to a socket, with its reservation, which ends when the text is written.
struct Sent {
    text: String,
    _reserved: Option<Reserved>,
}

impl AsRef<[u8]> for Sent {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// Options of a server.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// The index's name in paths; `_all` is another.
    pub name: String,
    /// Address to listen on; port 0 for any free one.
    pub address: SocketAddr,
    /// Number of workers.
    pub workers: usize,
    /// Deadline of queries without a header.
    pub deadline: Nanos,
    /// Queries in the server at which further ones are rejected.
    pub most_queries: usize,
    /// Mode of queries that name none.
    pub mode: Mode,
}

/// Counts of a finished server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Answered queries.
    pub answered: u64,
    /// Queries rejected because too many waited, or because they would have been late.
    pub rejected: u64,
    /// Requests that were not understood.
    pub refused: u64,
}

/// Serves an index until an interrupt comes, then answers what has arrived. `listening` receives the address.
///
/// # Errors
/// If the address cannot be used, a thread cannot start, or the policy does not fit.
pub fn serve(
    index: &Arc<Index>,
    policy: &dyn PolicyFactory,
    options: &ServeOptions,
    listening: impl FnOnce(SocketAddr),
) -> Result<Served, HttpError> {
    let tokenizer = Tokenizer::from_name(index.tokenizer_name()).map_err(HttpError::Target)?;
    let scheduler = Scheduler::start(index, tokenizer, policy, options)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let run = runtime.block_on(async {
        let listener = TcpListener::bind(options.address).await?;
        // With the usual backlog of 128, a burst of new connections waits a second for the next attempt.
        #[cfg(unix)]
        rustix::net::listen(&listener, MOST_CONNECTIONS as i32).map_err(std::io::Error::from)?;
        listening(listener.local_addr()?);
        run(listener, &scheduler).await
    });
    let served = scheduler.end();
    run.map(|()| served)
}

async fn run(listener: TcpListener, scheduler: &Arc<Scheduler>) -> Result<(), HttpError> {
    let turning = tokio::spawn(scheduler::turn_again(Arc::clone(scheduler)));
    let graceful = GracefulShutdown::new();
    let bytes = Arc::new(AtomicUsize::new(0));
    let shared = Arc::new(Shared { scheduler: Arc::clone(scheduler), bytes, ends: AtomicBool::new(false) });
    let connected = |stream: TcpStream| {
        if graceful.count() >= MOST_CONNECTIONS {
            // The client may have left.
            let _ = stream.try_write(FULL);
            return;
        }
        if prepare(&stream).is_err() {
            return;
        }
        let shared = Arc::clone(&shared);
        let service = service_fn(move |request| respond(Arc::clone(&shared), request));
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(IDLE).max_buf_size(64 * 1024);
        tokio::spawn(graceful.watch(builder.serve_connection(TokioIo::new(stream), service)));
    };
    while !live::interrupted() && !turning.is_finished() {
        match timeout(LOOK, listener.accept()).await {
            Ok(Ok((stream, _))) => connected(stream),
            // The system has no more sockets, for example.
            Ok(Err(_)) => sleep(LOOK).await,
            Err(_) => {}
        }
    }
    // Connections and requests that the system has taken are answered.
    shared.ends.store(true, Ordering::Relaxed);
    while let Ok(Ok((stream, _))) = timeout(Duration::from_millis(1), listener.accept()).await {
        connected(stream);
    }
    drop(listener);
    if turning.is_finished() {
        turning.await.map_err(std::io::Error::from)??;
    }
    sleep(DRAIN).await;
    let began = Instant::now();
    let mut ending = std::pin::pin!(graceful.shutdown());
    while timeout(LOOK, &mut ending).await.is_err() {
        let patience = if scheduler.in_flight() > 0 { GRACE } else { IDLE_GRACE };
        if began.elapsed() > patience {
            break;
        }
    }
    Ok(())
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_user_timeout(stream, IDLE.as_millis() as u32)?;
    stream.set_nodelay(true)
}

async fn respond(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_metrics = request.uri().path() == "/metrics" && request.method() == Method::GET;
    let (kind, (Answer { status, json }, reserved)) = if is_metrics {
        ("text/plain; version=0.0.4", (Answer { status: 200, json: shared.scheduler.metrics() }, None))
    } else {
        let refuse = |refused: Answer| {
            shared.scheduler.state().served.refused += 1;
            (refused, None)
        };
        ("application/json", answer(&shared, request).await.unwrap_or_else(refuse))
    };
    let mut response = Response::builder().status(status).header(CONTENT_TYPE, kind);
    if status == 429 {
        response = response.header(RETRY_AFTER, "1");
    }
    if status == 405 {
        response = response.header(ALLOW, "GET, POST");
    }
    if shared.ends.load(Ordering::Relaxed) {
        response = response.header(CONNECTION, "close");
    }
    let body = Full::new(Bytes::from_owner(Sent { text: json, _reserved: reserved }));
    Ok(response.body(body).expect("status and headers are valid"))
}

/// The answer to a request with its reservation, or the reason why it was not understood.
async fn answer(shared: &Shared, request: Request<Incoming>) -> Result<(Answer, Option<Reserved>), Answer> {
    let (began, scheduler) = (Instant::now(), &shared.scheduler);
    let (head, incoming) = request.into_parts();
    if scheduler.options.address.ip().is_loopback()
        && let Some(name) = foreign_name(&head.uri, &head.headers)
    {
        return Err(Answer::error(403, &format!("{name:.60} is no name of this machine's loopback interface")));
    }
    let knows = |name: &str| name == "_all" || name == scheduler.options.name;
    let parts: Vec<&str> = head.uri.path().split('/').skip(1).collect();
    let is_many = match parts[..] {
        ["_search"] => false,
        ["_msearch"] => true,
        [name, "_search" | "_msearch"] if !knows(name) => {
            return Err(Answer::error(404, &format!("no such index: {name:.60} ({} is one)", scheduler.options.name)));
        }
        [_, "_search"] => false,
        [_, "_msearch"] => true,
        _ => return Err(Answer::error(404, "expected _search, _msearch or metrics")),
    };
    if ![Method::GET, Method::POST].contains(&head.method) {
        return Err(Answer::error(405, &format!("method {:.20}, expected GET or POST", head.method.as_str())));
    }
    let encoding =
        head.headers.get(CONTENT_ENCODING).filter(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
    if let Some(encoding) = encoding {
        let encoding = String::from_utf8_lossy(encoding.as_bytes());
        return Err(Answer::error(415, &format!("content-encoding {encoding:.40} is not supported")));
    }
    let deadline = match head.headers.get("x-deadline-ms").map(|value| value.to_str().unwrap_or_default().parse()) {
        None => None,
        Some(Ok(ms)) if ms > 0.0 && ms <= 86_400_000.0 => Some(Nanos::from_ms(ms)),
        Some(_) => return Err(Answer::error(400, "x-deadline-ms is no number of milliseconds")),
    };
    let length = incoming.size_hint().upper().map_or(MOST_BODY, |length| length.min(MOST_BODY as u64) as usize);
    let _body = Reserved::new(&shared.bytes, length)?;
    let Ok(Ok(body)) = timeout(IDLE, Limited::new(incoming, MOST_BODY).collect()).await else {
        return Err(Answer::error(413, "the body is too large, or incomplete"));
    };
    let (body, mode) = (body.to_bytes(), scheduler.options.mode);
    let bad = |why: String| Answer::error(400, &why);
    if !is_many {
        let asked = body::parse(&body, head.uri.query(), mode).map_err(bad)?;
        let (mut answers, reserved) = answers(shared, vec![asked], deadline).await?;
        return Ok((answers.remove(0), Some(reserved)));
    }
    if let Some(query) = head.uri.query() {
        return Err(bad(format!("the URL: {query:.60} is not supported for _msearch")));
    }
    let mut asked = Vec::new();
    for (number, pair) in body::pairs(&body).map_err(bad)?.into_iter().enumerate() {
        asked.push(body::parse_pair(pair, mode, knows).map_err(|why| bad(format!("query {number}: {why}")))?);
        if number % SLICE == SLICE - 1 {
            yield_now().await;
        }
    }
    let (mut json, mut whole) = (String::new(), Reserved::new(&shared.bytes, 0)?);
    while !asked.is_empty() {
        let slice: Vec<Asked> = asked.drain(..asked.len().min(SLICE)).collect();
        let (answers, _) = answers(shared, slice, deadline).await?;
        for answer in answers {
            json += if json.is_empty() { "" } else { "," };
            json += &answer.json;
        }
        whole.resize(json.len());
        if shared.bytes.load(Ordering::Relaxed) > MOST_BYTES {
            return Err(Answer::error(429, TOO_MANY_BYTES));
        }
    }
    let json = format!(r#"{{"took":{},"responses":[{json}]}}"#, began.elapsed().as_millis());
    Ok((Answer { status: 200, json }, Some(whole)))
}

/// The answers to some queries, with their reservation.
async fn answers(
    shared: &Shared,
    asked: Vec<Asked>,
    deadline: Option<Nanos>,
) -> Result<(Vec<Answer>, Reserved), Answer> {
    let hits: usize = asked.iter().map(|asked| asked.k).sum();
    let mut reserved = Reserved::new(&shared.bytes, hits * HIT_BYTES)?;
    let replies: Vec<_> = asked.into_iter().map(|asked| shared.scheduler.submit(asked, deadline)).collect();
    let mut answers = Vec::with_capacity(replies.len());
    for reply in replies {
        answers.push(reply.await.unwrap_or_else(|_| Answer::error(500, "the server ends")));
    }
    let actual: usize = answers.iter().map(|answer| answer.json.len()).sum();
    reserved.resize(actual);
    Ok((answers, reserved))
}

/// A name in `Host`, `Origin` or the address of a request that is not of the loopback interface.
fn foreign_name(uri: &Uri, headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let origin =
        text(ORIGIN).map(|origin| origin.split_once("://").map_or(origin.clone(), |(_, host)| host.to_owned()));
    let names = [text(HOST), origin, uri.authority().map(|authority| authority.as_str().to_owned())];
    names.into_iter().flatten().find(|name| {
        let host = match name.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => name,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.').to_ascii_lowercase();
        let is_local = host == "localhost" || host.ends_with(".localhost");
        !is_local && !host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
    })
}
