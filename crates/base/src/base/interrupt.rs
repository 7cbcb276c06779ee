//! Ending runs early, from outside: a signal handler sets a flag, and the measurements so far are kept. The driver of a
//! live run polls the flag; the lab polls it between simulated runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static INTERRUPTED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Ends all runs of this process, now and later. Returns whether that had been requested before.
pub fn interrupt() -> bool {
    INTERRUPTED.swap(true, Ordering::Relaxed)
}

/// Whether [`interrupt`] was called or the [flag](interrupt_flag) set.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// The flag that [`interrupt`] sets; a signal handler may do no more than set it.
pub fn interrupt_flag() -> Arc<AtomicBool> {
    Arc::clone(&INTERRUPTED)
}

/// The flag itself, for a loop that polls it.
pub fn flag() -> &'static AtomicBool {
    &INTERRUPTED
}
