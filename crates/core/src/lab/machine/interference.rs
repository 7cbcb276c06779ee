//! Whether something else was at work on the machine while a run lasted.
//!
//! | sign | disturbed if | where it is seen |
//! | --- | --- | --- |
//! | steal | the hypervisor had the cores for more than a hundredth of their time | `/proc/stat` |
//! | others | other processes had them for more than a twentieth | `/proc/stat`, less this process's own time |
//! | lag | one query in a hundred was released more than a hundredth of the deadline late | the driver |
//! | speed | backlogs right before and right after took times more than a tenth apart | the lanes |
//!
//! The rule is the same for every run and knows nothing of what was predicted: a disturbed run is measured and told, but
//! not compared.

use std::time::{Duration, Instant};

use crate::base::machine::{Machine, PerClass};
use crate::base::time::Nanos;

/// See the module's table.
const MOST_STEAL: f64 = 0.01;
const MOST_OTHERS: f64 = 0.05;
const MOST_LAG: f64 = 0.01;
const MOST_CHANGE: f64 = 1.1;
/// Ticks a second in `/proc/stat`.
const TICKS_PER_S: f64 = 100.0;

/// What was seen besides a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interference {
    /// Share of all cores' time that the hypervisor gave to others; `None` where the system does not tell.
    pub steal: Option<f64>,
    /// Share that other processes had.
    pub others: Option<f64>,
    /// How late the driver was for one query in a hundred.
    pub lag_p99: Nanos,
    /// By class, what queries took in a backlog before the run and in one after it, over what they take alone.
    pub before: PerClass<f64>,
    /// See above.
    pub after: PerClass<f64>,
}

impl Interference {
    /// Why the run does not count, in a word; `None` if it does.
    #[must_use]
    pub fn why(&self, machine: &Machine, deadline: Nanos) -> Option<&'static str> {
        let apart = |class| {
            let (before, after): (f64, f64) = (self.before[class], self.after[class]);
            before > 0.0 && after > 0.0 && (before / after).max(after / before) > MOST_CHANGE
        };
        if self.steal.is_some_and(|steal| steal > MOST_STEAL) {
            Some("steal")
        } else if self.others.is_some_and(|others| others > MOST_OTHERS) {
            Some("others")
        } else if self.lag_p99 > deadline.scaled(MOST_LAG) {
            Some("lag")
        } else if machine.classes().any(apart) {
            Some("speed")
        } else {
            None
        }
    }
}

/// Looks at the machine's own counts from its making on.
#[derive(Clone, Copy, Debug)]
pub(in crate::lab) struct SystemLoadProbe {
    began: Instant,
    cores: Option<CoreTimes>,
    own: Duration,
}

/// All cores' time, in ticks since the machine started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CoreTimes {
    busy: u64,
    steal: u64,
    all: u64,
}

impl SystemLoadProbe {
    pub(in crate::lab) fn start() -> Self {
        Self { began: Instant::now(), cores: CoreTimes::now(), own: own_time() }
    }

    /// Shares of all cores' time since then: the hypervisor's, and other processes'.
    pub(in crate::lab) fn shares(&self) -> (Option<f64>, Option<f64>) {
        let (Some(from), Some(to)) = (self.cores, CoreTimes::now()) else { return (None, None) };
        // The kernel's counters may go back.
        let since = |from: u64, to: u64| to.saturating_sub(from) as f64 / TICKS_PER_S;
        let all_s = since(from.all, to.all);
        // A run shorter than some ticks tells nothing.
        if all_s <= 0.0 || self.began.elapsed() < Duration::from_millis(50) {
            return (None, None);
        }
        let own_s = (own_time().saturating_sub(self.own)).as_secs_f64();
        let (busy_s, steal_s) = (since(from.busy, to.busy), since(from.steal, to.steal));
        (Some(steal_s / all_s), Some(((busy_s - own_s) / all_s).max(0.0)))
    }
}

impl CoreTimes {
    fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    /// The first line: user, nice, system, idle, waiting, interrupts, soft ones, stolen, and two that are in `user`.
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let [user, nice, system, idle, waiting, interrupts, soft, steal, ..] = ticks[..] else { return None };
        let busy = user + nice + system + interrupts + soft;
        Some(Self { busy, steal, all: busy + idle + waiting + steal })
    }
}

/// Processor time of this process; none where the system does not tell.
fn own_time() -> Duration {
    #[cfg(target_os = "linux")]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
    #[cfg(not(target_os = "linux"))]
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_counts_are_told_apart() {
        let stat = "cpu  10 20 30 400 5 6 7 80 3 0\ncpu0 1 2 3 4\n";
        assert_eq!(CoreTimes::parse(stat), Some(CoreTimes { busy: 73, steal: 80, all: 558 }));
        assert_eq!(CoreTimes::parse("cpu  1 2 3\n"), None);
        assert_eq!(CoreTimes::parse(""), None);
    }

    #[test]
    fn a_run_is_disturbed_by_each_sign_and_by_nothing_else() {
        let machine = Machine::new(1, 0);
        let calm = Interference {
            before: PerClass::two(1.0, 5.0),
            after: PerClass::two(1.05, 1.0),
            ..Interference::default()
        };
        let why = |one: Interference| one.why(&machine, Nanos::from_ms(10.0));
        // What the machine lacks counts for nothing.
        assert_eq!(why(calm), None);
        assert_eq!(why(Interference { steal: Some(0.02), ..calm }), Some("steal"));
        assert_eq!(why(Interference { others: Some(0.1), ..calm }), Some("others"));
        assert_eq!(why(Interference { lag_p99: Nanos(100_001), ..calm }), Some("lag"));
        assert_eq!(why(Interference { after: PerClass::two(0.8, 1.0), ..calm }), Some("speed"));
        assert_eq!(why(Interference { steal: Some(0.01), others: Some(0.05), lag_p99: Nanos(100_000), ..calm }), None);
    }
}
