//! Online verdict on a run, in constant memory.
//!
//! With [priorities](crate::query::Priorities) the objective must hold for the queries of each of them. The number of late
//! queries of the run is then that of the worst priority, divided by the share of its queries: the objective allows it
//! exactly if it allows the late queries of each priority.

use crate::base::stats::{drift_of_means, significant};
use crate::base::time::Nanos;
use crate::lab::{Criterion, Objective, Verdict};
use crate::query::Priorities;
use crate::sched::{LogRow, ShedJob, Sink};

/// Number of stretches in the second half of a run; growth shows in their mean delays.
const STRETCHES: usize = 10;
/// Significance level for a positive slope of the delays.
const SIGNIFICANCE: f64 = 0.01;
/// Extrapolation horizon in limits; slower growth is ignored.
pub(super) const LIMITS_AHEAD: f64 = 100.0;

/// Counts late queries, and keeps mean delays per stretch. A dropped query is late and has missed its deadline.
#[derive(Clone, Debug)]
pub struct Judge {
    criterion: Criterion,
    planned: usize,
    /// Number of queries that finished or were dropped.
    ended: usize,
    /// Number of queries without an answer when the run ended.
    unanswered: usize,
    /// Number of late queries among all that were sent.
    late: usize,
    missed: usize,
    /// By stretch, the sum of delays in nanoseconds and their number.
    stretches: [(f64, u32); STRETCHES],
    /// The priorities of the queries; empty if all are alike.
    levels: Vec<Level>,
    /// Index of the first query in the second half.
    half: usize,
    stretch_a_query: f64,
}

/// The queries of one priority.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Delays after which a query is late, and after which it has missed its deadline.
    limit: Nanos,
    allowance: Nanos,
    share: f64,
    late: usize,
}

impl Judge {
    /// A judge of a run with `planned` queries.
    #[must_use]
    pub fn new(criterion: Criterion, planned: usize) -> Self {
        let half = planned / 2;
        let stretch_a_query = STRETCHES as f64 / (planned - half).max(1) as f64;
        let stretches = [(0.0, 0); STRETCHES];
        let (levels, ended, unanswered, late, missed) = (Vec::new(), 0, 0, 0, 0);
        Self { criterion, planned, ended, unanswered, late, missed, stretches, levels, half, stretch_a_query }
    }

    /// A judge that applies the criterion to the queries of each priority, with its own deadline.
    #[must_use]
    pub fn with_priorities(criterion: Criterion, planned: usize, priorities: Option<&Priorities>) -> Self {
        let mut judge = Self::new(criterion, planned);
        let Some(priorities) = priorities else { return judge };
        let own = match criterion.objective {
            Objective::Percentile { within, .. } => within,
            _ => None,
        };
        judge.levels = priorities
            .levels()
            .iter()
            .map(|level| Level {
                limit: own.unwrap_or(level.allowance),
                allowance: level.allowance,
                share: level.share.unwrap_or(1.0),
                late: 0,
            })
            .collect();
        judge.criterion.limit = judge.limit();
        judge
    }

    /// The delay after which every query is late, whatever its priority.
    pub(in crate::lab) fn limit(&self) -> Nanos {
        self.levels.iter().map(|level| level.limit).max().unwrap_or(self.criterion.limit)
    }

    /// Counts a query by its delay.
    #[inline(always)]
    fn count(&mut self, priority: u8, delay: Nanos) {
        if self.levels.is_empty() {
            self.late += usize::from(delay > self.criterion.limit);
            self.missed += usize::from(delay > self.criterion.deadline);
            return;
        }
        self.count_of_level(priority, delay);
    }

    #[inline(never)]
    fn count_of_level(&mut self, priority: u8, delay: Nanos) {
        let Some(level) = self.levels.get_mut(usize::from(priority)) else { return };
        self.missed += usize::from(delay > level.allowance);
        if delay > level.limit {
            level.late += 1;
            self.late = self.late.max(significant(level.late as f64 / level.share, 12) as usize);
        }
    }

    /// Adds a query without an answer when the run ended. It is late if its age exceeds the limit.
    pub fn unanswered(&mut self, priority: u8, age: Nanos) {
        self.unanswered += 1;
        self.count(priority, age);
    }

    /// Whether too many queries are late, including `overdue` unanswered ones.
    #[must_use]
    pub fn is_lost(&self, overdue: usize) -> bool {
        self.late + overdue > self.criterion.allowed(self.planned)
    }

