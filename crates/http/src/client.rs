//! The client: one or more threads, each with a loop over its own connections.
//!
//! ```text
//!   due? ──▶ a free connection, or a new one ──▶ write at once
//!   wait ──▶ until just before the next query is due, then spin
//!   socket ready ──▶ poll its connection ──▶ a record, and the connection is free
//! ```
//!
//! | what | rule |
//! | --- | --- |
//! | connections | kept alive, one request at a time; all busy: the query waits, and its latency goes on |
//! | time limit | the query is given up, and its connection closed |
//! | status other than 200 | a miss of its own kind; redirects are never followed |
//! | response too large | given up as soon as the limit is reached |
//! | closed while idle | a new connection, without a miss |
//! | no answer for some seconds, and many failures | the run ends: [`Ending::ServerGone`] |

use std::collections::VecDeque;
use std::error::Error as _;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::header::{HOST, HeaderMap};
use hyper::{Request, Response};
use mio::{Events, Interest, Token};
use rustls::ClientConnection;
use tandem_core::base::time::Nanos;
use tandem_core::live;
use tandem_core::sim::Arrivals;

use crate::HttpError;
use crate::dialect::{Reply, Requests};
use crate::run::{Ending, Outcome, Record, Run};
use crate::socket::{Socket, Woken};
use crate::source::{Closed, Due, Open, Order, Source};
use crate::target::Target;

/// Highest rate of an open loop.
const MOST_RATE_QPS: f64 = 1_000_000.0;
/// Longest run, in seconds.
const MOST_SECONDS: f64 = 86_400.0;
/// Most queries of a run, whose records take 48 bytes each.
const MOST_QUERIES: usize = 20_000_000;
/// The client sleeps until this long before a query is due, and spins for the rest.
const SPIN: u64 = 60_000;
/// Requests that are written before answers are read again.
const STARTS: usize = 8;
/// Longest time between two looks at limits.
const LOOK: u64 = 20_000_000;
/// A server is gone if nothing was answered for this time, and for two time limits, and so many queries failed.
const GONE: u64 = 3_000_000_000;
const GONE_FAILURES: u32 = 20;
/// Largest head of a response.
const MOST_HEAD: usize = 256 * 1024;

/// Limits of the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Most connections.
    pub connections: usize,
    /// Threads of an open loop.
    pub threads: usize,
    /// Time limit of a query from its request on.
    pub timeout: Duration,
    /// Largest body of a response, in bytes.
    pub body_bytes: usize,
}

impl Limits {
    /// 256 connections, one thread, 8 MiB, and the larger of one second and ten deadlines.
    #[must_use]
    pub fn for_deadline(deadline: Nanos) -> Self {
        let timeout =
            Duration::from_nanos(deadline.0.saturating_mul(10)).clamp(Duration::from_secs(1), Duration::from_secs(60));
        Self { connections: 256, threads: 1, timeout, body_bytes: 8 << 20 }
    }
}

/// A client of a server.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    /// The server.
    pub target: &'a Target,
    /// The prepared requests.
    pub requests: &'a Requests,
    /// Limits.
    pub limits: Limits,
}

