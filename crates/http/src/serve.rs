//! `tandem serve`: the lab's executors and scheduler behind OpenSearch's dialect.
//!
//! ```text
//!   sockets ─▶ requests ─▶ queries ─▶ Dispatcher and policy ─▶ orders ─▶ workers, one executor each
//!      ▲         the server's thread           ▲                              │
//!      └───────────────────────────────────────┴───── news, responses ◀───────┘
//! ```
//!
//! A query passes between threads once: to its worker, which writes the response itself. The server's thread asks the policy
//! when queries arrive, a worker when it has finished. A thread that sleeps wakes later than a short query takes. On machines
//! with a core for each thread and one more, the workers and the server's thread therefore look for work without pause while
//! queries arrive.
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

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use httparse::Request;
use mio::net::TcpListener;
use tandem_core::base::time::Nanos;
use tandem_core::corpus::Tokenizer;
use tandem_core::index::Index;
use tandem_core::query::Mode;
use tandem_core::sched::PolicyFactory;

use self::scheduler::Scheduler;
use crate::HttpError;
use crate::message::Message;
use crate::server::{Answer, Exchange, Server, Service};

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
    let server = Server::new(TcpListener::bind(options.address)?)?;
    let scheduler = Scheduler::start(index, tokenizer, policy, options, Arc::clone(&server.waker))?;
    listening(server.listener.local_addr()?);
    let run = server.run(&*scheduler);
    let served = scheduler.end();
    run.map(|()| served)
}

impl Service for Scheduler {
    fn answer(&self, request: &Message, exchange: Exchange) {
        let began = Instant::now();
        let (is_many, deadline_ms, url_query) = match request.head(kind) {
            Ok(Kind::Metrics) => {
                return exchange.respond(&Answer {
                    status: 200,
                    kind: "text/plain; version=0.0.4",
                    text: self.metrics(),
                });
            }
            Ok(Kind::Search { is_many, deadline_ms, url_query }) => (is_many, deadline_ms, url_query),
            Err(refused) => return self.refuse(exchange, &refused),
        };
        let (body, mode) = (request.body(), self.options.mode);
        let one = || body::parse(body, url_query, mode).map(|one| vec![one]);
        let asked = match if is_many { body::parse_many(body, mode) } else { one() } {
            Ok(asked) => asked,
            Err(why) => return self.refuse(exchange, &Answer::error(400, &why)),
        };
        let answers = asked.iter().map(|_| None).collect();
        let pending = Pending { missing: asked.len(), answers, exchange: Some(exchange), is_many, began };
        let pending = Arc::new(Mutex::new(pending));
        for (at, asked) in asked.into_iter().enumerate() {
            self.submit(asked, deadline_ms, Reply { pending: Arc::clone(&pending), at });
        }
    }

    fn rest(&self) -> Result<Duration, HttpError> {
        self.rest()
    }
}

/// What a request wants.
enum Kind<'a> {
    Metrics,
    Search { is_many: bool, deadline_ms: Option<f64>, url_query: &'a str },
}

fn kind<'a>(head: &Request<'_, 'a>) -> Result<Kind<'a>, Answer> {
    let path = head.path.unwrap_or_default();
    let (path, url_query) = path.split_once('?').unwrap_or((path, ""));
    let is_many = match path.rsplit('/').next() {
        _ if !["GET", "POST"].contains(&head.method.unwrap_or_default()) => {
            return Err(Answer::error(405, "expected GET or POST"));
        }
        Some("metrics") => return Ok(Kind::Metrics),
        Some("_search") => false,
        Some("_msearch") => true,
        _ => return Err(Answer::error(404, "expected _search, _msearch or metrics")),
    };
    let deadline = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case("x-deadline-ms"));
    let deadline_ms = match deadline.map(|header| std::str::from_utf8(header.value).unwrap_or_default().parse()) {
        None => None,
        Some(Ok(ms)) if ms > 0.0 && ms <= 86_400_000.0 => Some(ms),
        Some(_) => return Err(Answer::error(400, "x-deadline-ms is no number of milliseconds")),
    };
    Ok(Kind::Search { is_many, deadline_ms, url_query })
}

/// A request whose queries are being answered.
struct Pending {
    missing: usize,
    answers: Vec<Option<Answer>>,
    exchange: Option<Exchange>,
    is_many: bool,
    began: Instant,
}

/// The place for the answer to a query.
struct Reply {
    pending: Arc<Mutex<Pending>>,
    at: usize,
}

impl Reply {
    /// Sends the answer. The last one of a request completes its response.
    fn send(self, answer: Answer) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let Pending { missing, answers, exchange, is_many, began } = &mut *pending;
        answers[self.at] = Some(answer);
        *missing -= 1;
        if *missing == 0
            && let Some(exchange) = exchange.take()
        {
            let mut all: Vec<Answer> = answers.drain(..).flatten().collect();
            exchange.respond(&if *is_many { Answer::many(&all, began.elapsed()) } else { all.remove(0) });
        }
    }
}
