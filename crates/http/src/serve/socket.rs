//! Sockets for hyper without an asynchronous runtime.
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

/// Bytes per read.
const READ: usize = 16 * 1024;

/// A connected socket.
#[derive(Debug)]
pub(super) struct Socket(pub(super) TcpStream);

/// `Pending` for what would block.
fn pending<T>(mut act: impl FnMut() -> io::Result<T>) -> Poll<io::Result<T>> {
    loop {
        match act() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
            done => return Poll::Ready(done),
        }
    }
}

impl Read for Socket {
    fn poll_read(mut self: Pin<&mut Self>, _: &mut Context<'_>, mut out: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        let mut buffer = [0; READ];
        let buffer = &mut buffer[..READ.min(out.remaining())];
        pending(|| self.0.read(buffer).map(|count| out.put_slice(&buffer[..count])))
    }
}

impl Write for Socket {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        pending(|| self.0.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        pending(|| self.0.shutdown(Shutdown::Write))
    }
}

/// Whether hyper asked to be polled again.
#[derive(Debug, Default)]
pub(super) struct Woken(AtomicBool);

impl Woken {
    /// Whether it asked since the last call.
    pub(super) fn take(&self) -> bool {
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
