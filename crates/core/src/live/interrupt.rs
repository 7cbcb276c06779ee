//! Ending runs early, from outside: a signal's handler asks, what was measured is kept. Live runs look at it in their driver, the
//! lab between simulated ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Ends this process's runs, those under way and those to come. Whether that had been asked for already.
pub fn interrupt() -> bool {
    INTERRUPTED.swap(true, Ordering::Relaxed)
}

/// Whether [`interrupt`] was called, or the [flag](interrupt_flag) set.
#[must_use]
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// What [`interrupt`] sets, for handlers of signals, which may do no more than that.
#[must_use]
pub fn interrupt_flag() -> Arc<AtomicBool> {
    Arc::clone(&INTERRUPTED)
}

/// The flag itself, for the driver to poll.
pub(super) fn flag() -> &'static AtomicBool {
    &INTERRUPTED
}
