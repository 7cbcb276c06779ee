//! What else kept the machine busy while a run lasted: `/proc/stat`, less this process's own time.

use std::time::{Duration, Instant};

/// Ticks a second in `/proc/stat`.
const TICKS_PER_S: f64 = 100.0;

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
    fn a_quiet_machine_is_not_accused_and_loads_are_told_in_cores() {
        let load = |others, steal| SystemLoad { others, steal };
        assert_eq!(load(Some(0.01), Some(0.02)).words(), "other processes took 0.0 cores");
        assert_eq!(load(Some(1.46), Some(0.31)).words(), "other processes took 1.5 cores, the hypervisor 0.3");
        assert_eq!(load(None, None).words(), "the load by other processes is unknown");
        let mean = SystemLoad::mean(&[load(Some(1.0), None), load(Some(2.0), Some(0.5))]);
        assert_eq!(mean, load(Some(1.5), Some(0.5)));
        // A busy loop of this process is not another's.
        let probe = SystemLoadProbe::start();
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {}
        let cores = std::thread::available_parallelism().unwrap().get() as f64;
        assert!(probe.cores().others.is_none_or(|others| (0.0..=cores).contains(&others)));
    }
}
