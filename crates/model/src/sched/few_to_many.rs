//! `few-to-many`: a query starts on few lanes and gets one more after each interval for which it still runs.
//!
//! Short queries end before they get helpers, so that helpers go to long ones, and no prediction is needed. The intervals follow
//! from the profile of the workload, one schedule for each number of queries in the machine:
//!
//! ```text
//!   a schedule       starts on d lanes, then one more after every t
//!   its lanes        mean over queries of (lanes · time) / mean time      the work that it takes
//!   its tail         99th percentile of the time of a query
//!   q queries        of all schedules with  q · lanes ≤ lanes of the machine  the one with the least tail, then the least lanes
//! ```
//!
//! The source searches vectors of intervals; one interval for all steps gives nearly the same tails with 200 schedules.
//!
//! Source: Haque, Eom, He, Elnikety, Bianchini, McKinley, "Few-to-Many: Incremental Parallelism for Reducing Tail Latency in
//! Interactive Services", ASPLOS 2015.

use super::registry::PolicyEntry;
use super::sharing::{Busy, Rule, Shared, Sharing};
use crate::base::machine::Class;
use crate::base::time::Nanos;
use crate::cost::{MachineModel, Parallelism};

pub(super) const ENTRY: PolicyEntry = PolicyEntry::sharing(
    "few-to-many",
    "A query gets one more CPU worker after each interval for which it still runs",
    |setup| Ok(Box::new(Sharing::new(FewToMany::new(setup.model), setup.model)?)),
);

/// Number of intervals that are tried, as quantiles of the times of queries.
const INTERVALS: usize = 24;
const TAIL: f64 = 0.99;

/// A number of lanes at the start, and the time after which each further one joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Schedule {
    pub(super) first: u32,
    pub(super) interval: Option<Nanos>,
}

impl Schedule {
    const ONE_LANE: Self = Self { first: 1, interval: None };

    /// When a job of this schedule may have one more lane.
    pub(super) fn next_lane_at(self, job: &Shared) -> Option<Nanos> {
        let steps = u64::from((job.lanes + 1).saturating_sub(self.first));
        Some(job.started + Nanos(self.interval?.0.saturating_mul(steps)))
    }

    /// The time of a query that takes `alone` on one of `lanes` lanes, and the lane time that it occupies.
    fn play(self, alone: Nanos, lanes: u32, parallelism: &Parallelism) -> (f64, f64) {
        let (mut left, mut time, mut occupied) = (alone.as_us(), 0.0, 0.0);
        for degree in self.first..=lanes {
            let speed = parallelism.speed_up.of(alone, degree);
            let end = left / speed;
            let step = match self.interval {
                Some(interval) if degree < lanes => interval.as_us().min(end),
                _ => end,
            };
            time += step;
            occupied += step * f64::from(degree);
            left -= step * speed;
            if step == end {
                break;
            }
        }
        (time, occupied)
    }
}

#[derive(Clone, Debug)]
pub(super) struct FewToMany {
    /// The schedule by the number of jobs in the machine, from 1; more jobs than entries run on one lane each.
    by_jobs: Vec<Schedule>,
}

impl FewToMany {
    pub(super) fn new(model: &MachineModel) -> Self {
        let lanes = model.machine.count(Class::CPU) as u32;
        let Some(parallelism) = model.parallelism.as_deref().filter(|found| !found.times.is_empty()) else {
            return Self { by_jobs: Vec::new() };
        };
        let intervals: Vec<Nanos> = (0..INTERVALS).map(|i| parallelism.quantile(i as f64 / INTERVALS as f64)).collect();
        let with = |first| {
            [None]
                .into_iter()
                .chain(intervals.iter().copied().map(Some))
                .map(move |interval| Schedule { first, interval })
        };
        let schedules: Vec<(f64, f64, Schedule)> =
            (1..=lanes).flat_map(with).map(|schedule| rated(schedule, lanes, parallelism)).collect();
        let best = |jobs: u32| {
            let fits = schedules.iter().filter(|(_, mean_lanes, _)| f64::from(jobs) * mean_lanes <= f64::from(lanes));
            fits.min_by(|a, b| (a.0, a.1).partial_cmp(&(b.0, b.1)).unwrap_or(std::cmp::Ordering::Equal))
        };
        Self { by_jobs: (1..=lanes).map(|jobs| best(jobs).map_or(Schedule::ONE_LANE, |found| found.2)).collect() }
    }

