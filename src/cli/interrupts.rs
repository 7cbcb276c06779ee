//! Ctrl-C and `kill`: the first ends the live run and keeps what was measured, the second ends the process.

use std::sync::Once;

use crate::live::interrupt;

/// What a shell reports of a program that Ctrl-C ended: 128 + SIGINT.
const ABORTED: i32 = 130;

/// From now on live runs end at the first signal. Later calls change nothing.
pub(super) fn catch() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let installed = ctrlc::set_handler(|| {
            if interrupt() {
                std::process::exit(ABORTED);
            }
        });
        // Without a handler Ctrl-C ends the process at once: a loss of comfort, no reason not to run.
        if let Err(e) = installed {
            errln!("warning: Ctrl-C will not keep what was measured: {e}");
        }
    });
}
