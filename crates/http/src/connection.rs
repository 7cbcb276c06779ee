//! A connection of the client, with or without TLS, that never blocks, and the sleep between events.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::{ClientConnection, Stream};

use crate::run::{Fault, Outcome};
use crate::target::Target;

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
    /// Number of complete responses so far.
    pub(crate) answers: u32,
}

impl Connection {
    /// Begins to connect; the registry reports under `token` when more can be read or written.
    pub(crate) fn open(target: &Target, registry: &Registry, token: Token) -> io::Result<Self> {
        let mut stream = TcpStream::connect(target.address)?;
        // Requests are single writes; waiting for more would only delay them.
        stream.set_nodelay(true)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        let tls = match &target.tls {
            Some((config, name)) => {
                let tls = ClientConnection::new(Arc::clone(config), name.clone()).map_err(io::Error::other)?;
                Some(Box::new(tls))
            }
            None => None,
        };
        Ok(Self { stream, tls, answers: 0 })
    }

    /// Writes what can be written now; `None` if nothing can.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        now(|| match &mut self.tls {
            Some(tls) => Stream::new(tls.as_mut(), &mut self.stream).write(bytes),
            None => self.stream.write(bytes),
        })
    }

    /// Reads what has arrived; `None` if nothing has, 0 at the end.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<Option<usize>> {
        now(|| match &mut self.tls {
            Some(tls) => Stream::new(tls.as_mut(), &mut self.stream).read(bytes),
            None => self.stream.read(bytes),
        })
    }

    /// Whether TLS is not yet agreed on.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// An error of the system or of TLS as the end of a query.
    pub(crate) fn fault(&self, e: &io::Error, target: &Target) -> Fault {
        // A certificate is refused with other errors.
        let is_no_tls = e.kind() == io::ErrorKind::UnexpectedEof || e.to_string().contains("corrupt");
        let hint = if self.is_handshaking() && is_no_tls { target.other_scheme() } else { "" };
        (Outcome::Reset, format!("{e}{hint}"))
    }

    /// Whether a read of fewer bytes than asked for took all that had arrived. Under TLS it ends with a record.
    pub(crate) fn is_drained_by_short_reads(&self) -> bool {
        self.tls.is_none()
    }
}

/// `None` for what would block, or for a connection that is still being made.
fn now(mut act: impl FnMut() -> io::Result<usize>) -> io::Result<Option<usize>> {
    loop {
        match act() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) => return Ok(None),
            done => return done.map(Some),
        }
    }
}

/// Sleeps to the microsecond, where the system can, until a socket is ready; returns the rest for the poller, whose
/// timeouts have milliseconds.
#[cfg(unix)]
pub(crate) fn sleep_for_sockets(poll: &mio::Poll, timeout: Duration) -> std::io::Result<Duration> {
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
pub(crate) fn sleep_for_sockets(_: &mio::Poll, timeout: Duration) -> std::io::Result<Duration> {
    Ok(Duration::from_millis(timeout.as_millis() as u64))
}
