//! A small server of HTTP/1.1. Its thread reads requests; the thread that has an answer writes the response at once. What a socket
//! does not take is written when it can take more.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Registry, Token, Waker};
use tandem_core::live;

use crate::HttpError;
use crate::message::Message;
use crate::run::Outcome;

/// Most connections; further ones are closed at once.
const MOST_CONNECTIONS: usize = 1024;
/// Largest body of a request.
const MOST_BODY: usize = 4 << 20;
/// A connection whose client completes no request, or reads no response, is closed after this time.
const IDLE: Duration = Duration::from_secs(75);
/// Time for answers after the signal to end.
const GRACE: Duration = Duration::from_secs(10);
/// Longest time between two looks at signals and silent connections.
const LOOK: Duration = Duration::from_millis(100);
/// Bytes per read.
const READ: usize = 64 * 1024;
const LISTENER: Token = Token(0);
const WAKER: Token = Token(1);

/// What answers requests.
pub(crate) trait Service {
    /// Answers a request, now or later and on any thread.
    fn answer(&self, request: &Message, exchange: Exchange);

    /// How long the thread may sleep; it asks before each look at the sockets.
    fn rest(&self) -> Result<Duration, HttpError>;
}

/// A response: status, media type, and body.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

/// The right to respond to a request.
pub(crate) struct Exchange {
    connection: Arc<Connection>,
}

struct Connection {
    stream: TcpStream,
    waker: Arc<Waker>,
    state: Mutex<State>,
}

struct State {
    request: Message,
    /// Whether a request is being answered.
    is_busy: bool,
    /// Whether the socket may have more bytes, whether they end, and whether they have ended.
    may_read: bool,
    is_closing: bool,
    has_ended: bool,
    keeps_alive: bool,
    response: Vec<u8>,
    written: usize,
    /// Since the last response, or the beginning.
    since: Instant,
}

type Connections = HashMap<Token, Arc<Connection>>;

/// A listener whose thread can be woken.
pub(crate) struct Server {
    pub(crate) listener: TcpListener,
    pub(crate) waker: Arc<Waker>,
    poll: Poll,
}

impl Server {
    pub(crate) fn new(mut listener: TcpListener) -> Result<Self, HttpError> {
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        Ok(Self { listener, waker, poll })
    }

    /// Serves until an interrupt comes, and then answers what has arrived.
    pub(crate) fn run(self, service: &impl Service) -> Result<(), HttpError> {
        let Self { listener, waker, mut poll } = self;
        let (mut listener, mut connections) = (Some(listener), Connections::new());
        let (mut events, mut buffer) = (Events::with_capacity(256), vec![0; READ]);
        let (mut looked, mut next, mut ends_at) = (Instant::now(), WAKER.0 + 1, None);
        loop {
            match poll.poll(&mut events, Some(service.rest()?.min(LOOK))) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                done => done?,
            }
            for event in &events {
                if event.token() == WAKER {
                    connections.retain(|_, connection| connection.advance(service, &mut buffer));
                } else if let Some(connection) = connections.get(&event.token()) {
                    connection.state().note(event.is_read_closed() || event.is_error());
                    if !connection.advance(service, &mut buffer) {
                        connections.remove(&event.token());
                    }
                }
            }
            let now = Instant::now();
            let is_time = now - looked >= LOOK;
            // The system may have had no sockets for a while.
            if let Some(listener) = &listener
                && (is_time || events.iter().any(|event| event.token() == LISTENER))
            {
                accept(listener, poll.registry(), &waker, &mut connections, &mut next);
            }
            if is_time {
                looked = now;
                connections.retain(|_, connection| connection.is_wanted(ends_at.is_some()));
            }
            if live::interrupted() {
                listener = None;
                if connections.is_empty() || now > *ends_at.get_or_insert(now + GRACE) {
                    return Ok(());
                }
            }
        }
    }
}

fn accept(
    listener: &TcpListener,
    registry: &Registry,
    waker: &Arc<Waker>,
    connections: &mut Connections,
    next: &mut usize,
) {
    while let Ok((mut stream, _)) = listener.accept() {
        let (token, interest) = (Token(*next), Interest::READABLE | Interest::WRITABLE);
        let is_ready = stream.set_nodelay(true).is_ok() && registry.register(&mut stream, token, interest).is_ok();
        if is_ready && connections.len() < MOST_CONNECTIONS {
            let state = State {
                request: Message::request(),
                is_busy: false,
                may_read: false,
                is_closing: false,
                has_ended: false,
                keeps_alive: true,
                response: Vec::new(),
                written: 0,
                since: Instant::now(),
            };
            connections
                .insert(token, Arc::new(Connection { stream, waker: Arc::clone(waker), state: Mutex::new(state) }));
            *next += 1;
        }
    }
}

