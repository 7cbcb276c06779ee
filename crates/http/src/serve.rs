//! `tandem serve`: the lab's executors and scheduler behind OpenSearch's dialect.
//!
//! ```text
//!   sockets ─▶ hyper ─▶ queries ─▶ Dispatcher and policy ─▶ orders ─▶ workers, one executor each
//!      ▲                                   ▲                              │
//!      └──────────── responses ────────────┴────────── completions ◀──────┘       one thread, left of the workers
//! ```
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
mod socket;

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::server::conn::http1::{Builder, Connection};
use hyper::service::Service;
use hyper::{Method, Request, Response, StatusCode};
use mio::net::TcpListener;
use mio::{Events, Interest, Token};
use serde::Serialize;
use tandem_core::base::time::Nanos;
use tandem_core::corpus::Tokenizer;
use tandem_core::index::Index;
use tandem_core::live;
use tandem_core::query::Mode;
use tandem_core::sched::PolicyFactory;

use self::body::{Answer, Answers, Asked};
use self::scheduler::{Reply, Scheduler};
use self::socket::{Socket, Woken};
use crate::HttpError;

/// Most connections; further ones are closed at once.
const MOST_CONNECTIONS: usize = 1024;
/// Largest body of a request.
const MOST_BODY: usize = 4 << 20;
/// Most queries of a request.
const MOST_QUERIES: usize = 1024;
/// A connection without a request for this time is closed.
const IDLE: Duration = Duration::from_secs(75);
/// Time for answers after the signal to end.
const GRACE: Duration = Duration::from_secs(10);
/// Longest time between two looks at signals and idle connections.
const LOOK: Duration = Duration::from_millis(100);

const LISTENER: Token = Token(usize::MAX);
const WORKERS: Token = Token(usize::MAX - 1);

/// Options of a server.
#[derive(Clone, Copy)]
pub struct ServeOptions<'a> {
    /// Address to listen on; port 0 for any free one.
    pub address: SocketAddr,
    /// Number of workers.
    pub workers: usize,
    /// The scheduling policy.
    pub policy: &'a dyn PolicyFactory,
    /// Deadline of queries without a header.
    pub deadline: Nanos,
    /// Queries in the server at which further ones are rejected.
    pub most_queries: usize,
    /// Mode of queries that name none.
    pub mode: Mode,
}

impl std::fmt::Debug for ServeOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServeOptions").field("address", &self.address).field("workers", &self.workers).finish()
    }
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
    options: &ServeOptions<'_>,
    listening: impl FnOnce(SocketAddr),
) -> Result<Served, HttpError> {
    let tokenizer = Tokenizer::from_name(index.tokenizer_name()).map_err(HttpError::Target)?;
    let mut listener = TcpListener::bind(options.address)?;
    // With the usual backlog of 128, a burst of new connections waits a second for the next attempt.
    #[cfg(unix)]
    rustix::net::listen(&listener, MOST_CONNECTIONS as i32).map_err(std::io::Error::from)?;
    let poll = mio::Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let waker = Arc::new(mio::Waker::new(poll.registry(), WORKERS)?);
    let scheduler = Scheduler::start(index, tokenizer, options, &waker)?;
    listening(listener.local_addr()?);
    let woken = Arc::new(Woken::default());
    let server = Server {
        poll,
        connections: Vec::new(),
        free: Vec::new(),
        shared: Rc::new(RefCell::new(scheduler)),
        waker: Waker::from(Arc::clone(&woken)),
        woken,
    };
    server.run(listener)
}

struct Live {
    connection: Pin<Box<Connection<Socket, Front>>>,
    /// When it last did anything.
    used: Instant,
}

struct Server {
    poll: mio::Poll,
    connections: Vec<Option<Live>>,
    free: Vec<usize>,
    shared: Rc<RefCell<Scheduler>>,
    woken: Arc<Woken>,
    waker: Waker,
}

impl Server {
    fn run(mut self, listener: TcpListener) -> Result<Served, HttpError> {
        let mut listener = Some(listener);
        let mut events = Events::with_capacity(256);
        let mut look_at = Instant::now();
        let mut end_at = None;
        loop {
            let wait = self.shared.borrow().next_wake().map_or(LOOK, |wait| wait.min(LOOK));
            match self.poll.poll(&mut events, Some(wait)) {
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => events.clear(),
                done => done?,
            }
            for event in &events {
                match event.token() {
                    LISTENER => listener.iter().for_each(|listener| self.accept(listener)),
                    WORKERS => {}
                    Token(number) => self.advance(number),
                }
            }
            // Answers may let a connection read its next request, which is scheduled in the same turn.
            loop {
                let ready = self.shared.borrow_mut().turn()?;
                if ready.is_empty() {
                    break;
                }
                ready.into_iter().for_each(|number| self.advance(number));
            }
            let now = Instant::now();
            if now < look_at {
                continue;
            }
            look_at = now + LOOK;
            self.close_idle(now);
            if end_at.is_none() && live::interrupted() {
                listener = None;
                end_at = Some(now + GRACE);
                let open = self.connections.iter_mut().flatten();
                open.for_each(|live| live.connection.as_mut().graceful_shutdown());
                (0..self.connections.len()).for_each(|number| self.advance(number));
            }
            let is_empty = self.connections.iter().all(Option::is_none);
            if end_at.is_some_and(|end_at| is_empty || now >= end_at) {
                return Ok(self.shared.borrow().served());
            }
        }
    }

