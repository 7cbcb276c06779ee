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
//! | header `x-deadline-ms` | deadline of the request's queries; late ones are rejected if the policy sheds |
//! | too many queries wait | status 429 with `Retry-After` |

mod body;
mod scheduler;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tandem_drive::live;
use tandem_engine::corpus::Tokenizer;
use tandem_engine::index::Index;
use tandem_model::base::time::Nanos;
use tandem_model::sched::PolicyFactory;
use tandem_model::traffic::Mode;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use self::body::Answer;
use self::scheduler::Scheduler;
use crate::HttpError;

/// Most connections; further ones are closed at once.
const MOST_CONNECTIONS: usize = 1024;
/// Largest body of a request.
const MOST_BODY: usize = 4 << 20;
/// A connection whose client sends no request, or reads no response, is closed after this time.
const IDLE: Duration = Duration::from_secs(75);
/// Time for answers after the signal to end.
const GRACE: Duration = Duration::from_secs(10);
/// Longest time between two looks at signals.
const LOOK: Duration = Duration::from_millis(100);

/// Options of a server.
#[derive(Clone, Copy, Debug)]
pub struct ServeOptions {
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
    let connected = |stream: TcpStream| {
        let scheduler = Arc::clone(scheduler);
        let service = service_fn(move |request| respond(Arc::clone(&scheduler), request));
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(IDLE);
        tokio::spawn(graceful.watch(builder.serve_connection(TokioIo::new(stream), service)));
    };
    while !live::interrupted() && !turning.is_finished() {
        match timeout(LOOK, listener.accept()).await {
            Ok(Ok((stream, _))) if graceful.count() < MOST_CONNECTIONS && prepare(&stream).is_ok() => connected(stream),
            // The system has no more sockets, for example.
            Ok(Err(_)) => sleep(LOOK).await,
            Ok(Ok(_)) | Err(_) => {}
        }
    }
    drop(listener);
    if turning.is_finished() {
        turning.await.map_err(std::io::Error::from)??;
    }
    let _ = timeout(GRACE, graceful.shutdown()).await;
    Ok(())
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::net::sockopt::set_tcp_user_timeout(stream, IDLE.as_millis() as u32)?;
    stream.set_nodelay(true)
}

async fn respond(scheduler: Arc<Scheduler>, request: Request<Incoming>) -> Result<Response<String>, Infallible> {
    let is_metrics = request.uri().path() == "/metrics" && request.method() == Method::GET;
    let (kind, Answer { status, json }) = if is_metrics {
        ("text/plain; version=0.0.4", Answer { status: 200, json: scheduler.metrics() })
    } else {
        let refuse = |_: &Answer| scheduler.state().served.refused += 1;
        ("application/json", answer(&scheduler, request).await.inspect_err(refuse).unwrap_or_else(|refused| refused))
    };
    let mut response = Response::builder().status(status).header(CONTENT_TYPE, kind);
    if status == 429 {
        response = response.header(RETRY_AFTER, "1");
    }
    Ok(response.body(json).expect("status and headers are valid"))
}

/// The answer to a request, or the reason why it was not understood.
async fn answer(scheduler: &Scheduler, request: Request<Incoming>) -> Result<Answer, Answer> {
    let began = Instant::now();
    let (head, incoming) = request.into_parts();
    let is_many = match head.uri.path().rsplit('/').next() {
        Some("_search") => false,
        Some("_msearch") => true,
        _ => return Err(Answer::error(404, "expected _search, _msearch or metrics")),
    };
    let deadline = match head.headers.get("x-deadline-ms").map(|value| value.to_str().unwrap_or_default().parse()) {
        None => None,
        Some(Ok(ms)) if ms > 0.0 && ms <= 86_400_000.0 => Some(Nanos::from_ms(ms)),
        Some(_) => return Err(Answer::error(400, "x-deadline-ms is no number of milliseconds")),
    };
    let Ok(Ok(body)) = timeout(IDLE, Limited::new(incoming, MOST_BODY).collect()).await else {
        return Err(Answer::error(413, "the body is too large, or incomplete"));
    };
    let body = body.to_bytes();
    let mode = scheduler.options.mode;
    let one = || body::parse(&body, head.uri.query(), mode).map(|one| vec![one]);
    let asked = if is_many { body::parse_many(&body, mode) } else { one() };
    let asked = asked.map_err(|why| Answer::error(400, &why))?;
    let replies: Vec<_> = asked.into_iter().map(|asked| scheduler.submit(asked, deadline)).collect();
    let mut answers = Vec::with_capacity(replies.len());
    for reply in replies {
        answers.push(reply.await.unwrap_or_else(|_| Answer::error(500, "the server ends")));
    }
    if is_many { Ok(Answer::many(&answers, began.elapsed())) } else { Ok(answers.remove(0)) }
}
