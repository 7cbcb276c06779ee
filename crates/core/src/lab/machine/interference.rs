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
    /// What the hypervisor gave to others, and what other processes took.
    pub load: SystemLoad,
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
        let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
        if self.load.steal.is_some_and(|steal| steal > MOST_STEAL * cores) {
            Some("steal")
        } else if self.load.others.is_some_and(|others| others > MOST_OTHERS * cores) {
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

/// What kept the machine busy besides this process, in cores; `None` where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SystemLoad {
    /// What the hypervisor gave to other machines.
    pub steal: Option<f64>,
    /// What other processes took.
    pub others: Option<f64>,
}

impl SystemLoad {
    /// The load of several runs: the means of what the system told.
    #[must_use]
    pub fn mean(loads: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> Option<f64>| {
            let told: Vec<f64> = loads.iter().filter_map(of).collect();
            (!told.is_empty()).then(|| told.iter().sum::<f64>() / told.len() as f64)
        };
        Self { steal: mean(|load| load.steal), others: mean(|load| load.others) }
    }

    /// `other processes took 0.0 cores`, and what was stolen if it shows.
    #[must_use]
    pub fn words(&self) -> String {
        let Some(others) = self.others else { return String::from("the load by other processes is unknown") };
        let steal = self.steal.filter(|&steal| steal >= 0.05);
        let stolen = steal.map_or(String::new(), |steal| format!(", the hypervisor {steal:.1}"));
        format!("other processes took {others:.1} cores{stolen}")
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
}

impl SystemLoadProbe {
    pub(in crate::lab) fn start() -> Self {
        Self { began: Instant::now(), cores: CoreTimes::now(), own: own_time() }
    }

    /// What the cores did since then, in cores: 1.5 of 2, say.
    pub(in crate::lab) fn cores(&self) -> SystemLoad {
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let (Some(from), Some(to)) = (self.cores, CoreTimes::now()) else { return SystemLoad::default() };
        // A run shorter than some ticks tells nothing.
        if elapsed_s < 0.05 {
            return SystemLoad::default();
        }
        // The kernel's counters may go back.
        let cores = |from: u64, to: u64| to.saturating_sub(from) as f64 / TICKS_PER_S / elapsed_s;
        let own = own_time().saturating_sub(self.own).as_secs_f64() / elapsed_s;
        SystemLoad {
            steal: Some(cores(from.steal, to.steal)),
            others: Some((cores(from.busy, to.busy) - own).max(0.0)),
        }
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
        let [user, nice, system, _idle, _waiting, interrupts, soft, steal, ..] = ticks[..] else { return None };
        let busy = user + nice + system + interrupts + soft;
        Some(Self { busy, steal })
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
        assert_eq!(CoreTimes::parse(stat), Some(CoreTimes { busy: 73, steal: 80 }));
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
        let loaded = |steal, others| SystemLoad { steal: Some(steal), others: Some(others) };
        let cores = std::thread::available_parallelism().unwrap().get() as f64;
        assert_eq!(why(Interference { load: loaded(0.02 * cores, 0.0), ..calm }), Some("steal"));
        assert_eq!(why(Interference { load: loaded(0.0, 0.1 * cores), ..calm }), Some("others"));
        assert_eq!(why(Interference { lag_p99: Nanos(100_001), ..calm }), Some("lag"));
        assert_eq!(why(Interference { after: PerClass::two(0.8, 1.0), ..calm }), Some("speed"));
        let load = loaded(0.009 * cores, 0.049 * cores);
        assert_eq!(why(Interference { load, lag_p99: Nanos(100_000), ..calm }), None);
    }
}