impl Client<'_> {
    /// Sends `arrivals` at `rate_qps`. The first `warm_up` seconds are kept apart.
    ///
    /// # Errors
    /// If the run would exceed a limit, or the system refuses a poller or a thread.
    pub fn drive(&self, arrivals: &Arrivals, rate_qps: f64, warm_up: f64) -> Result<Run, HttpError> {
        if !(rate_qps > 0.0 && rate_qps <= MOST_RATE_QPS) {
            return Err(HttpError::Limit(format!("rate {rate_qps} q/s, expected above 0, at most {MOST_RATE_QPS}")));
        }
        let seconds = arrivals.len() as f64 / rate_qps;
        if arrivals.len() > MOST_QUERIES || seconds > MOST_SECONDS {
            let count = arrivals.len();
            let most = format!("{MOST_QUERIES} queries and {MOST_SECONDS} s");
            return Err(HttpError::Limit(format!(
                "a run of {count} queries in {seconds:.0} s, expected at most {most}"
            )));
        }
        let threads = self.limits.threads.clamp(1, self.limits.connections.max(1));
        let stop = AtomicBool::new(false);
        // All threads share one start, after all of them are ready.
        let start = Instant::now() + Duration::from_millis(20);
        let share = |first| {
            let source = Open::new(arrivals.at_rate(rate_qps), first, threads);
            Worker::new(self, self.limits.connections / threads, start, &stop)?.run(source)
        };
        let shares: Vec<Result<Part, HttpError>> = std::thread::scope(|scope| {
            let running: Vec<_> = (1..threads).map(|first| scope.spawn(move || share(first))).collect();
            let own = share(0);
            let joined = running.into_iter().map(|thread| match thread.join() {
                Ok(part) => part,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(own).chain(joined).collect()
        });
        let mut run = Run {
            rate_qps,
            planned: 0,
            records: Vec::new(),
            warm_up: Vec::new(),
            seconds: start.elapsed().as_secs_f64(),
            ending: Ending::Complete,
        };
        for part in shares {
            let Part { records, ending } = part?;
            run.records.extend(records);
            run.ending = if ending == Ending::Complete { run.ending } else { ending };
        }
        run.records.sort_unstable_by_key(|record| record.job);
        let warm_up = (warm_up.max(0.0) * 1e9) as u64;
        let warm = arrivals.at_rate(rate_qps).take_while(|(at, _)| at.0 < warm_up).count();
        let at = run.records.partition_point(|record| (record.job as usize) < warm);
        let measured = run.records.split_off(at);
        run.warm_up = std::mem::replace(&mut run.records, measured);
        run.planned = arrivals.len() - warm;
        Ok(run)
    }

    /// Sends queries in a closed loop.
    ///
    /// # Errors
    /// If the system refuses a poller.
    pub fn closed(&self, source: Closed<'_>) -> Result<Run, HttpError> {
        let (stop, start) = (AtomicBool::new(false), Instant::now());
        let Part { mut records, ending } = Worker::new(self, self.limits.connections, start, &stop)?.run(source)?;
        records.sort_unstable_by_key(|record| record.job);
        let (planned, seconds) = (records.len(), start.elapsed().as_secs_f64());
        Ok(Run { rate_qps: f64::NAN, planned, records, warm_up: Vec::new(), seconds, ending })
    }

    /// Sends one query and returns what became of it, with the status and the beginning of the body.
    ///
    /// # Errors
    /// If the system refuses a poller.
    pub fn ask(&self, query: u32) -> Result<(Outcome, String), HttpError> {
        let (stop, start) = (AtomicBool::new(false), Instant::now());
        let mut worker = Worker::new(self, 1, start, &stop)?;
        worker.keeps_text = true;
        let queries = [query];
        let part = worker.run_once(Closed::new(&queries, 1, 0, Nanos(1)))?;
        let (record, text) = part.ok_or(HttpError::Interrupted)?;
        Ok((record.outcome, text))
    }
}

/// What a thread returns.
struct Part {
    records: Vec<Record>,
    ending: Ending,
}

/// A response with its body, or why there is none.
type Received = Result<(u16, Vec<u8>), Fault>;

/// Why a request had no response.
enum Fault {
    /// It was not written, since the server had closed the idle connection.
    Unsent,
    /// A miss, with the reason.
    Miss(Outcome, String),
}

struct Live {
    connection: Pin<Box<Connection<Socket, Full<Bytes>>>>,
    sender: SendRequest<Full<Bytes>>,
    /// The response to come.
    exchange: Option<Pin<Box<dyn Future<Output = Received>>>>,
    /// Number of requests so far.
    requests: u32,
}

#[derive(Default)]
struct Link {
    open: Option<Live>,
    /// Changes with each request, so that old time limits are recognised.
    serial: u32,
    orders: Vec<Order>,
    sent: u64,
    lateness: u32,
}

struct Worker<'a> {
    client: &'a Client<'a>,
    most_links: usize,
    start: Instant,
    stop: &'a AtomicBool,
    poll: mio::Poll,
    events: Events,
    links: Vec<Link>,
    free: Vec<usize>,
    in_flight: usize,
    /// Time limits in order: when, link, serial.
    timeouts: VecDeque<(u64, usize, u32)>,
    records: Vec<Record>,
    /// Whether a query waits for a connection, and when one was last freed for such a query.
    is_blocked: bool,
    unblocked_at: u64,
    last_answer: u64,
    failures: u32,
    look_at: u64,
    woken: Arc<Woken>,
    waker: Waker,
    /// Whether the text of a failure is kept, and the text.
    keeps_text: bool,
    text: String,
    headers: HeaderMap,
}

