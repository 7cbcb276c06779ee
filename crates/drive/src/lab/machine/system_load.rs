//! Load by other processes during a run, on the cores that this process may use: `/proc/stat` minus its own time.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tandem_engine::search::cpu::multicore::Cores;

/// Ticks per second in `/proc/stat`.
const TICKS_PER_S: f64 = 100.0;

/// The load besides this process, in cores; `None` if the system does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SystemLoad {
    /// Time that the hypervisor gave to other machines.
    pub steal: Option<f64>,
    /// Time of other processes.
    pub others: Option<f64>,
}

impl SystemLoad {
    /// The mean load of several runs, over those that report it.
    #[must_use]
    pub fn mean(loads: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> Option<f64>| {
            let told: Vec<f64> = loads.iter().filter_map(of).collect();
            (!told.is_empty()).then(|| told.iter().sum::<f64>() / told.len() as f64)
        };
        Self { steal: mean(|load| load.steal), others: mean(|load| load.others) }
    }

    /// A text such as `other processes took 0.0 cores`; it adds stolen time above 0.05 cores.
    #[must_use]
    pub fn words(&self) -> String {
        let Some(others) = self.others else { return String::from("the load by other processes is unknown") };
        let steal = self.steal.filter(|&steal| steal >= 0.05);
        let stolen = steal.map_or(String::new(), |steal| format!(", the hypervisor {steal:.1}"));
        format!("other processes took {others:.1} cores{stolen}")
    }
}

/// Measures the load from its construction on.
#[derive(Clone, Copy, Debug)]
pub(in crate::lab) struct SystemLoadProbe {
    began: Instant,
    cores: Option<CoreTimes>,
    own: Duration,
}

/// The cores that this process may use (`taskset` and containers restrict them), read before any thread is pinned.
static CORES: LazyLock<Cores> = LazyLock::new(Cores::of_this_machine);

/// Time of this process's cores, in ticks since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CoreTimes {
    busy: u64,
    steal: u64,
}

impl SystemLoadProbe {
    pub(in crate::lab) fn start() -> Self {
        Self { began: Instant::now(), cores: CoreTimes::now(), own: own_time() }
    }

    /// The load since the start, in cores.
    pub(in crate::lab) fn cores(&self) -> SystemLoad {
        let elapsed_s = self.began.elapsed().as_secs_f64();
        let (Some(from), Some(to)) = (self.cores, CoreTimes::now()) else { return SystemLoad::default() };
        // A few ticks are too coarse for a result.
        if elapsed_s < 0.05 {
            return SystemLoad::default();
        }
        // Kernel counters may decrease.
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
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?, |core| CORES.contains(core))
    }

    /// Adds up the lines of the cores that are `ours`, such as `cpu3`, or takes the machine's line where no core is
    /// known. A line has user, nice, system, idle, iowait, irq, softirq, steal, and two that are part of `user`.
    fn parse(stat: &str, ours: impl Fn(usize) -> bool) -> Option<Self> {
        let mut lines = stat.lines().map_while(|line| line.strip_prefix("cpu")?.split_once(' '));
        let (_, machine) = lines.next()?;
        let of_cores = lines.filter(|(core, _)| core.parse().is_ok_and(&ours));
        let sum = of_cores.map(|(_, ticks)| Self::of_line(ticks)).try_fold(None, |sum: Option<Self>, core| {
            let (sum, core) = (sum.unwrap_or_default(), core?);
            Some(Some(Self { busy: sum.busy + core.busy, steal: sum.steal + core.steal }))
        })?;
        sum.or_else(|| Self::of_line(machine))
    }

    fn of_line(ticks: &str) -> Option<Self> {
        let ticks: Vec<u64> = ticks.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let [user, nice, system, _idle, _waiting, interrupts, soft, steal, ..] = ticks[..] else { return None };
        let busy = user + nice + system + interrupts + soft;
        Some(Self { busy, steal })
    }
}

/// CPU time of this process; 0 if the system does not report it.
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
        let cores = "cpu0 1 0 2 90 0 0 0 7 0 0\ncpu1 4 0 0 10 0 1 1 8 0 0\ncpu12 5 0 0 0 0 0 0 65 0 0\nintr 5 6\n";
        let stat = format!("cpu  10 20 30 400 5 6 7 80 3 0\n{cores}");
        let parsed = |stat: &str, ours: &[usize]| {
            CoreTimes::parse(stat, |core| ours.contains(&core)).map(|times| (times.busy, times.steal))
        };
        assert_eq!(parsed(&stat, &[0, 1]), Some((9, 15)));
        assert_eq!(parsed(&stat, &[12]), Some((5, 65)));
        assert_eq!(parsed(&stat, &[]), Some((73, 80)), "no core is known");
        assert_eq!(parsed("cpu  1 2 3\n", &[]), None);
        assert_eq!(parsed("cpu  1 2 3 4 5 6 7 8 9\ncpu0 1 2\n", &[0]), None);
        assert_eq!(parsed("", &[]), None);
    }

    #[test]
    fn a_quiet_machine_is_not_accused_and_loads_are_told_in_cores() {
        let load = |others, steal| SystemLoad { others, steal };
        assert_eq!(load(Some(0.01), Some(0.02)).words(), "other processes took 0.0 cores");
        assert_eq!(load(Some(1.46), Some(0.31)).words(), "other processes took 1.5 cores, the hypervisor 0.3");
        assert_eq!(load(None, None).words(), "the load by other processes is unknown");
        let mean = SystemLoad::mean(&[load(Some(1.0), None), load(Some(2.0), Some(0.5))]);
        assert_eq!(mean, load(Some(1.5), Some(0.5)));
        // A busy loop of this process does not count as other load.
        let probe = SystemLoadProbe::start();
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {}
        let cores = std::thread::available_parallelism().unwrap().get() as f64;
        assert!(probe.cores().others.is_none_or(|others| (0.0..=cores).contains(&others)));
    }
}
