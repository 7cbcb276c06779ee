//! Ctrl-C, `kill` and the end of the terminal: the first signal ends the runs and keeps their results, the second ends the
//! process.
//!
//! The exit code is 128 plus the number of the signal, as a shell reports a program that a signal ended.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Once};

#[cfg(unix)]
use signal_hook::consts::{SIGHUP, SIGXFSZ};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use tandem_model::base::interrupt::interrupt_flag;

/// The base of exit codes after signals.
const SIGNALLED: i32 = 128;

/// The exit code of the signal that came last; 0 for none.
static CAUGHT: LazyLock<Arc<AtomicUsize>> = LazyLock::new(Arc::default);

/// From now on runs end at the first signal. Later calls change nothing.
pub(super) fn catch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Without a handler, Ctrl-C ends the process at once, which is acceptable.
        if let Err(e) = [SIGINT, SIGTERM].into_iter().try_for_each(catch_signal) {
            errln!("warning: Ctrl-C will not keep results: {e}");
        }
        #[cfg(unix)]
        if !ignores_hangup()
            && let Err(e) = catch_signal(SIGHUP)
        {
            errln!("warning: the end of the terminal will not keep results: {e}");
        }
    });
}

/// Makes a file that exceeds `ulimit -f` an error of the command, which the system would end otherwise.
pub(super) fn survive_file_limit() {
    #[cfg(unix)]
    if let Err(e) = flag::register(SIGXFSZ, Arc::default()) {
        errln!("warning: a file beyond `ulimit -f` will end the process: {e}");
    }
}

/// Whether the process ignores the end of its terminal, as under `nohup`; known on Linux only.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}

fn catch_signal(signal: i32) -> std::io::Result<()> {
    let code = SIGNALLED + signal;
    // In the order in which they are called: the second signal finds the flag set by the first.
    flag::register_conditional_shutdown(signal, code, interrupt_flag())?;
    flag::register(signal, interrupt_flag())?;
    flag::register_usize(signal, Arc::clone(&CAUGHT), code as usize)?;
    Ok(())
}

/// The exit code after a signal; `None` if none came.
pub(super) fn code() -> Option<u8> {
    u8::try_from(CAUGHT.load(Ordering::Relaxed)).ok().filter(|&code| code > 0)
}