impl<'a> Worker<'a> {
    fn new(client: &'a Client<'a>, most_links: usize, start: Instant, stop: &'a AtomicBool) -> Result<Self, HttpError> {
        let woken = Arc::new(Woken::default());
        let mut headers = client.requests.headers.clone();
        headers.insert(HOST, client.target.host.clone());
        if let Some((name, credentials)) = &client.target.credentials {
            headers.insert(name.clone(), credentials.value());
        }
        Ok(Self {
            client,
            most_links: most_links.max(1),
            start,
            stop,
            poll: mio::Poll::new()?,
            events: Events::with_capacity(256),
            links: Vec::new(),
            free: Vec::new(),
            in_flight: 0,
            timeouts: VecDeque::new(),
            records: Vec::new(),
            is_blocked: false,
            unblocked_at: 0,
            last_answer: 0,
            failures: 0,
            look_at: 0,
            waker: Waker::from(Arc::clone(&woken)),
            woken,
            keeps_text: false,
            text: String::new(),
            headers,
        })
    }

    /// Nanoseconds since the start of the run; 0 before it.
    fn now(&self) -> u64 {
        Instant::now().saturating_duration_since(self.start).as_nanos() as u64
    }

    fn run_once(&mut self, mut source: impl Source) -> Result<Option<(Record, String)>, HttpError> {
        if let Some(order) = source.take(0) {
            self.send(vec![order], self.now())?;
        }
        while self.in_flight > 0 && !live::interrupted() {
            self.expire(self.now());
            self.wait(self.now() + LOOK, false)?;
        }
        Ok(self.records.first().map(|record| (*record, std::mem::take(&mut self.text))))
    }

    fn run(mut self, mut source: impl Source) -> Result<Part, HttpError> {
        while Instant::now() < self.start {
            std::hint::spin_loop();
        }
        let mut ending = Ending::Complete;
        let mut is_over = false;
        loop {
            let mut due = Due::Never;
            for _ in 0..STARTS {
                let now = self.now();
                due = if is_over { Due::Never } else { source.due(now, self.in_flight) };
                if due != Due::Now {
                    break;
                }
                if self.free.is_empty() && self.links.len() >= self.most_links {
                    self.is_blocked = true;
                    due = Due::AfterAnswer;
                    break;
                }
                let mut orders = Vec::with_capacity(1);
                while orders.len() < self.client.requests.dialect.batch()
                    && source.due(now, self.in_flight + orders.len()) == Due::Now
                {
                    orders.extend(source.take(now));
                }
                self.send(orders, now)?;
            }
            if due == Due::Never && self.in_flight == 0 {
                break;
            }
            let now = self.now();
            self.expire(now);
            if now >= self.look_at {
                self.look_at = now + LOOK;
                if live::interrupted() {
                    ending = Ending::Interrupted;
                } else if self.is_gone(now) {
                    self.stop.store(true, Ordering::Relaxed);
                }
                if self.stop.load(Ordering::Relaxed) && ending == Ending::Complete {
                    ending = Ending::ServerGone;
                }
                is_over = ending != Ending::Complete;
            }
            let until = match due {
                Due::Now => now,
                Due::At(at) => at,
                Due::AfterAnswer | Due::Never => u64::MAX,
            };
            let expires = self.timeouts.front().map_or(u64::MAX, |&(at, ..)| at);
            self.wait(until.min(expires).min(self.look_at), source.is_schedule() && until < self.look_at)?;
        }
        Ok(Part { records: self.records, ending })
    }

    fn is_gone(&self, now: u64) -> bool {
        let patience = GONE.max(2 * self.client.limits.timeout.as_nanos() as u64);
        self.failures >= GONE_FAILURES && now.saturating_sub(self.last_answer) > patience
    }

    /// Sends queries on a free or new connection.
    fn send(&mut self, orders: Vec<Order>, now: u64) -> Result<(), HttpError> {
        let Some(first) = orders.first() else { return Ok(()) };
        let link = self.free.pop().unwrap_or_else(|| {
            self.links.push(Link::default());
            self.links.len() - 1
        });
        let lateness = now.saturating_sub(first.intended.max(self.unblocked_at)).min(u32::MAX.into()) as u32;
        self.in_flight += orders.len();
        let limit = now + self.client.limits.timeout.as_nanos() as u64;
        let one = &mut self.links[link];
        one.serial = one.serial.wrapping_add(1);
        (one.orders, one.sent, one.lateness) = (orders, now, lateness);
        self.timeouts.push_back((limit, link, one.serial));
        self.put(link)
    }