impl Connection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes and reads what it can, and has requests answered one after the other. Returns whether the connection is kept.
    fn advance(self: &Arc<Self>, service: &impl Service, buffer: &mut [u8]) -> bool {
        loop {
            let next = self.state().next(&self.stream, buffer);
            match next {
                Ok(Some(request)) => service.answer(&request, Exchange { connection: Arc::clone(self) }),
                Ok(None) => return self.is_wanted(false),
                Err(refused) => self.state().respond(&refused, &self.stream),
            }
        }
    }

    /// Whether the connection is kept: not if the client is silent, or all is answered and no request may follow.
    fn is_wanted(&self, is_ending: bool) -> bool {
        let state = self.state();
        let is_done = state.response.is_empty() && (is_ending || state.has_ended || !state.keeps_alive);
        state.is_busy || (!is_done && state.since.elapsed() < IDLE)
    }
}

impl Exchange {
    /// Writes the response.
    pub(crate) fn respond(self, answer: &Answer) {
        let Connection { stream, waker, .. } = &*self.connection;
        let mut state = self.connection.state();
        state.respond(answer, stream);
        if state.request.len() > 0 || state.may_read || state.has_ended {
            // The server's thread takes the next request, which came early, or ends the connection.
            let _ = waker.wake();
        }
    }
}

impl State {
    /// Notes that the socket is ready.
    fn note(&mut self, is_closing: bool) {
        self.may_read = !self.has_ended;
        self.is_closing |= is_closing;
    }

    /// The next request, once it is complete and the last one is answered, or the answer to what is none.
    fn next(&mut self, stream: &TcpStream, buffer: &mut [u8]) -> Result<Option<Message>, Answer> {
        self.flush(stream);
        if self.is_busy || !self.response.is_empty() || !self.keeps_alive {
            return Ok(None);
        }
        loop {
            match self.request.add(&[], MOST_BODY) {
                Ok(false) if self.read(stream, buffer) => {}
                Ok(false) => return Ok(None),
                Ok(true) => {
                    self.keeps_alive = self.request.keeps_alive() && !live::interrupted();
                    self.is_busy = true;
                    return Ok(Some(self.request.split()));
                }
                Err(why) => {
                    self.keeps_alive = false;
                    let (status, why) = match why {
                        Outcome::TooLarge => (413, "the body is too large\n"),
                        _ => (400, "the request is not HTTP/1.1\n"),
                    };
                    return Err(Answer { status, kind: "text/plain", text: why.to_owned() });
                }
            }
        }
    }

    /// Reads some bytes; `false` if there are none.
    fn read(&mut self, mut stream: &TcpStream, buffer: &mut [u8]) -> bool {
        while self.may_read {
            match stream.read(buffer) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => self.may_read = false,
                Ok(0) | Err(_) => (self.may_read, self.has_ended) = (false, true),
                Ok(count) => {
                    // A short read took all that had arrived.
                    self.may_read = count == buffer.len() || self.is_closing;
                    self.request.push(&buffer[..count]);
                    return true;
                }
            }
        }
        false
    }

    fn respond(&mut self, Answer { status, kind, text }: &Answer, stream: &TcpStream) {
        let again = if *status == 429 { "retry-after: 1\r\n" } else { "" };
        // Clients of HTTP/1.0 have to be told that the connection stays open.
        let connection = if self.keeps_alive { "keep-alive" } else { "close" };
        let begin = format!("HTTP/1.1 {status} \r\ncontent-type: {kind}\r\ncontent-length: {}", text.len());
        // In one write, so that it is one packet.
        self.response.extend_from_slice(format!("{begin}\r\n{again}connection: {connection}\r\n\r\n{text}").as_bytes());
        (self.is_busy, self.since) = (false, Instant::now());
        self.flush(stream);
    }

    /// Writes what the socket takes. Ends a connection after its last response.
    fn flush(&mut self, mut stream: &TcpStream) {
        while self.written < self.response.len() {
            match stream.write(&self.response[self.written..]) {
                Ok(count) => self.written += count,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // The client has left.
                Err(_) => (self.written, self.keeps_alive) = (self.response.len(), false),
            }
        }
        (self.response, self.written) = (Vec::new(), 0);
        if !self.keeps_alive && !self.is_busy {
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}
