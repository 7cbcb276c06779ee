//! Two clocks: the machine's, and one that jumps.

use std::time::{Duration, Instant};

use super::ring::Sleeper;
use crate::base::time::Nanos;

/// How long before a due time a sleeping driver gets up: timers of an ordinary kernel are about 50 µs late.
const EARLY: Duration = Duration::from_micros(100);

/// The longest sleep, so that Ctrl-C is noticed soon.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// Pauses between two looks while polling: some tenths of a microsecond in all. The driver's core may be half of one
/// that a worker has the other half of, as on most rented machines, and looking without rest would take the worker's
/// time.
const PAUSES: u32 = 8;

/// Tells the time of a run, and passes it.
pub(super) trait Clock {
    /// How many arrivals (and recorded completions) are taken before it is decided on them. Without an end where time stands still: as many as are due.
    const MOST_AT_ONCE: usize;

    /// Whether time passes only where it is told to, so that what takes the driver's time has to be told as well.
    const JUMPS: bool;

    /// The time since the run began; it never goes back.
    fn now(&self) -> Nanos;

    /// The same, of a time since the lane pool was made.
    fn at(&self, since_epoch: u64) -> Nanos;

    /// A time of the run as one since the lane pool was made.
    fn since_epoch(&self, at: Nanos) -> u64;

    /// The driver was held up, or has handled a round of events, which takes so long where nothing takes real time: a clock that
    /// jumps passes it.
    fn pass(&mut self, time: Nanos);

    /// Passes time until `until`, or less: the caller looks again at what is due. A completion that comes meanwhile, as
    /// `has_completion` sees, ends the wait. `busy` says that a worker runs, so that one may come at any moment.
    fn wait(&mut self, until: Nanos, driver: &Sleeper, busy: bool, has_completion: impl FnMut() -> bool);
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub(super) struct RealClock {
    epoch: Instant,
    /// When the run began, since then.
    start: Nanos,
    /// Whether the driver has a core of its own, and may poll while workers run. A thread that sleeps wakes tens of
    /// microseconds late, which would be added to every service time.
    owns_core: bool,
    /// Whether it then polls also while nobody works.
    spins: bool,
}

impl RealClock {
    /// A clock that starts now, for a lane pool that was made at `epoch`.
    pub(super) fn start(epoch: Instant, owns_core: bool, spins: bool) -> Self {
        Self { epoch, start: Nanos(since(epoch)), owns_core, spins }
    }
}

/// Nanoseconds since `epoch`: 584 years fit.
pub(super) fn since(epoch: Instant) -> u64 {
    epoch.elapsed().as_nanos() as u64
}

/// Processor time that the calling thread has taken; where the system does not tell, the time since it first asked.
pub(super) fn thread_time() -> Duration {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
    #[cfg(not(target_os = "linux"))]
    {
        static FIRST: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        FIRST.get_or_init(Instant::now).elapsed()
    }
}

impl Clock for RealClock {
    // After a stall some hundreds are due; a worker that is idle should not wait for all of them.
    const MOST_AT_ONCE: usize = 64;
    const JUMPS: bool = false;

    fn now(&self) -> Nanos {
        self.at(since(self.epoch))
    }

    fn at(&self, since_epoch: u64) -> Nanos {
        Nanos(since_epoch).since(self.start)
    }

    fn since_epoch(&self, at: Nanos) -> u64 {
        (self.start + at).0
    }

    fn pass(&mut self, _time: Nanos) {}

    fn wait(&mut self, until: Nanos, driver: &Sleeper, busy: bool, mut has_completion: impl FnMut() -> bool) {
        let now = self.now();
        let left = Duration::from_nanos(until.since(now).0);
        let sleep = left.min(LONGEST_SLEEP);
        if sleep > EARLY && !(self.owns_core && (busy || self.spins)) {
            driver.sleep(sleep - EARLY, has_completion);
            return;
        }
        let poll_end = until.min(now + Nanos(sleep.as_nanos() as u64));
        while !has_completion() && self.now() < poll_end {
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
    const MOST_AT_ONCE: usize = usize::MAX;
    const JUMPS: bool = true;

    fn now(&self) -> Nanos {
        self.now
    }

    fn at(&self, _since_epoch: u64) -> Nanos {
        self.now
    }

    fn since_epoch(&self, _at: Nanos) -> u64 {
        // What takes real time takes none of this clock's.
        0
    }

    fn pass(&mut self, time: Nanos) {
        self.now += time;
    }

    fn wait(&mut self, until: Nanos, _driver: &Sleeper, busy: bool, mut has_completion: impl FnMut() -> bool) {
        if busy {
            // Workers take real time: their completions come at the time at which the clock stands.
            while !has_completion() {
                std::thread::yield_now();
            }
        } else {
            self.now = self.now.max(until);
        }
    }
}
