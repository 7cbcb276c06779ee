//! Pauses of cores: moments in which the machine, or the host below it, runs something else on them.
//!
//! A pause depends on time, not on the number of batches or rounds. It is therefore kept apart from their ratios, together
//! with its time, and the simulator plays it in time:
//!
//! ```text
//!   observed   core 0  ----##------------      core 0 runs the dispatcher, then come the cores of GPU and CPU lanes
//!              core 1  ----##-----#------      a pause of the whole machine hits all cores at once
//!   played     lap 0: from a random moment on, as a ring; lap 1: from another; all cores of a node from the same moments
//! ```
//!
//! Work that meets a pause ends later by the length of the pause, and work that would begin in a pause begins after it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::random::{NodeSeed, Purpose};
use crate::base::time::Nanos;

/// The shortest pause. Shorter ones are part of the ratios of batches and rounds.
pub const LEAST_PAUSE: Nanos = Nanos(20_000);

/// Observed pauses of cores that were busy all the time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pauses {
    /// Duration of the observation, in microseconds.
    pub observed_us: u32,
    /// By core, the dispatcher's first, then those of GPU lanes, then those of CPU lanes: start and duration of each pause in
    /// microseconds, ascending.
    pub cores: Vec<Vec<(u32, u32)>>,
    /// The same while one more core was left free, to which a system moves its own work; empty if it was not observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cores_beside_free: Vec<Vec<(u32, u32)>>,
}

impl Pauses {
    /// The pauses on a machine with a dispatcher and this number of lanes.
    pub(super) fn with_lanes(&self, lanes: usize) -> Self {
        let is_one_free = lanes + 1 < self.cores.len() && !self.cores_beside_free.is_empty();
        let cores = if is_one_free { &self.cores_beside_free } else { &self.cores };
        Self { observed_us: self.observed_us, cores: cores.clone(), cores_beside_free: Vec::new() }
    }

    /// The share of their time that cores lost, the number of pauses per core and second, and the longest pause.
    #[must_use]
    pub fn summary(&self) -> (f64, f64, Nanos) {
        let core_us = f64::from(self.observed_us.max(1)) * self.cores.len().max(1) as f64;
        let all = || self.cores.iter().flatten().map(|&(_, lasts)| lasts);
        let lost: f64 = all().map(f64::from).sum();
        (lost / core_us, all().count() as f64 / core_us * 1e6, Nanos(u64::from(all().max().unwrap_or(0)) * 1000))
    }

    pub(super) fn check(&self) -> Result<(), String> {
        self.check_cores("cores", &self.cores)?;
        self.check_cores("cores_beside_free", &self.cores_beside_free)
    }

    fn check_cores(&self, name: &str, cores: &[Vec<(u32, u32)>]) -> Result<(), String> {
        for (i, core) in cores.iter().enumerate() {
            let (mut least, mut lost) = (0, 0);
            for (j, &(start, lasts)) in core.iter().enumerate() {
                if start < least || start >= self.observed_us {
                    let end = self.observed_us;
                    return Err(format!(
                        "{name}[{i}][{j}] starts at {start}, expected {least} or more and below {end}"
                    ));
                }
                least = start.saturating_add(lasts);
                lost += u64::from(lasts);
            }
            // Work on a core that never runs would not end.
            if lost > 0 && lost >= u64::from(self.observed_us) {
                return Err(format!("{name}[{i}] pauses for {lost} us, expected less than observed_us"));
            }
        }
        Ok(())
    }
}

/// The pauses of a core in a run.
#[derive(Clone, Debug)]
pub struct PauseClock {
    pauses: Arc<Pauses>,
    core: usize,
    seed: NodeSeed,
    /// The pauses of this lap that are still to come, the next one's place, and the moment at which the lap starts.
    left: usize,
    at: usize,
    lap: u32,
    shift: u64,
    /// The next pause that may matter; it never starts if there are none.
    next: (Nanos, Nanos),
}

impl PauseClock {
    /// The pauses of a core, counted as in [`Pauses::cores`]. Cores beyond the observed ones repeat these.
    #[must_use]
    pub fn new(pauses: &Arc<Pauses>, core: usize, seed: NodeSeed) -> Self {
        let core = core % pauses.cores.len().max(1);
        let mut clock = Self {
            pauses: Arc::clone(pauses),
            core,
            seed,
            left: 0,
            at: 0,
            lap: 0,
            shift: 0,
            next: (Nanos::MAX, Nanos::MAX),
        };
        if !clock.of_core().is_empty() {
            clock.start_lap(0);
            clock.advance();
        }
        clock
    }

    /// The end of work that may begin at `begin` and takes `work` on a core without pauses. `begin` must not decrease.
    #[inline]
    pub fn end_of(&mut self, begin: Nanos, work: Nanos) -> Nanos {
        let end = begin + work;
        if end <= self.next.0 { end } else { self.end_after_pauses(begin, work) }
    }