    /// Writes the request for the link's orders.
    fn put(&mut self, link: usize) -> Result<(), HttpError> {
        let kept = self.links[link].open.take().filter(|open| open.sender.is_ready());
        let mut open = match kept {
            Some(open) => open,
            None => match self.connect(link) {
                Ok(open) => open,
                Err(e) => {
                    self.finish(link, Err(Fault::Miss(Outcome::Reset, e.to_string())));
                    return Ok(());
                }
            },
        };
        let requests = self.client.requests;
        let orders = &self.links[link].orders;
        let (uri, body) = &requests.queries[orders[0].query as usize];
        let body = match &orders[..] {
            [_] => body.clone(),
            several => {
                let bodies = several.iter().flat_map(|order| requests.queries[order.query as usize].1.iter());
                bodies.copied().collect::<Vec<u8>>().into()
            }
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = requests.method.clone();
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = self.headers.clone();
        let response = open.sender.send_request(request);
        open.exchange = Some(Box::pin(receive(response, self.client.limits.body_bytes)));
        open.requests += 1;
        self.links[link].open = Some(open);
        self.poll_link(link)
    }

    fn connect(&self, link: usize) -> std::io::Result<Live> {
        let Target { address, tls, .. } = self.client.target;
        let mut stream = mio::net::TcpStream::connect(*address)?;
        // Requests are single writes; waiting for more would only delay them.
        stream.set_nodelay(true)?;
        self.poll.registry().register(&mut stream, Token(link), Interest::READABLE | Interest::WRITABLE)?;
        let tls = match tls {
            Some((config, name)) => {
                let connection = ClientConnection::new(Arc::clone(config), name.clone());
                Some(connection.map_err(std::io::Error::other)?)
            }
            None => None,
        };
        let mut builder = http1::Builder::new();
        builder.max_buf_size(MOST_HEAD);
        let mut handshake = Box::pin(builder.handshake(Socket::new(stream, tls)));
        match handshake.as_mut().poll(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(Ok((sender, connection))) => {
                Ok(Live { connection: Box::pin(connection), sender, exchange: None, requests: 0 })
            }
            Poll::Ready(Err(e)) => Err(std::io::Error::other(e)),
            Poll::Pending => Err(std::io::Error::other("HTTP/1 needs no handshake, but hyper waits for one")),
        }
    }

    /// Lets a connection do what it can, and notes its response if that is complete.
    fn poll_link(&mut self, link: usize) -> Result<(), HttpError> {
        let Some(mut open) = self.links[link].open.take() else { return Ok(()) };
        let waker = self.waker.clone();
        let mut context = Context::from_waker(&waker);
        let mut received = None;
        let is_closed = loop {
            self.woken.take();
            let is_closed = open.connection.as_mut().poll(&mut context).is_ready();
            if let Some(exchange) = &mut open.exchange
                && let Poll::Ready(result) = exchange.as_mut().poll(&mut context)
            {
                open.exchange = None;
                received = Some(result);
            } else if is_closed || !self.woken.take() {
                break is_closed;
            }
        };
        let is_unsent = matches!(received, Some(Err(Fault::Unsent)));
        let is_reused = open.requests > 1;
        if !is_closed && (open.exchange.is_some() || open.sender.is_ready()) {
            self.links[link].open = Some(open);
        } else if open.exchange.is_some() {
            received = Some(Err(Fault::Miss(Outcome::Reset, String::from("connection closed"))));
        }
        match received {
            Some(Err(Fault::Unsent)) if is_unsent && is_reused => self.put(link),
            Some(received) => {
                self.finish(link, received);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Records the queries of a link and frees it.
    fn finish(&mut self, link: usize, received: Received) {
        let finished = self.now();
        let one = &mut self.links[link];
        let orders = std::mem::take(&mut one.orders);
        let (sent, lateness) = (one.sent, one.lateness);
        one.serial = one.serial.wrapping_add(1);
        self.free.push(link);
        self.in_flight -= orders.len();
        if std::mem::take(&mut self.is_blocked) {
            self.unblocked_at = finished;
        }
        let records = &mut self.records;
        let mut at = 0;
        let mut add = |Reply { outcome, hits, server_ms }: Reply| {
            let Some(&Order { job, query, intended }) = orders.get(at) else { return };
            at += 1;
            records.push(Record { job, query, intended, sent, finished, lateness, outcome, hits, server_ms });
        };
        match received {
            Ok((200, body)) => {
                self.client.requests.dialect.read(&body, orders.len(), &mut add);
                if self.keeps_text {
                    self.text = excerpt(&body);
                }
            }
            Ok((status, body)) => {
                orders.iter().for_each(|_| add(Reply::failed(Outcome::of_status(status))));
                if self.keeps_text {
                    self.text = format!("status {status}: {}", excerpt(&body));
                }
            }
            Err(fault) => {
                let (outcome, text) = match fault {
                    Fault::Unsent => (Outcome::Reset, String::from("connection closed")),
                    Fault::Miss(outcome, text) => (outcome, text),
                };
                orders.iter().for_each(|_| add(Reply::failed(outcome)));
                self.text = if self.keeps_text { text } else { String::new() };
            }
        }
        let answered = self.records.iter().rev().take(orders.len()).any(|record| record.outcome == Outcome::Answered);
        (self.last_answer, self.failures) =
            if answered { (finished, 0) } else { (self.last_answer, self.failures + 1) };
    }

    /// Gives up queries whose time limit has passed.
    fn expire(&mut self, now: u64) {
        while let Some(&(at, link, serial)) = self.timeouts.front() {
            let is_current = self.links[link].serial == serial;
            if is_current && at > now {
                break;
            }
            self.timeouts.pop_front();
            if is_current {
                self.links[link].open = None;
                let text = format!("no answer within {} s", self.client.limits.timeout.as_secs_f64());
                self.finish(link, Err(Fault::Miss(Outcome::Timeout, text)));
            }
        }
    }

    /// Waits for sockets until `until`, spinning at the end if that is a schedule.
    fn wait(&mut self, until: u64, is_schedule: bool) -> Result<(), HttpError> {
        let left = until.saturating_sub(self.now());
        let sleep = if is_schedule { left.saturating_sub(SPIN) } else { left };
        let timeout = sleep_for_sockets(&self.poll, Duration::from_nanos(sleep))?;
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => return Ok(()),
            done => done?,
        }
        let ready: Vec<usize> = self.events.iter().map(|event| event.token().0).collect();
        ready.into_iter().try_for_each(|link| self.poll_link(link))
    }
}

/// Sleeps to the microsecond, where the system can, until a socket is ready; returns the rest for the poller, whose
/// timeouts have milliseconds.
#[cfg(unix)]
fn sleep_for_sockets(poll: &mio::Poll, timeout: Duration) -> std::io::Result<Duration> {
    use rustix::event::{PollFd, PollFlags, Timespec};
    if timeout.is_zero() {
        return Ok(timeout);
    }
    let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
    match rustix::event::poll(&mut [PollFd::new(poll.registry(), PollFlags::IN)], Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(Duration::ZERO),
        Err(e) => Err(e.into()),
    }
}

#[cfg(not(unix))]
fn sleep_for_sockets(_: &mio::Poll, timeout: Duration) -> std::io::Result<Duration> {
    Ok(Duration::from_millis(timeout.as_millis() as u64))
}

/// Awaits a response with at most `most` bytes of body.
async fn receive(response: impl Future<Output = hyper::Result<Response<Incoming>>>, most: usize) -> Received {
    let response = response.await.map_err(fault_of)?;
    let status = response.status().as_u16();
    let mut incoming = response.into_body();
    let mut body = Vec::new();
    while let Some(frame) = incoming.frame().await {
        if let Ok(data) = frame.map_err(fault_of)?.into_data() {
            if body.len() + data.len() > most {
                return Err(Fault::Miss(Outcome::TooLarge, format!("the response has more than {most} bytes")));
            }
            body.extend_from_slice(&data);
        }
    }
    Ok((status, body))
}

fn fault_of(error: hyper::Error) -> Fault {
    if error.is_canceled() {
        return Fault::Unsent;
    }
    let io = std::iter::successors(error.source(), |&e| e.source()).find_map(|e| e.downcast_ref::<std::io::Error>());
    let is_garbage =
        io.is_some_and(|e| matches!(e.kind(), std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput));
    let outcome =
        if error.is_parse() || error.is_parse_too_large() || is_garbage { Outcome::Malformed } else { Outcome::Reset };
    let cause = error.source().map_or(String::new(), |cause| format!(": {cause}"));
    Fault::Miss(outcome, format!("{error}{cause}"))
}

/// The beginning of a body, on one line.
fn excerpt(body: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(&body[..body.len().min(800)]).chars().take(200).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
