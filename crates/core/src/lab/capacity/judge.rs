//! Judging a run as its queries finish, in constant memory.

use crate::base::stats::drift_of_means;
use crate::base::time::Nanos;
use crate::lab::{Criterion, Verdict};
use crate::sched::{LogRow, ShedJob, Sink};

/// The second half of a run is cut into so many stretches, whose mean delays tell whether it grows.
const STRETCHES: usize = 10;
/// A slope counts if one as steep comes about by chance so seldom.
const SIGNIFICANCE: f64 = 0.01;
/// How far ahead, in limits: what grows so slowly that it is no matter in a run of a hundred limits, is none.
pub(super) const LIMITS_AHEAD: f64 = 100.0;

/// Counts the late queries of a run, and keeps the mean delays of its stretches. A query that is dropped is late, and has
/// missed its deadline.
#[derive(Clone, Debug)]
pub struct Judge {
    criterion: Criterion,
    planned: usize,
    /// Those that finished or were dropped,
    ended: usize,
    /// those that were sent and had no answer when the run ended,
    unanswered: usize,
    /// and of both: those that were late, or missed the deadline.
    late: usize,
    missed: usize,
    /// By stretch: the sum of delays, in nanoseconds, and how many there were.
    stretches: [(f64, u32); STRETCHES],
    /// The first query of the second half, and stretches a query.
    half: usize,
    stretch_a_query: f64,
}

impl Judge {
    /// Of a run of `planned` queries, of which none has finished.
    #[must_use]
    pub fn new(criterion: Criterion, planned: usize) -> Self {
        let half = planned / 2;
        let stretch_a_query = STRETCHES as f64 / (planned - half).max(1) as f64;
        let stretches = [(0.0, 0); STRETCHES];
        Self { criterion, planned, ended: 0, unanswered: 0, late: 0, missed: 0, stretches, half, stretch_a_query }
    }

    /// A query that was sent had no answer when the run ended, at this age: it counts as late if it is that by now.
    pub fn unanswered(&mut self, age: Nanos) {
        self.unanswered += 1;
        self.late += usize::from(age > self.criterion.limit);
        self.missed += usize::from(age > self.criterion.deadline);
    }

    /// Whether more are late than may be of all that are planned, if `overdue` that have no answer yet are.
    #[must_use]
    pub fn is_lost(&self, overdue: usize) -> bool {
        self.late + overdue > self.criterion.allowed(self.planned)
    }

    /// What the run came to, which arrived at `rate_qps`.
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

    /// Those that were late so far, and those that were not.
    pub(super) fn late_and_not(&self) -> (usize, usize) {
        (self.late, self.ended - self.late)
    }

    /// Those that missed their deadline so far, and those that did not.
    pub(super) fn missed_and_not(&self) -> (usize, usize) {
        (self.missed, self.ended - self.missed)
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
    // What is not looked at of a row need not be made.
    #[inline(always)]
    fn record(&mut self, row: &LogRow) {
        let delay = row.delay();
        self.ended += 1;
        self.late += usize::from(delay > self.criterion.limit);
        self.missed += usize::from(delay > self.criterion.deadline);
        if let Some(after) = row.job.index().checked_sub(self.half) {
            let stretch = ((after as f64 * self.stretch_a_query) as usize).min(STRETCHES - 1);
            let (sum, count) = &mut self.stretches[stretch];
            *sum += delay.0 as f64;
            *count += 1;
        }
    }

    fn shed(&mut self, _job: &ShedJob) {
        self.ended += 1;
        self.late += 1;
        self.missed += 1;
    }
}

/// What arrived when, for as long as it is not overdue: so that a run is given up when it is lost, not when its last
/// query has finished.
///
/// Of the arrivals that are more than a limit ago, those that have not finished in time are late, finished or not. Beyond
/// a number of arrivals it remembers every second, fourth... of them, which only makes it notice later.
#[derive(Clone, Debug)]
pub(super) struct Overdue {
    pending: std::collections::VecDeque<Nanos>,
    /// Arrivals for each that is remembered.
    stride: usize,
    /// Arrivals since the last that was remembered.
    since: usize,
    due: usize,
}

/// So many arrivals within a limit are remembered.
const REMEMBERED: f64 = 65_536.0;

impl Overdue {
    /// Of arrivals at this rate.
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

    /// How many have arrived more than `limit` before `now`: at least this.
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
            predicted: PerClass::default(),
            stolen: false,
            again: false,
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
    fn a_run_that_was_cut_short_is_undecided_unless_it_is_lost_already() {
        let criterion = Objective::Percentile { share: 0.9, within: Some(Nanos(500)) }.within(Nanos(1000));
        let cut_short = |late: u32, ages: &[u64]| {
            let mut judge = Judge::new(criterion, 100);
            (0..40).for_each(|job| judge.record(&row(job, u64::from(job) * 10, if job < late { 600 } else { 100 })));
            ages.iter().for_each(|&age| judge.unanswered(Nanos(age)));
            judge.verdict(1e8)
        };
        // Unanswered queries have at least their age. Of those that were never sent nothing is known.
        let verdict = cut_short(9, &[100, 501]);
        assert_eq!((verdict.sent, verdict.late, verdict.allowed), (42, 10, 10));
        assert!(verdict.is_undecided() && !verdict.holds(), "{verdict:?}");
        assert_eq!(verdict.words(), "undecided: cut short");
        // Ten of a hundred may be late, and eleven are, whatever would have come.
        let verdict = cut_short(9, &[501, 1001]);
        assert_eq!((verdict.late, verdict.missed), (11, 1));
        assert!(!verdict.is_undecided() && !verdict.holds(), "{verdict:?}");
        assert_eq!(verdict.words(), "missed: 26 % late");
    }

    #[test]
    fn a_backlog_that_would_reach_the_limit_does_not_hold_though_nobody_is_late_yet() {
        // From 0 to 200 ns while a limit is 500: ten microseconds of run, and fifty microseconds ahead.
        let verdict = judged((0..1000).map(|i| i / 5), 1000);
        assert!(verdict.late == 0 && verdict.grows && !verdict.holds(), "{verdict:?}");
        assert_eq!(verdict.words(), "missed: still growing");
        // A hundredth of the slope takes longer to get there than anybody looks.
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