    /// The verdict on the run; its arrivals had the rate `rate_qps`.
    #[must_use]
    pub fn verdict(&self, rate_qps: f64) -> Verdict {
        Verdict {
            planned: self.planned,
            sent: self.ended + self.unanswered,
            is_cut_short: self.ended < self.planned,
            late: self.late,
            allowed: self.criterion.allowed(self.planned),
            missed: self.missed,
            grows: self.grows(rate_qps),
        }
    }

    /// Numbers of late and of timely queries so far.
    pub(super) fn late_and_not(&self) -> (usize, usize) {
        (self.late, self.ended.saturating_sub(self.late))
    }

    fn grows(&self, rate_qps: f64) -> bool {
        if self.stretches.iter().any(|&(_, count)| count == 0) {
            return false;
        }
        let means: Vec<f64> = self.stretches.iter().map(|&(sum, count)| sum / f64::from(count)).collect();
        let Some(drift) = drift_of_means(&means) else { return false };
        let seen_s = (STRETCHES - 1) as f64 / self.stretch_a_query / rate_qps;
        let limit = self.criterion.limit;
        drift.reaches(limit.0 as f64, LIMITS_AHEAD * limit.as_secs() / seen_s, SIGNIFICANCE)
    }
}

impl Sink for Judge {
    // Inlining lets the compiler skip unused fields of the row.
    #[inline(always)]
    fn record(&mut self, row: &LogRow) {
        let delay = row.delay();
        self.ended += 1;
        self.count(row.priority, delay);
        if let Some(after) = row.job.index().checked_sub(self.half) {
            let stretch = ((after as f64 * self.stretch_a_query) as usize).min(STRETCHES - 1);
            let (sum, count) = &mut self.stretches[stretch];
            *sum += delay.0 as f64;
            *count += 1;
        }
    }

    fn shed(&mut self, job: &ShedJob) {
        self.ended += 1;
        if self.levels.is_empty() {
            self.late += 1;
            self.missed += 1;
        } else {
            self.count_of_level(job.priority, Nanos::MAX);
        }
    }
}

/// Arrivals that are not yet overdue. They let a run end as soon as it has failed, before its last query has finished.
///
/// An arrival older than the limit is late unless it finished in time. At high rates only every n-th arrival is stored,
/// which delays detection slightly.
#[derive(Clone, Debug)]
pub(super) struct Overdue {
    pending: std::collections::VecDeque<Nanos>,
    /// Number of arrivals per stored one.
    stride: usize,
    /// Arrivals since the last stored one.
    since: usize,
    due: usize,
}

/// Most stored arrivals within a limit.
const REMEMBERED: f64 = 65_536.0;

impl Overdue {
    /// An empty queue for arrivals at this rate.
    pub(super) fn new(rate_qps: f64, limit: Nanos) -> Self {
        let stride = (rate_qps * limit.as_secs() / REMEMBERED).ceil().max(1.0) as usize;
        Self { pending: std::collections::VecDeque::new(), stride, since: 0, due: 0 }
    }

    #[inline]
    pub(super) fn arrive(&mut self, at: Nanos) {
        self.since += 1;
        if self.since == self.stride {
            self.since = 0;
            self.pending.push_back(at);
        }
    }

