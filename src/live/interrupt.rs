//! Ending live runs early, from outside: a signal's handler asks, what was measured is kept.

use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Ends this process's live runs, the one under way and those to come. Whether one had been asked for already.
pub fn interrupt() -> bool {
    INTERRUPTED.swap(true, Ordering::Relaxed)
}

/// Whether [`interrupt`] was called.
#[must_use]
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The flag itself, for the driver to poll.
pub(super) fn flag() -> &'static AtomicBool {
    &INTERRUPTED
}
