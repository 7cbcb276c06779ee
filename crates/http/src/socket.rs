//! Sockets for hyper without an asynchronous runtime: non-blocking streams, with or without TLS.
//!
//! A read or write that would block returns `Pending` and registers no waker. The loop around it polls a connection
//! again when `mio` reports its socket ready, or when hyper woke the connection itself ([`Woken`]).

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake};

use hyper::rt::{Read, ReadBufCursor, Write};
use mio::net::TcpStream;
use rustls::{ClientConnection, Stream};

/// Bytes per read.
const READ: usize = 16 * 1024;

/// A connected or connecting socket.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, tls: Option<ClientConnection>) -> Self {
        Self { stream, tls: tls.map(Box::new) }
    }
}

/// `Pending` for what would block, or for a socket that is still connecting.
fn pending<T>(done: io::Result<T>) -> Poll<io::Result<T>> {
    match done {
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) => Poll::Pending,
        done => Poll::Ready(done),
    }
}

impl Read for Socket {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, mut out: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let Self { stream, tls } = &mut *self;
        let mut buffer = [0; READ];
        let buffer = &mut buffer[..READ.min(out.remaining())];
        let read = loop {
            let read = match tls {
                Some(tls) => Stream::new(tls.as_mut(), stream).read(buffer),
                None => stream.read(buffer),
            };
            if read.as_ref().is_err_and(|e| e.kind() == io::ErrorKind::Interrupted) {
                continue;
            }
            break read;
        };
        pending(read.map(|count| out.put_slice(&buffer[..count])))
    }
}

impl Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let Self { stream, tls } = &mut *self;
        pending(match tls {
            Some(tls) => Stream::new(tls.as_mut(), stream).write(bytes),
            None => stream.write(bytes),
        })
    }

    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, tls } = &mut *self;
        pending(match tls {
            Some(tls) => Stream::new(tls.as_mut(), stream).flush(),
            None => Ok(()),
        })
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            if self.as_mut().poll_flush(cx).is_pending() {
                return Poll::Pending;
            }
        }
        pending(self.stream.shutdown(Shutdown::Write))
    }
}

/// Whether hyper asked to be polled again.
#[derive(Debug, Default)]
pub(crate) struct Woken(AtomicBool);

impl Woken {
    /// Whether it asked since the last call.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
