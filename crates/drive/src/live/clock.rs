//! Two clocks: the machine's, and one that jumps.

use std::time::{Duration, Instant};

use tandem_model::base::time::Nanos;

use super::gaps::LEAST_GAP;
use super::ring::Sleeper;

/// A sleeping driver gets up this long before a due time: timers of an ordinary kernel are about 50 µs late.
const EARLY: Duration = Duration::from_micros(100);

/// The longest sleep, so that Ctrl-C is noticed soon.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// The driver pauses this often between two looks while it polls: some tenths of a microsecond in all. Its core may be
/// a hyperthread of a worker's, as on most rented machines; looking without rest would take the worker's time.
const PAUSES: u32 = 8;

/// The clock of a run.
pub(super) trait Clock {
    /// Arrivals (and recorded completions) taken in before a decision. A clock that jumps has no limit: it takes all
    /// that are due.
    const MOST_AT_ONCE: usize;

    /// Whether time passes only by [`pass`](Self::pass) and [`wait`](Self::wait), so that the driver's own time must be
    /// passed too.
    const JUMPS: bool;

    /// The time since the run began; it never goes back.
    fn now(&self) -> Nanos;

    /// Converts a time since the lane pool was made to a time of the run.
    fn at(&self, since_epoch: u64) -> Nanos;

    /// Converts a time of the run to one since the lane pool was made.
    fn since_epoch(&self, at: Nanos) -> u64;

    /// Accounts for time in which the driver was held up or handled events. Only a clock that jumps has to advance;
    /// real time passes without it.
    fn pass(&mut self, time: Nanos);

    /// Whether the driver has a core of its own, so that only the machine can hold it up.
    fn owns_core(&self) -> bool;

    /// Waits from `now` until `until` or a shorter time; the caller then looks again at what is due. A completion, as
    /// `has_completion` reports it, ends the wait. `busy` says that a worker runs, so that one may come at any moment.
    ///
    /// Returns the time until which the wait is explained: the last look at the clock, or the intended end of a sleep.
    fn wait(
        &mut self,
        now: Nanos,
        until: Nanos,
        driver: &Sleeper,
        busy: bool,
        has_completion: impl FnMut() -> bool,
    ) -> Nanos;
}

#[derive(Debug)]
pub(super) struct RealClock {
    epoch: Instant,
    start: Nanos,
    /// Whether the driver has a core of its own and may poll while workers run. A sleeping thread wakes tens of
    /// microseconds late, which would be added to every service time.
    owns_core: bool,
    /// Whether a driver with its own core also polls while no worker runs.
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

/// Processor time of the calling thread. Where the system does not report it: the time since the first call.
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
    // After a stall some hundreds of events are due; an idle worker should not wait for all of them.
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

    fn owns_core(&self) -> bool {
        self.owns_core
    }

    fn wait(
        &mut self,
        now: Nanos,
        until: Nanos,
        driver: &Sleeper,
        busy: bool,
        mut has_completion: impl FnMut() -> bool,
    ) -> Nanos {
        let left = Duration::from_nanos(until.since(now).0);
        let sleep = left.min(LONGEST_SLEEP);
        if sleep > EARLY && !(self.owns_core && (busy || self.spins)) {
            driver.sleep(sleep - EARLY, has_completion);
            return now + Nanos((sleep - EARLY).as_nanos() as u64);
        }
        let poll_end = until.min(now + Nanos(sleep.as_nanos() as u64));
        let mut looked = now;
        while !has_completion() {
            let at = self.now();
            if at >= poll_end || at.since(looked) > LEAST_GAP {
                break;
            }
            looked = at;
            if self.owns_core {
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
            } else {
                std::thread::yield_now();
            }
        }
        looked
    }
}

/// A clock that jumps to the next due time: a run takes no real time and gives equal results each time.
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
        // Real computation takes none of this clock's time.
        0
    }

    fn pass(&mut self, time: Nanos) {
        self.now += time;
    }

    fn owns_core(&self) -> bool {
        true
    }

    fn wait(
        &mut self,
        _now: Nanos,
        until: Nanos,
        _driver: &Sleeper,
        busy: bool,
        mut has_completion: impl FnMut() -> bool,
    ) -> Nanos {
        if busy {
            // Workers take real time; their completions carry the time at which the clock stands.
            while !has_completion() {
                std::thread::yield_now();
            }
        } else {
            self.now = self.now.max(until);
        }
        self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_stands_while_workers_are_busy() {
        let mut clock = ManualClock::default();
        let driver = Sleeper::default();
        let mut looks = 0;
        clock.wait(Nanos::ZERO, Nanos(7), &driver, true, || {
            looks += 1;
            looks == 3
        });
        assert_eq!((looks, clock.now()), (3, Nanos::ZERO));
        clock.wait(Nanos::ZERO, Nanos(7), &driver, false, || false);
        clock.wait(Nanos(7), Nanos(5), &driver, false, || false);
        assert_eq!(clock.now(), Nanos(7));
    }
}
