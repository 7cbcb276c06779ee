//! A thread of the client: a loop that sends what is due and reads what arrives, over its own connections.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Token};
use tandem_drive::live;
use tandem_model::base::random::{Purpose, Random};

use crate::HttpError;
use crate::client::{Client, Part};
use crate::connection::{Connection, sleep_for_sockets};
use crate::dialect::Reply;
use crate::response::Response;
use crate::run::{Ending, Fault, Outcome, Record};
use crate::source::{Due, Order, Source};

/// A client without a core of its own sleeps until this long before a query is due, and spins for the rest.
const SPIN: u64 = 60_000;
/// On machines of this many cores for each of its threads, a client has a core of its own and does not sleep: the system wakes a
/// thread up to some 50 us after an answer.
const MANY_CORES: usize = 8;
/// Requests that are written before answers are read again.
const STARTS: usize = 8;
/// Longest time between two looks at limits.
const LOOK: u64 = 20_000_000;
/// A server is gone if nothing was answered for this time, and for two time limits, and this number of queries failed.
const GONE: u64 = 3_000_000_000;
const GONE_FAILURES: u32 = 20;
/// Bytes per read.
const READ: usize = 64 * 1024;

/// Memory for the responses that all threads of a client are reading.
const MOST_MEMORY: usize = 192 << 20;

/// A place for a connection, with the request that it carries.
#[derive(Default)]
struct Link {
    /// The number of the server.
    target: usize,
    open: Option<Connection>,
    /// Changes with each request, so that old time limits are recognised.
    serial: u32,
    /// The queries of the request; none if the link is free.
    orders: Vec<Order>,
    sent: u64,
    lateness: u32,
    request: Vec<u8>,
    /// Bytes of the request that are written.
    written: usize,
    response: Response,
}

impl Link {
    fn is_handshaking(&self) -> bool {
        self.open.as_ref().is_some_and(Connection::is_handshaking)
    }
}

/// A server, as one thread sees it.
struct Server {
    /// Headers of all requests, as they are written.
    headers: Vec<u8>,
    links: usize,
    free: Vec<usize>,
    /// Queries without an answer.
    outstanding: usize,
}