    pub(super) fn schedule(&self, busy: Busy) -> Schedule {
        self.by_jobs.get(busy.jobs.saturating_sub(1)).copied().unwrap_or(Schedule::ONE_LANE)
    }
}

/// The tail of a schedule, the lanes that a query occupies in the mean while it runs, and the schedule.
fn rated(schedule: Schedule, lanes: u32, parallelism: &Parallelism) -> (f64, f64, Schedule) {
    let played: Vec<(f64, f64)> =
        parallelism.times.iter().map(|&alone| schedule.play(alone, lanes, parallelism)).collect();
    let (time, occupied) = played.iter().fold((0.0, 0.0), |sum, played| (sum.0 + played.0, sum.1 + played.1));
    let mut times: Vec<f64> = played.iter().map(|played| played.0).collect();
    times.sort_by(f64::total_cmp);
    let tail = times[((TAIL * times.len() as f64) as usize).min(times.len() - 1)];
    (tail, if time > 0.0 { occupied / time } else { 1.0 }, schedule)
}

impl Rule for FewToMany {
    fn name(&self) -> &'static str {
        ENTRY.name
    }

    fn at_start(&self, _predicted: Nanos, busy: Busy) -> u32 {
        self.schedule(busy).first
    }

    fn next_lane_at(&self, job: &Shared, busy: Busy) -> Option<Nanos> {
        self.schedule(busy).next_lane_at(job)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::base::machine::Machine;
    use crate::cost::SpeedUp;

    fn rule(times: Vec<Nanos>, by_lanes: Vec<f64>) -> FewToMany {
        let parallelism = Some(Arc::new(Parallelism::of(SpeedUp::of_all(by_lanes), times)));
        FewToMany::new(&MachineModel { parallelism, ..Machine::new(4, 0).into() })
    }

    #[test]
    fn lone_queries_get_all_lanes_and_full_machines_give_one() {
        // From 10 us to 3.6 ms, each 3 % longer than the one before.
        let times = std::iter::successors(Some(Nanos::from_us(10.0)), |time| Some(time.scaled(1.03)));
        let rule = rule(times.take(200).collect(), vec![1.0, 1.9, 2.7, 3.4]);
        let at = |jobs| rule.schedule(Busy { jobs, lanes: 4 });
        assert_eq!(at(1).first, 4, "{rule:?}");
        assert_eq!((at(4), at(9)), (Schedule::ONE_LANE, Schedule::ONE_LANE));
        // With two queries the short ones stay on few lanes, and the long ones get more.
        assert!(at(2).first < 4 && at(2).interval.is_some(), "{rule:?}");
    }

    #[test]
    fn queries_that_take_no_time_occupy_one_lane() {
        let parallelism = Parallelism::of(SpeedUp::of_all(vec![1.0, 1.9]), vec![Nanos::ZERO]);
        let (tail, lanes, _) = rated(Schedule::ONE_LANE, 4, &parallelism);
        assert_eq!((tail, lanes), (0.0, 1.0));
    }

    #[test]
    fn what_gains_nothing_runs_on_one_lane() {
        let rule = rule(vec![Nanos(1000); 50], vec![1.0]);
        assert!((1..9).all(|jobs| rule.schedule(Busy { jobs, lanes: 4 }).first == 1), "{rule:?}");
    }

    #[test]
    fn a_schedule_adds_up_the_work_of_its_steps() {
        let parallelism = Parallelism::of(SpeedUp::of_all(vec![1.0, 2.0, 3.0]), vec![Nanos(1)]);
        let schedule = Schedule { first: 1, interval: Some(Nanos::from_us(10.0)) };
        // 10 us alone, 10 us on two lanes, and the remaining 30 us of work on three.
        assert_eq!(schedule.play(Nanos::from_us(60.0), 3, &parallelism), (30.0, 60.0));
        assert_eq!(schedule.play(Nanos::from_us(5.0), 3, &parallelism), (5.0, 5.0));
    }
}