    #[cold]
    fn end_after_pauses(&mut self, mut at: Nanos, mut left: Nanos) -> Nanos {
        loop {
            let (start, end) = self.next;
            if at + left <= start {
                return at + left;
            }
            if end > at {
                left = left.since(start.since(at));
                at = end;
            }
            self.advance();
        }
    }

    fn of_core(&self) -> &[(u32, u32)] {
        self.pauses.cores.get(self.core).map_or(&[], Vec::as_slice)
    }

    fn start_lap(&mut self, lap: u32) {
        let mut random = self.seed.stream(Purpose::Pauses, lap % NodeSeed::MAX_LANES);
        self.shift = u64::from(random.below(self.pauses.observed_us.max(1)));
        let (shift, pauses) = (self.shift, self.of_core());
        let first = pauses.partition_point(|&(start, _)| u64::from(start) < shift);
        let len = pauses.len();
        (self.lap, self.at, self.left) = (lap, first % len, len);
    }

    fn advance(&mut self) {
        if self.left == 0 {
            self.start_lap(self.lap + 1);
        }
        let (start, lasts) = self.of_core()[self.at];
        let length = u64::from(self.pauses.observed_us);
        let in_lap = (u64::from(start) + length - self.shift) % length;
        let start = Nanos((u64::from(self.lap) * length + in_lap) * 1000);
        self.next = (start, start + Nanos(u64::from(lasts) * 1000));
        (self.at, self.left) = ((self.at + 1) % self.of_core().len(), self.left - 1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn clock(cores: Vec<Vec<(u32, u32)>>, core: usize, seed: u64) -> PauseClock {
        PauseClock::new(
            &Arc::new(Pauses { observed_us: 1000, cores, ..Pauses::default() }),
            core,
            NodeSeed { seed, node: 0 },
        )
    }

    /// The pauses of the first laps, as (start, end) in microseconds: work that would take no time shows each.
    fn played(mut clock: PauseClock, laps: u64) -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        for us in 0..laps * 1000 {
            let end = clock.end_of(Nanos(us * 1000), Nanos::ZERO).0 / 1000;
            if end > us && found.last().is_none_or(|&(_, last)| last < end) {
                found.push((us, end));
            }
        }
        found
    }

    #[test]
    fn work_ends_later_by_the_pauses_that_it_meets() {
        let mut clock = clock(vec![vec![(100, 50), (300, 20)]], 0, 1);
        let first = clock.next;
        assert_eq!(clock.end_of(Nanos::ZERO, first.0), first.0);
        let lasts = first.1.since(first.0);
        // Work that begins in a pause begins after it.
        assert_eq!(clock.end_of(first.0 + Nanos(1), Nanos(7)), first.1 + Nanos(7));
        // Three laps of work meet three times both pauses, less the one before.
        let all = clock.end_of(first.1, Nanos(3_000_000 - lasts.0)).since(first.1);
        let times = (all.0 - 3_000_000 + lasts.0) / 1000;
        assert!((140..=280).contains(&times), "{times}");
        let mut none = PauseClock::new(&Arc::default(), 3, NodeSeed::default());
        assert_eq!(none.end_of(Nanos(5), Nanos(6)), Nanos(11));
    }

    #[test]
    fn cores_of_one_node_pause_together() {
        let cores = vec![vec![(100, 50)], vec![(100, 50), (700, 5)]];
        let (first, second) = (played(clock(cores.clone(), 0, 1), 5), played(clock(cores.clone(), 1, 1), 5));
        assert!(first.len() >= 4);
        assert!(first.iter().all(|pause| second.contains(pause)), "{first:?}, {second:?}");
        assert_ne!(first, played(clock(cores.clone(), 0, 2), 5));
        // A third core repeats the first.
        assert_eq!(first, played(clock(cores, 2, 1), 5));
    }

    #[test]
    fn a_free_core_selects_its_observed_pauses() {
        let (full, free) = (vec![vec![(1, 9)]; 4], vec![vec![(1, 2)]; 3]);
        let pauses = Pauses { observed_us: 1000, cores: full.clone(), cores_beside_free: free.clone() };
        // The dispatcher has a core beside those of the lanes.
        assert_eq!([2, 3, 9].map(|lanes| pauses.with_lanes(lanes).cores), [free, full.clone(), full.clone()]);
        let unknown = Pauses { cores_beside_free: Vec::new(), ..pauses };
        assert_eq!(unknown.with_lanes(2).cores, full);
    }

    proptest! {
        #[test]
        fn as_much_time_is_lost_as_was_observed(seed in any::<u64>(), pauses in 1u32..8, lasts in 1u32..90) {
            let core: Vec<(u32, u32)> = (0..pauses).map(|i| (i * 125, lasts)).collect();
            let mut clock = clock(vec![core], 0, seed);
            let work = Nanos((1000 - u64::from(pauses * lasts)) * 1_000_000);
            let end = clock.end_of(Nanos::ZERO, work);
            // A thousand laps; pauses may overlap where one lap follows another.
            prop_assert!((end.as_secs() - 1.0).abs() < 0.15, "{end:?}");
        }
    }
}
