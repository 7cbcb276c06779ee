//! Progress reports of the lab.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A receiver of progress reports. The lab itself prints nothing.
pub trait Progress: Sync {
    /// A step of `pieces` pieces begins; 0 if their number is not known yet.
    fn begin(&self, step: &'static str, pieces: u64);

    /// The step has finished `done` of `of` pieces.
    fn reach(&self, done: u64, of: u64);

    /// A task of unknown duration begins.
    fn doing(&self, what: &str);

    /// A task of known duration begins, such as a live run.
    fn lasts(&self, what: &str, time: Duration);

    /// A task has ended with this result.
    fn told(&self, what: &str);

    /// The step or task is over.
    fn end(&self);
}

/// Runs a step of `pieces` pieces. `run` calls its argument after each piece, from any thread.
pub fn in_pieces<R>(
    progress: &dyn Progress,
    step: &'static str,
    pieces: usize,
    run: impl FnOnce(&(dyn Fn() + Sync)) -> R,
) -> R {
    let reached = AtomicU64::new(0);
    progress.begin(step, pieces as u64);
    let result = run(&|| progress.reach(reached.fetch_add(1, Ordering::Relaxed) + 1, pieces as u64));
    progress.end();
    result
}

/// A receiver that ignores all reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &'static str, _: u64) {}

    fn reach(&self, _: u64, _: u64) {}

    fn doing(&self, _: &str) {}

    fn lasts(&self, _: &str, _: Duration) {}

    fn told(&self, _: &str) {}

    fn end(&self) {}
}