pub(crate) struct Worker<'a> {
    client: &'a Client<'a>,
    most_links: usize,
    start: Instant,
    stop: &'a AtomicBool,
    owns_core: bool,
    poll: mio::Poll,
    links: Vec<Link>,
    servers: Vec<Server>,
    /// Chances of the routing, the number of requests routed, and the server of the next one.
    random: Random,
    routed: usize,
    chosen: Option<usize>,
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
    buffer: Vec<u8>,
    /// Memory of the responses that are being read.
    memory: usize,
    /// The reason of the first failure.
    failure: Option<String>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        client: &'a Client<'a>,
        thread: usize,
        most_links: usize,
        start: Instant,
        stop: &'a AtomicBool,
    ) -> Result<Self, HttpError> {
        let server =
            |target| Server { headers: client.requests.head(target), links: 0, free: Vec::new(), outstanding: 0 };
        Ok(Self {
            client,
            most_links: (most_links / client.targets.len()).max(1),
            start,
            stop,
            owns_core: client.limits.spins
                || std::thread::available_parallelism()
                    .is_ok_and(|cores| cores.get() >= MANY_CORES * client.limits.threads),
            poll: mio::Poll::new()?,
            links: Vec::new(),
            servers: client.targets.iter().map(server).collect(),
            random: Purpose::Routing.stream(thread as u64),
            routed: thread,
            chosen: None,
            in_flight: 0,
            timeouts: VecDeque::new(),
            records: Vec::new(),
            is_blocked: false,
            unblocked_at: 0,
            last_answer: 0,
            failures: 0,
            look_at: 0,
            buffer: vec![0; READ],
            memory: 0,
            failure: None,
        })
    }

    /// Nanoseconds since the start of the run; 0 before it.
    fn now(&self) -> u64 {
        Instant::now().saturating_duration_since(self.start).as_nanos() as u64
    }

    /// Sends one query and returns what became of it, with the reason of a failure.
    pub(crate) fn ask(mut self, query: u32) -> Result<(Record, String), HttpError> {
        let mut events = Events::with_capacity(4);
        let link = self.free_link(0);
        self.links[link].orders.push(Order { job: 0, query, intended: 0 });
        self.send(link, self.now());
        while self.in_flight > 0 && !live::interrupted() {
            self.expire(self.now());
            self.wait(&mut events, self.now() + LOOK, false)?;
        }
        let record = self.records.first().ok_or(HttpError::Interrupted)?;
        Ok((*record, self.failure.unwrap_or_default()))
    }

    /// Sends the queries of a source, about `count` if that is known.
    pub(crate) fn run(mut self, mut source: impl Source, count: usize) -> Result<Part, HttpError> {
        self.records.reserve(count);
        // By default the system wakes sleepers up to 50 us late, to wake several at once. Without it, lateness only grows.
        #[cfg(target_os = "linux")]
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut events = Events::with_capacity(256);
        while Instant::now() < self.start {
            std::hint::spin_loop();
        }
        let mut ending = Ending::Complete;
        loop {
            let due = if ending == Ending::Complete { self.send_due(&mut source) } else { Due::Never };
            if due == Due::Never && self.in_flight == 0 {
                break;
            }
            let now = self.now();
            self.expire(now);
            if now >= self.look_at {
                self.look_at = now + LOOK;
                ending = self.look(now);
            }
            let until = match due {
                Due::Now => now,
                Due::At(at) => at,
                Due::AfterAnswer | Due::Never => u64::MAX,
            };
            let expires = self.timeouts.front().map_or(u64::MAX, |&(at, ..)| at);
            let spins = source.is_schedule() && until < self.look_at;
            self.wait(&mut events, until.min(expires).min(self.look_at), spins)?;
        }
        Ok(Part { records: self.records, ending, failure: self.failure })
    }

    /// Sends some of the queries that are due, and returns the time of the next one.
    fn send_due(&mut self, source: &mut impl Source) -> Due {
        let mut due = Due::Now;
        for _ in 0..STARTS {
            let now = self.now();
            due = source.due(now, self.in_flight);
            if due != Due::Now {
                break;
            }
            let target = self.route();
            let server = &self.servers[target];
            if server.free.is_empty() && server.links >= self.most_links {
                self.is_blocked = true;
                return Due::AfterAnswer;
            }
            self.chosen = None;
            let link = self.free_link(target);
            let orders = &mut self.links[link].orders;
            while orders.len() < self.client.requests.dialect.batch()
                && source.due(now, self.in_flight + orders.len()) == Due::Now
            {
                orders.extend(source.take(now));
            }
            self.send(link, now);
        }
        due
    }

    /// The server of the next request.
    fn route(&mut self) -> usize {
        let Self { client, servers, random, routed, chosen, .. } = self;
        *chosen.get_or_insert_with(|| {
            *routed += 1;
            client.routing.choose(*routed - 1, servers.len(), |server| servers[server].outstanding, random)
        })
    }

    fn free_link(&mut self, target: usize) -> usize {
        let server = &mut self.servers[target];
        server.free.pop().unwrap_or_else(|| {
            server.links += 1;
            self.links.push(Link { target, ..Link::default() });
            self.links.len() - 1
        })
    }

    /// Whether the run continues.
    fn look(&self, now: u64) -> Ending {
        if live::interrupted() {
            return Ending::Interrupted;
        }
        let patience = GONE.max(2 * self.client.limits.timeout.as_nanos() as u64);
        if self.failures >= GONE_FAILURES && now.saturating_sub(self.last_answer) > patience {
            self.stop.store(true, Ordering::Relaxed);
        }
        if self.stop.load(Ordering::Relaxed) { Ending::ServerGone } else { Ending::Complete }
    }

    /// Sends the orders of a link.
    fn send(&mut self, at: usize, now: u64) {
        let Self { client, servers, unblocked_at, .. } = self;
        let Link { target, orders, request, written, serial, sent, lateness, .. } = &mut self.links[at];
        let server = &mut servers[*target];
        let Some(first) = orders.first() else { return server.free.push(at) };
        request.clear();
        client.requests.write(orders.iter().map(|order| order.query as usize), &server.headers, request);
        *lateness = now.saturating_sub(first.intended.max(*unblocked_at)).min(u32::MAX.into()) as u32;
        *serial = serial.wrapping_add(1);
        (*sent, *written) = (now, 0);
        server.outstanding += orders.len();
        self.in_flight += orders.len();
        self.timeouts.push_back((now + client.limits.timeout.as_nanos() as u64, at, *serial));
        self.write(at);
    }

    /// Writes what a link has not yet written, on a new connection if the last one was closed.
    fn write(&mut self, at: usize) {
        let link = &mut self.links[at];
        let target = &self.client.targets[link.target];
        let connect = || Connection::open(target, self.poll.registry(), Token(at));
        let mut open = match link.open.take().map_or_else(connect, Ok) {
            Ok(open) => open,
            Err(e) => return self.finish(at, Some((Outcome::Reset, e.to_string()))),
        };
        match open.write(&link.request[link.written..]) {
            Ok(count) => {
                link.written += count.unwrap_or_default();
                link.open = Some(open);
            }
            // The server closed it before anything of this request was written.
            Err(_) if link.written == 0 && open.answers > 0 => self.write(at),
            Err(e) => self.finish(at, Some(open.fault(&e, target))),
        }
    }

    /// Lets a link do what its connection is ready for.
    fn advance(&mut self, at: usize, is_closing: bool) {
        let link = &mut self.links[at];
        if !link.orders.is_empty() && link.written < link.request.len() && link.open.is_some() {
            self.write(at);
        }
        let link = &mut self.links[at];
        let Some(mut open) = link.open.take() else { return };
        let is_waiting = !link.orders.is_empty();
        let target = &self.client.targets[link.target];
        let done = loop {
            let count = match open.read(&mut self.buffer) {
                Ok(None) => {
                    link.open = Some(open);
                    return;
                }
                Ok(Some(count)) => count,
                Err(e) => break Some(open.fault(&e, target)),
            };
            if count == 0 {
                let hint = if link.response.is_empty() { target.other_scheme() } else { "" };
                break (!link.response.close()).then(|| (Outcome::Reset, format!("connection closed{hint}")));
            }
            if !is_waiting {
                // Nothing was asked.
                return;
            }
            let before = link.response.memory();
            let added = link.response.add(&self.buffer[..count], self.client.limits.body_bytes);
            self.memory = self.memory + link.response.memory() - before;
            if added == Ok(false) && self.memory > MOST_MEMORY / self.client.limits.threads.max(1) {
                break Some((Outcome::TooLarge, format!("the unfinished responses exceed {} MiB", MOST_MEMORY >> 20)));
            }
            match added {
                Ok(true) => {
                    open.answers += 1;
                    let is_kept = link.response.keeps_alive() && !is_closing && link.written == link.request.len();
                    link.open = Some(open).filter(|_| is_kept);
                    break None;
                }
                Ok(false) if count < READ && !is_closing && open.is_drained_by_short_reads() => {
                    link.open = Some(open);
                    return;
                }
                Ok(false) => {}
                Err(fault) => break Some(fault),
            }
        };
        if is_waiting {
            self.finish(at, done);
        }
    }

    /// Records the queries of a link and frees it.
    fn finish(&mut self, at: usize, fault: Option<Fault>) {
        let finished = self.now();
        let Self { client, records, .. } = self;
        let Link { target, orders, response, sent, lateness, serial, .. } = &mut self.links[at];
        let mut outcomes = orders.iter();
        let mut is_answered = false;
        let mut why = None;
        let mut add = |reply: Reply| {
            let Some(&Order { job, query, intended }) = outcomes.next() else { return };
            let (sent, lateness) = (*sent, *lateness);
            let (outcome, (hits, server_ms)) = match reply {
                Ok(answer) => (Outcome::Answered, answer),
                Err((outcome, words)) => {
                    why.get_or_insert((outcome, words));
                    (outcome, (0, f32::NAN))
                }
            };
            is_answered |= outcome == Outcome::Answered;
            records.push(Record { job, query, intended, sent, finished, lateness, outcome, hits, server_ms });
        };
        let fault = fault.or_else(|| match (response.status(), response.compression()) {
            (200, None) => None,
            (200, Some(with)) => {
                Some((Outcome::Malformed, format!("the body is compressed ({with}), which was not asked for")))
            }
            (status, _) => Some((Outcome::of_status(status), String::new())),
        });
        match fault {
            Some(fault) => orders.iter().for_each(|_| add(Err(fault.clone()))),
            None => client.requests.dialect.read(response.body(), orders.len(), &mut add),
        }
        if let (Some((outcome, words)), None) = (why, &self.failure) {
            let mut parts = vec![outcome.name().to_owned(), words];
            if response.status() > 0 {
                let is_text = response.compression().is_none();
                parts.push(response.about());
                parts.extend(is_text.then(|| response.excerpt(client.targets[*target].secrets())));
            }
            parts.retain(|part| !part.is_empty());
            self.failure = Some(parts.join(": "));
        }
        self.memory -= response.memory();
        response.clear();
        self.memory += response.memory();
        *serial = serial.wrapping_add(1);
        self.in_flight -= orders.len();
        let server = &mut self.servers[*target];
        server.outstanding -= orders.len();
        server.free.push(at);
        orders.clear();
        if std::mem::take(&mut self.is_blocked) {
            self.unblocked_at = finished;
        }
        (self.last_answer, self.failures) =
            if is_answered { (finished, 0) } else { (self.last_answer, self.failures + 1) };
    }

    /// Gives up queries whose time limit has passed.
    fn expire(&mut self, now: u64) {
        while let Some(&(when, at, serial)) = self.timeouts.front() {
            let is_current = self.links[at].serial == serial;
            if is_current && when > now {
                break;
            }
            self.timeouts.pop_front();
            if is_current {
                let link = &self.links[at];
                let hint = if link.response.is_empty() && link.is_handshaking() {
                    self.client.targets[link.target].other_scheme()
                } else {
                    ""
                };
                self.links[at].open = None;
                let text = format!("no answer within {} s{hint}", self.client.limits.timeout.as_secs_f64());
                self.finish(at, Some((Outcome::Timeout, text)));
            }
        }
    }

    /// Waits for sockets until `until`. It spins on a core of its own, and at the end if that is a schedule.
    fn wait(&mut self, events: &mut Events, until: u64, is_schedule: bool) -> Result<(), HttpError> {
        let left = until.saturating_sub(self.now());
        let spin = if self.owns_core { u64::MAX } else { SPIN * u64::from(is_schedule) };
        let sleep = left.saturating_sub(spin);
        let timeout = sleep_for_sockets(&self.poll, Duration::from_nanos(sleep))?;
        match self.poll.poll(events, Some(timeout)) {
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => return Ok(()),
            done => done?,
        }
        for event in &*events {
            self.advance(event.token().0, event.is_read_closed() || event.is_error());
        }
        Ok(())
    }
}
