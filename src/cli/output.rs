//! What commands print.
//!
//! The standard library's `println!` panics where the reader has gone away, as `tandem index info X | head`
//! makes it. Here that is no failure; anything else that goes wrong, such as a full disk behind `>`, is one, and
//! ends the command with 2.

use std::fmt;
use std::io::{self, Write};
use std::sync::Mutex;

use super::Failure;

/// The first failure to print a line.
static FAILED: Mutex<Option<String>> = Mutex::new(None);

/// Prints a line to standard output.
macro_rules! outln {
    () => { $crate::cli::output::out_line(format_args!("")) };
    ($($part:tt)*) => { $crate::cli::output::out_line(format_args!($($part)*)) };
}

/// Prints a line to standard error.
macro_rules! errln {
    () => { $crate::cli::output::err_line(format_args!("")) };
    ($($part:tt)*) => { $crate::cli::output::err_line(format_args!($($part)*)) };
}

/// See `outln!`.
pub(super) fn out_line(line: fmt::Arguments<'_>) {
    if let Err(failure) = say(&format!("{line}\n"))
        && let Ok(mut first) = FAILED.lock()
    {
        first.get_or_insert(failure.to_string());
    }
}

/// See `errln!`. There is nowhere to report that standard error cannot be written to.
pub(super) fn err_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints to standard output; a reader that has gone away (`| head`) is no failure.
pub(super) fn say(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(Failure::input(format!("standard output: {e}"))),
        _ => Ok(()),
    }
}

/// Whether every line could be printed.
///
/// # Errors
/// The first failure of `outln!`.
pub(super) fn finish() -> Result<(), Failure> {
    match FAILED.lock().ok().and_then(|mut first| first.take()) {
        Some(message) => Err(Failure::input(message)),
        None => Ok(()),
    }
}
