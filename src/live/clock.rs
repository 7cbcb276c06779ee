//! Two clocks: the machine's, and one that jumps.

use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;

use super::worker::Completion;
use crate::time::Nanos;

/// How long before a due time a sleeping driver gets up: timers of an ordinary kernel are about 50 µs late.
const EARLY: Duration = Duration::from_micros(100);

/// The longest sleep, so that Ctrl-C is noticed soon.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// Pauses between two looks while polling: about half a microsecond in all. The driver's core may be half of one that a
/// worker has the other half of, as on most rented machines, and looking without rest would take the worker's time.
const PAUSES: u32 = 32;

/// Tells the time of a run, and passes it.
pub(super) trait Clock {
    /// The time since the run began; it never goes back.
    fn now(&self) -> Nanos;

    /// Passes time until `until`, or less: the caller looks again at what is due. A completion that comes meanwhile
    /// ends the wait and is handed over. `busy` says that a worker runs, so that one may come at any moment.
    fn wait(&mut self, until: Nanos, completions: &Receiver<Completion>, busy: bool) -> Option<Completion>;
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub(super) struct RealClock {
    start: Instant,
    /// Whether the driver has a core of its own, and may poll while workers run. A thread that sleeps wakes tens of
    /// microseconds late, which would be added to every service time.
    owns_core: bool,
}

impl RealClock {
    /// A clock that starts now.
    pub(super) fn start(owns_core: bool) -> Self {
        Self { start: Instant::now(), owns_core }
    }
}

impl Clock for RealClock {
    fn now(&self) -> Nanos {
        // 584 years fit.
        Nanos(self.start.elapsed().as_nanos() as u64)
    }

    fn wait(&mut self, until: Nanos, completions: &Receiver<Completion>, busy: bool) -> Option<Completion> {
        let now = self.now();
        let left = Duration::from_nanos(until.since(now).0);
        let sleep = left.min(LONGEST_SLEEP);
        if sleep > EARLY && !(busy && self.owns_core) {
            return completions.recv_timeout(sleep - EARLY).ok();
        }
        let poll_end = until.min(now + Nanos(sleep.as_nanos() as u64));
        loop {
            if let Ok(completion) = completions.try_recv() {
                return Some(completion);
            }
            if self.now() >= poll_end {
                return None;
            }
            if self.owns_core {
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
            } else {
                std::thread::yield_now();
            }
        }
    }
}

/// A clock that jumps to whatever is due next: a run takes no time, and is the same every time.
#[derive(Debug, Default)]
pub(super) struct ManualClock {
    now: Nanos,
}

impl Clock for ManualClock {
    fn now(&self) -> Nanos {
        self.now
    }

    fn wait(&mut self, until: Nanos, completions: &Receiver<Completion>, busy: bool) -> Option<Completion> {
        if busy {
            // Workers take real time: their completions come at the time at which the clock stands.
            return completions.recv().ok();
        }
        self.now = self.now.max(until);
        None
    }
}
