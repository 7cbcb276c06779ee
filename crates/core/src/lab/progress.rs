//! Who waits may be told how far the lab is.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Told what takes long, and how far it is. The lab itself prints nothing.
pub trait Progress: Sync {
    /// A step begins, of so many pieces; 0 where their number shows later.
    fn begin(&self, step: &'static str, pieces: u64);

    /// So many pieces of the step are done, of so many.
    fn reach(&self, done: u64, of: u64);

    /// What is being done now, of a step whose length nobody knows.
    fn doing(&self, what: &str);

    /// What is being done now, and how long that takes: a run whose length was chosen.
    fn lasts(&self, what: &str, time: Duration);

    /// Something is done, with this result.
    fn told(&self, what: &str);

    /// The step, or what was being done, is over.
    fn end(&self);
}

/// Runs a step of so many pieces. `run` calls its argument whenever a piece is done, from any thread.
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

/// Nobody is told.
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