    /// A lower bound on the arrivals that are older than `limit` at `now`.
    #[inline]
    pub(super) fn due(&mut self, now: Nanos, limit: Nanos) -> usize {
        while self.pending.front().is_some_and(|&arrival| arrival + limit < now) {
            self.pending.pop_front();
            self.due += self.stride;
        }
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::{JobId, ProcessorId, QueryId};
    use crate::base::machine::{Class, PerClass};
    use crate::lab::Objective;

    fn row(job: u32, arrival: u64, delay: u64) -> LogRow {
        LogRow {
            job: JobId(job),
            query: QueryId(0),
            arrival: Nanos(arrival),
            released: Nanos(arrival),
            started: Nanos(arrival),
            finished: Nanos(arrival + delay),
            processor: ProcessorId(0),
            class: Class::CPU,
            batch: job,
            deadline: Nanos(arrival + 1000),
            priority: 0,
            predicted: PerClass::default(),
            stolen: false,
            again: false,
            lanes: 1,
            helped: Nanos::ZERO,
        }
    }

    fn judged(delays: impl IntoIterator<Item = u64>, planned: usize) -> Verdict {
        let criterion = Objective::Percentile { share: 0.9, within: Some(Nanos(500)) }.within(Nanos(1000));
        let mut judge = Judge::new(criterion, planned);
        (0..).zip(delays).for_each(|(job, delay)| judge.record(&row(job, u64::from(job) * 10, delay)));
        judge.verdict(1e8)
    }

    #[test]
    fn late_missed_and_unanswered_queries_are_told_apart() {
        let verdict = judged((0..100).map(|i| if i < 8 { 600 } else { 100 }), 100);
        assert_eq!((verdict.late, verdict.missed, verdict.allowed, verdict.holds()), (8, 0, 10, true));
        let verdict = judged((0..100).map(|i| if i < 11 { 1600 } else { 100 }), 100);
        assert_eq!((verdict.late, verdict.missed, verdict.holds()), (11, 11, false));
        assert_eq!(verdict.words(), "missed: 11 % late");
    }

    #[test]
    fn the_objective_holds_for_each_priority_or_not_at_all() {
        let priorities = Priorities::from_text("a=1us:0.8,b=100us:0.2").unwrap();
        let verdict = |late: [u32; 2]| {
            let criterion = Objective::Percentile { share: 0.9, within: None }.within(Nanos(100_000));
            let mut judge = Judge::with_priorities(criterion, 100, Some(&priorities));
            for job in 0..100 {
                // Every fifth query is of the second priority, so that the mean delay does not change.
                let (priority, number) = if job % 5 == 0 { (1, job / 5) } else { (0, job - job / 5 - 1) };
                let limit = [1000, 100_000][priority];
                let delay = if number < late[priority] { limit + 1 } else { limit };
                judge.record(&LogRow { priority: priority as u8, ..row(job, 0, delay) });
            }
            judge.verdict(1e8)
        };
        // Of the 80 important queries 8 may be late, of the 20 others 2.
        for (late, holds) in [([8, 2], true), ([9, 0], false), ([0, 3], false), ([0, 0], true)] {
            let verdict = verdict(late);
            assert_eq!(verdict.holds(), holds, "{late:?}: {verdict:?}");
            assert_eq!(verdict.missed as u32, late[0] + late[1]);
        }
        assert_eq!(verdict([0, 3]).words(), "missed: 15 % late");
    }

    #[test]
    fn a_run_that_was_cut_short_is_undecided_unless_it_is_lost_already() {
        let criterion = Objective::Percentile { share: 0.9, within: Some(Nanos(500)) }.within(Nanos(1000));
        let cut_short = |late: u32, ages: &[u64]| {
            let mut judge = Judge::new(criterion, 100);
            (0..40).for_each(|job| judge.record(&row(job, u64::from(job) * 10, if job < late { 600 } else { 100 })));
            ages.iter().for_each(|&age| judge.unanswered(0, Nanos(age)));
            judge.verdict(1e8)
        };
        // Unanswered queries count with their age; queries that were never sent do not count.
        let verdict = cut_short(9, &[100, 501]);
        assert_eq!((verdict.sent, verdict.late, verdict.allowed), (42, 10, 10));
        assert!(verdict.is_undecided() && !verdict.holds(), "{verdict:?}");
        assert_eq!(verdict.words(), "undecided: cut short");
        // Ten of a hundred may be late, and eleven already are.
        let verdict = cut_short(9, &[501, 1001]);
        assert_eq!((verdict.late, verdict.missed), (11, 1));
        assert!(!verdict.is_undecided() && !verdict.holds(), "{verdict:?}");
        assert_eq!(verdict.words(), "missed: 26 % late");
    }

    #[test]
    fn a_backlog_that_would_reach_the_limit_does_not_hold_though_nobody_is_late_yet() {
        // Delays rise from 0 to 200 ns of a limit of 500 ns within 10 us; the horizon is 50 us.
        let verdict = judged((0..1000).map(|i| i / 5), 1000);
        assert!(verdict.late == 0 && verdict.grows && !verdict.holds(), "{verdict:?}");
        assert_eq!(verdict.words(), "missed: still growing");
        // At a hundredth of the slope, the limit is beyond the horizon.
        let slowly = judged((0..1000).map(|i| 100 + i / 500), 1000);
        assert!(slowly.holds(), "{slowly:?}");
        let level = judged((0..1000).map(|i| 100 + i % 7), 1000);
        assert!(level.holds(), "{level:?}");
    }

    #[test]
    fn overdue_arrivals_are_counted_and_never_too_many() {
        for limit in [Nanos(100), Nanos(1_000_000)] {
            let mut overdue = Overdue::new(1e12, limit);
            (0..2_000_000).for_each(|at| overdue.arrive(Nanos(at)));
            let now = Nanos(limit.0 + 5000);
            let due = overdue.due(now, limit);
            assert!(due <= 5000 && due + overdue.stride > 5000, "{due}, stride {}", overdue.stride);
            assert!(overdue.pending.len() <= 2_000_000);
        }
    }
}