    fn accept(&mut self, listener: &TcpListener) {
        while let Ok((mut stream, _)) = listener.accept() {
            if self.free.is_empty() && self.connections.len() >= MOST_CONNECTIONS {
                continue;
            }
            let number = self.free.pop().unwrap_or(self.connections.len());
            let interest = Interest::READABLE | Interest::WRITABLE;
            let is_ready = stream.set_nodelay(true).is_ok()
                && self.poll.registry().register(&mut stream, Token(number), interest).is_ok();
            if !is_ready {
                if number < self.connections.len() {
                    self.free.push(number);
                }
                continue;
            }
            let front = Front { shared: Rc::clone(&self.shared), number };
            let connection = Box::pin(Builder::new().serve_connection(Socket(stream), front));
            let live = Live { connection, used: Instant::now() };
            match self.connections.get_mut(number) {
                Some(place) => *place = Some(live),
                None => self.connections.push(Some(live)),
            }
            self.advance(number);
        }
    }

    /// Lets a connection do what it can.
    fn advance(&mut self, number: usize) {
        let Some(Some(live)) = self.connections.get_mut(number) else { return };
        live.used = Instant::now();
        loop {
            self.woken.take();
            if live.connection.as_mut().poll(&mut Context::from_waker(&self.waker)).is_ready() {
                self.connections[number] = None;
                self.free.push(number);
                return;
            }
            if !self.woken.take() {
                return;
            }
        }
    }

    fn close_idle(&mut self, now: Instant) {
        for (number, place) in self.connections.iter_mut().enumerate() {
            if place.as_ref().is_some_and(|live| now.duration_since(live.used) > IDLE) {
                *place = None;
                self.free.push(number);
            }
        }
    }
}

/// The service of a connection.
struct Front {
    shared: Rc<RefCell<Scheduler>>,
    number: usize,
}

impl Service<Request<Incoming>> for Front {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>>>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (shared, number) = (Rc::clone(&self.shared), self.number);
        Box::pin(async move { Ok(respond(shared, number, request).await) })
    }
}

async fn respond(shared: Rc<RefCell<Scheduler>>, number: usize, request: Request<Incoming>) -> Response<Full<Bytes>> {
    let began = Instant::now();
    let (head, incoming) = request.into_parts();
    let path = head.uri.path();
    if path == "/metrics" && head.method == Method::GET {
        return response(200, "text/plain; version=0.0.4", shared.borrow().metrics());
    }
    let refuse = |status, why: &str| {
        shared.borrow_mut().refuse();
        json(status, &Answer::error(status, why))
    };
    let last = path.rsplit('/').next().unwrap_or_default();
    let is_many = last == "_msearch";
    if !is_many && last != "_search" {
        return refuse(404, "expected _search, _msearch or metrics");
    }
    let deadline = head.headers.get("x-deadline-ms").map(|value| value.to_str().ok().and_then(|ms| ms.parse().ok()));
    let deadline = match deadline {
        Some(Some(ms)) if ms > 0.0 && ms <= 86_400_000.0 => Some(Nanos::from_ms(ms)),
        Some(_) => return refuse(400, "x-deadline-ms is no number of milliseconds"),
        None => None,
    };
    let body = match Limited::new(incoming, MOST_BODY).collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => return refuse(413, "the body is too large, or incomplete"),
    };
    let asked = if is_many {
        body::parse_many(&body, MOST_QUERIES)
    } else {
        body::parse(&body, head.uri.query()).map(|one| vec![one])
    };
    let asked: Vec<Asked> = match asked {
        Ok(asked) => asked,
        Err(why) => return refuse(400, &why),
    };
    let replies: Vec<Rc<RefCell<Option<Reply>>>> =
        asked.iter().map(|asked| shared.borrow_mut().submit(number, asked, deadline)).collect();
    std::future::poll_fn(|_| {
        let is_complete = replies.iter().all(|reply| reply.borrow().is_some());
        if is_complete { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let took = began.elapsed().as_millis() as u64;
    let replies: Vec<Option<Reply>> = replies.iter().map(|reply| reply.borrow_mut().take()).collect();
    let answer = |(asked, reply)| match reply {
        &Some(Reply::Hits(ref hits)) => Answer::hits(hits, took, asked),
        &Some(Reply::Failed(ref why)) => Answer::error(500, why),
        &Some(Reply::Rejected) | &None => Answer::error(429, "too many queries wait"),
    };
    let mut responses: Vec<Answer<'_>> = asked.iter().zip(&replies).map(answer).collect();
    match responses.pop() {
        Some(one) if !is_many => json(one.status(), &one),
        last => {
            responses.extend(last);
            json(200, &Answers { took, responses })
        }
    }
}

fn json(status: u16, answer: &impl Serialize) -> Response<Full<Bytes>> {
    let text = serde_json::to_string(answer).expect("answers have text as keys");
    response(status, "application/json", text)
}

fn response(status: u16, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == 429 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
