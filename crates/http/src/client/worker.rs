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
use crate::run::{Ending, Outcome, Record};
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

/// Why a query has no answer: a miss, and the reason in words.
type Fault = (Outcome, String);

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
    /// The text of the last response, if it is wanted.
    text: Option<String>,
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
            text: None,
        })
    }

    /// Nanoseconds since the start of the run; 0 before it.
    fn now(&self) -> u64 {
        Instant::now().saturating_duration_since(self.start).as_nanos() as u64
    }

    /// Sends one query and returns what became of it, with the beginning of the body.
    pub(crate) fn ask(mut self, query: u32) -> Result<(Outcome, String), HttpError> {
        let mut events = Events::with_capacity(4);
        self.text = Some(String::new());
        let link = self.free_link(0);
        self.links[link].orders.push(Order { job: 0, query, intended: 0 });
        self.send(link, self.now());
        while self.in_flight > 0 && !live::interrupted() {
            self.expire(self.now());
            self.wait(&mut events, self.now() + LOOK, false)?;
        }
        let record = self.records.first().ok_or(HttpError::Interrupted)?;
        Ok((record.outcome, self.text.unwrap_or_default()))
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
        Ok(Part { records: self.records, ending })
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
        let Link { target, orders, request, response, written, serial, sent, lateness, .. } = &mut self.links[at];
        let server = &mut servers[*target];
        let Some(first) = orders.first() else { return server.free.push(at) };
        request.clear();
        response.clear();
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
            Err(e) => self.finish(at, Some((Outcome::Reset, e.to_string()))),
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
        let done = loop {
            let count = match open.read(&mut self.buffer) {
                Ok(None) => {
                    link.open = Some(open);
                    return;
                }
                Ok(Some(count)) => count,
                Err(e) => break Some((Outcome::Reset, e.to_string())),
            };
            if count == 0 {
                break (!link.response.close()).then(|| (Outcome::Reset, String::from("connection closed")));
            }
            if !is_waiting {
                // Nothing was asked.
                return;
            }
            match link.response.add(&self.buffer[..count], self.client.limits.body_bytes) {
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
                Err(outcome) => break Some((outcome, String::from(outcome.name()))),
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
        let mut add = |Reply { outcome, hits, server_ms }: Reply| {
            let Some(&Order { job, query, intended }) = outcomes.next() else { return };
            is_answered |= outcome == Outcome::Answered;
            let (sent, lateness) = (*sent, *lateness);
            records.push(Record { job, query, intended, sent, finished, lateness, outcome, hits, server_ms });
        };
        let failed = match (&fault, response.status()) {
            (Some((outcome, _)), _) => Some(*outcome),
            (None, 200) => None,
            (None, status) => Some(Outcome::of_status(status)),
        };
        match failed {
            Some(outcome) => orders.iter().for_each(|_| add(Reply::failed(outcome))),
            None => client.requests.dialect.read(response.body(), orders.len(), &mut add),
        }
        if let Some(text) = &mut self.text {
            let excerpt = || response.excerpt(client.targets[*target].secrets());
            *text = match fault {
                Some((_, why)) => why,
                None if response.status() == 200 => excerpt(),
                None => format!("status {}: {}", response.status(), excerpt()),
            };
        }
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
                self.links[at].open = None;
                let text = format!("no answer within {} s", self.client.limits.timeout.as_secs_f64());
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
