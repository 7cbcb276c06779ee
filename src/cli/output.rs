//! What commands print.

use std::io::{self, Write};

use super::Failure;

/// Prints to standard output; a reader that has gone away (`| head`) is no failure.
pub(super) fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::input(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}
