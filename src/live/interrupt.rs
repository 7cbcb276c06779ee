//! Ctrl-C: the first ends the run and keeps what was measured, the second aborts.

use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// What a shell reports of a program that Ctrl-C ended: 128 + SIGINT.
const ABORTED: i32 = 130;

/// From now on the first Ctrl-C (or SIGTERM) sets a flag that live runs look at, and the second ends the process. Later
/// calls change nothing.
pub fn catch_interrupts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let installed = ctrlc::set_handler(|| {
            if INTERRUPTED.swap(true, Ordering::Relaxed) {
                std::process::exit(ABORTED);
            }
        });
        // Without a handler Ctrl-C ends the process at once: a loss of comfort, no reason not to run.
        if let Err(e) = installed {
            eprintln!("warning: Ctrl-C will not keep what was measured: {e}");
        }
    });
}

/// Whether Ctrl-C has come since [`catch_interrupts`].
#[must_use]
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The flag itself, for the driver to poll.
pub(super) fn flag() -> &'static AtomicBool {
    &INTERRUPTED
}
