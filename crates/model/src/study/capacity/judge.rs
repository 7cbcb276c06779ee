//! Online verdict on a run, in constant memory.
//!
//! With [priorities](crate::traffic::Priorities) the objective must hold for the queries of each of them. The number of late
//! queries of the run is then that of the worst priority, divided by the share of its queries: the objective allows it
//! exactly if it allows the late queries of each priority.

use super::stationary::Parts;
use crate::base::histogram::Histogram;
use crate::base::stats::{Drift, significant};
use crate::base::time::Nanos;
use crate::sched::{LogRow, ShedJob, Sink};
use crate::study::objective::MOST_BOUNDS;
use crate::study::{Bound, Criterion, Unsteady, Verdict};
use crate::traffic::{Priorities, Priority};

/// Delays that are counted together: the buckets of several come from memory at once, and a run takes up to a fifth less time.
const FRESH: usize = 64;

/// By bound of the objective.
pub(super) type ByBound<T> = [T; MOST_BOUNDS];

/// Counts late queries and delays, and tells whether they grow. A dropped query is late and has missed its deadline.
#[derive(Clone, Debug)]
pub struct Judge {
    criterion: Criterion,
    planned: usize,
    /// Number of queries that finished or were dropped.
    ended: usize,
    /// Number of queries without an answer when the run ended.
    unanswered: usize,
    /// Numbers of late queries among all that were sent.
    late: ByBound<usize>,
    /// Delays after which a query is late.
    limits: ByBound<Nanos>,
    /// Numbers of late queries that the objective allows.
    allowed: ByBound<usize>,
    missed: usize,
    /// The priorities of the queries; empty if all are alike.
    levels: Vec<Level>,
    delays: Histogram,
    /// The last delays, which `delays` lacks, and their number.
    fresh: ([Nanos; FRESH], usize),
    parts: Parts,
    utilisation: Option<f64>,
    must_settle: bool,
}

/// The queries of one priority.
#[derive(Clone, Copy, Debug)]
struct Level {
    limits: ByBound<Nanos>,
    /// Delay after which a query has missed its deadline.
    allowance: Nanos,
    share: f64,
    late: ByBound<usize>,
}

impl Judge {
    /// A judge of a run with `planned` queries that arrive at a rate.
    #[must_use]
    pub fn new(criterion: Criterion, planned: usize, rate_qps: f64) -> Self {
        Self {
            criterion,
            planned,
            ended: 0,
            unanswered: 0,
            late: [0; MOST_BOUNDS],
            limits: limits(&criterion, criterion.deadline),
            allowed: criterion.allowed_by_bound(planned),
            missed: 0,
            levels: Vec::new(),
            delays: Histogram::default(),
            fresh: ([Nanos::ZERO; FRESH], 0),
            parts: Parts::new(planned as f64 / rate_qps, None),
            utilisation: None,
            must_settle: false,
        }
    }

    /// This judge, which applies the criterion to the queries of each priority, with its own deadline and bounds.
    #[must_use]
    pub fn with_priorities(mut self, priorities: Option<&Priorities>) -> Self {
        let Some(priorities) = priorities else { return self };
        let objective = self.criterion.objective;
        let limits_of = |level: &Priority| {
            let limits = limits(&self.criterion, level.allowance);
            std::array::from_fn(|i| if objective.is_about(i, &level.name) { limits[i] } else { Nanos::MAX })
        };
        let levels = priorities.levels().iter().map(|level| Level {
            limits: limits_of(level),
            allowance: level.allowance,
            share: level.share.unwrap_or(1.0),
            late: [0; MOST_BOUNDS],
        });
        self.levels = levels.collect();
        self.criterion.limit = self.limit();
        self
    }

    /// This judge, for arrivals at a rate that repeat after `pass` seconds: it compares pass by pass.
    #[must_use]
    pub(super) fn with_passes(self, rate_qps: f64, pass: Option<f64>) -> Self {
        Self { parts: Parts::new(self.planned as f64 / rate_qps, pass), ..self }
    }

    /// This judge, with the work offered over the work that all lanes can do. From 1 on no run holds.
    #[must_use]
    pub fn with_utilisation(self, utilisation: f64) -> Self {
        Self { utilisation: Some(utilisation), ..self }
    }

    /// This judge, which calls a run stationary only if [busy periods](super::stationary) have ended in it.
    #[must_use]
    pub(super) fn that_must_settle(self, must_settle: bool) -> Self {
        Self { must_settle, ..self }
    }

    /// The delay after which every query is late under the first bound, whatever its priority.
    pub fn limit(&self) -> Nanos {
        self.levels.iter().map(|level| level.limits[0]).max().unwrap_or(self.limits[0])
    }

    /// Counts a query by its delay.
    #[inline(always)]
    fn count(&mut self, priority: u8, delay: Nanos) {
        let (fresh, count) = &mut self.fresh;
        fresh[*count % FRESH] = delay;
        *count += 1;
        if *count == FRESH {
            *count = 0;
            fresh.iter().for_each(|&delay| self.delays.push(delay));
        }
        if self.levels.is_empty() {
            (0..MOST_BOUNDS).for_each(|i| self.late[i] += usize::from(delay > self.limits[i]));
            self.missed += usize::from(delay > self.criterion.deadline);
            return;
        }
        self.count_of_level(priority, delay);
    }

    #[inline(never)]
    fn count_of_level(&mut self, priority: u8, delay: Nanos) {
        let Some(level) = self.levels.get_mut(usize::from(priority)) else { return };
        self.missed += usize::from(delay > level.allowance);
        for (i, late) in self.late.iter_mut().enumerate() {
            if delay > level.limits[i] {
                level.late[i] += 1;
                *late = (*late).max(significant(level.late[i] as f64 / level.share, 12) as usize);
            }
        }
    }

    /// Adds a query without an answer when the run ended. It is late if its age exceeds the limit.
    pub fn unanswered(&mut self, priority: u8, arrival: Nanos, age: Nanos) {
        self.unanswered += 1;
        self.count(priority, age);
        self.parts.add(arrival, arrival + age, false);
    }

    /// The first bound that has too many late queries, including `overdue` unanswered ones for the first bound.
    fn broken(&self, overdue: usize) -> Option<usize> {
        let late = |i: usize| self.late[i] + if i == 0 { overdue } else { 0 };
        (0..MOST_BOUNDS).find(|&i| late(i) > self.allowed[i])
    }

    /// The delays of all queries that were sent.
    #[must_use]
    pub fn delays(&self) -> Histogram {
        let mut delays = self.delays.clone();
        self.fresh.0[..self.fresh.1].iter().for_each(|&delay| delays.push(delay));
        delays
    }

    /// Whether too many queries are late, including `overdue` unanswered ones.
    #[must_use]
    pub fn is_lost(&self, overdue: usize) -> bool {
        self.broken(overdue).is_some()
    }

    /// The drifts of the age of the oldest unanswered query and of the mean delay, in nanoseconds; `None` if some part of
    /// the run had no queries.
    #[must_use]
    pub fn drifts(&self) -> Option<[Drift; 2]> {
        self.parts.drifts()
    }

    /// Whether the objective holds without the queries that `others` has counted, and at least half are left.
    #[must_use]
    pub fn holds_without(&self, others: &Self) -> bool {
        let left = (self.ended + self.unanswered).saturating_sub(others.ended + others.unanswered);
        let holds = |(i, bound): (usize, Bound)| {
            !self.criterion.is_tested(i, left) || self.late[i] <= bound.allowed(left) + others.late[i]
        };
        2 * left >= self.planned && self.criterion.objective.bounds().enumerate().all(holds)
    }

    /// The verdict on the run.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let place = self.broken(0).unwrap_or(0);
        let bound = self.criterion.bounds().nth(place);
        let (bound, limit) = bound.unwrap_or((Bound::NoMiss, self.criterion.deadline));
        let delays = self.delays();
        let percentile = |share| delays.nearest_rank(share).unwrap_or_default();
        Verdict {
            planned: self.planned,
            sent: self.ended + self.unanswered,
            is_cut_short: self.ended < self.planned,
            late: self.late[place],
            allowed: bound.allowed(self.planned),
            bound: (bound, limit),
            missed: self.missed,
            p99: percentile(0.99),
            p999: percentile(0.999),
            longest: percentile(1.0),
            utilisation: self.utilisation,
            unsteady: self.unsteady(),
        }
    }

    fn unsteady(&self) -> Option<Unsteady> {
        if self.utilisation.is_some_and(|utilisation| utilisation >= 1.0) {
            return Some(Unsteady::Overloaded);
        }
        let not_settled = || (self.must_settle && !self.parts.is_settled()).then_some(Unsteady::NotSettled);
        self.parts.grows().or_else(not_settled)
    }

    /// Numbers of late queries by bound so far.
    #[inline(always)]
    pub(super) fn late(&self) -> &ByBound<usize> {
        &self.late
    }

    /// Number of queries so far that are in time by the first bound.
    #[inline(always)]
    pub(super) fn timely(&self) -> usize {
        self.ended.saturating_sub(self.late[0])
    }
}

/// The delays after which a query with this deadline is late, by bound.
fn limits(criterion: &Criterion, deadline: Nanos) -> ByBound<Nanos> {
    let mut limits = [Nanos::MAX; MOST_BOUNDS];
    criterion
        .objective
        .bounds()
        .zip(&mut limits)
        .for_each(|(bound, limit)| *limit = criterion.limit_of(bound, deadline));
    limits
}

impl Sink for Judge {
    // Inlining lets the compiler skip unused fields of the row.
    #[inline(always)]
    fn record(&mut self, row: &LogRow) {
        self.ended += 1;
        self.count(row.priority, row.delay());
        self.parts.record(row);
    }

    fn shed(&mut self, job: &ShedJob) {
        self.ended += 1;
        if self.levels.is_empty() {
            let bounds = self.criterion.objective.bounds().count();
            self.late[..bounds].iter_mut().for_each(|late| *late += 1);
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
    use crate::study::{Bound, Objective};

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
        let criterion = Objective::from(Bound::Percentile { share: 0.9, within: Some(Nanos(500)) }).within(Nanos(1000));
        let mut judge = Judge::new(criterion, planned, 1e8);
        (0..).zip(delays).for_each(|(job, delay)| judge.record(&row(job, u64::from(job) * 10, delay)));
        judge.verdict()
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
        let verdict = |objective: &str, late: [u32; 2]| {
            let criterion = Objective::from_text(objective).unwrap().within(Nanos(100_000));
            let mut judge = Judge::new(criterion, 100, 1e8).with_priorities(Some(&priorities));
            for job in 0..100 {
                // Every fifth query is of the second priority, so that the mean delay does not change.
                let (priority, number) = if job % 5 == 0 { (1, job / 5) } else { (0, job - job / 5 - 1) };
                let limit = [1000, 100_000][priority];
                let delay = if number < late[priority] { limit + 1 } else { limit };
                judge.record(&LogRow { priority: priority as u8, ..row(job, 0, delay) });
            }
            judge.verdict()
        };
        // Of the 80 important queries 8 may be late, of the 20 others 2.
        for (late, holds) in [([8, 2], true), ([9, 0], false), ([0, 3], false), ([0, 0], true)] {
            let verdict = verdict("p90", late);
            assert_eq!(verdict.holds(), holds, "{late:?}: {verdict:?}");
            assert_eq!(verdict.missed as u32, late[0] + late[1]);
        }
        assert_eq!(verdict("p90", [0, 3]).words(), "missed: 15 % late");
        // Of the 20 others 5 may be late under a bound of their own, and any number under one of the first.
        for (objective, late, holds) in [
            ("a:p90,b:p75", [8, 5], true),
            ("a:p90,b:p75", [8, 6], false),
            ("a:p90", [8, 20], true),
            ("b:p90", [0, 3], false),
        ] {
            assert_eq!(verdict(objective, late).holds(), holds, "{objective} {late:?}");
        }
    }

    #[test]
    fn a_run_that_was_cut_short_is_undecided_unless_it_is_lost_already() {
        let criterion = Objective::from(Bound::Percentile { share: 0.9, within: Some(Nanos(500)) }).within(Nanos(1000));
        let cut_short = |late: u32, ages: &[u64]| {
            let mut judge = Judge::new(criterion, 100, 1e8);
            (0..40).for_each(|job| judge.record(&row(job, u64::from(job) * 10, if job < late { 600 } else { 100 })));
            ages.iter().for_each(|&age| judge.unanswered(0, Nanos(400), Nanos(age)));
            judge.verdict()
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
    fn a_backlog_that_grows_does_not_hold_though_nobody_is_late_yet() {
        // Delays rise from 0 to 200 ns of a limit of 500 ns within 10 us.
        let verdict = judged((0..1000).map(|i| i / 5), 1000);
        assert!(verdict.late == 0 && !verdict.holds(), "{verdict:?}");
        assert_eq!((verdict.unsteady, verdict.words().as_str()), (Some(Unsteady::MeanGrows), "missed: delays grow"));
        let level = judged((0..1000).map(|i| 100 + i % 7), 1000);
        assert!(level.holds(), "{level:?}");
        assert_eq!((level.p99, level.p999, level.longest), (Nanos(106), Nanos(106), Nanos(106)));
    }

    #[test]
    fn a_few_queries_that_starve_do_not_hold_though_the_mean_hides_them() {
        // One query of 200 is answered at the end only, and the last one is young. The mean delay of the others falls.
        let starving = |i: u64| if i % 200 == 150 { (1000 - i) * 10 } else { 300 - i / 10 };
        let verdict = judged((0..1000).map(starving), 1000);
        assert_eq!((verdict.late, verdict.unsteady), (4, Some(Unsteady::AgeGrows)), "{verdict:?}");
    }

    #[test]
    fn no_run_holds_at_a_load_of_one_and_several_bounds_must_all_hold() {
        let objective = Objective::from_text("p90=0.0005,p99=0.0006").unwrap();
        let judged = |late: u64, load: f64| {
            let mut judge = Judge::new(objective.within(Nanos(1000)), 1000, 1e8).with_utilisation(load);
            (0..1000).for_each(|job| {
                judge.record(&row(job, u64::from(job) * 10, if u64::from(job) % 97 < late { 700 } else { 100 }))
            });
            judge.verdict()
        };
        assert!(judged(0, 0.99).holds());
        assert_eq!(judged(0, 1.0).unsteady, Some(Unsteady::Overloaded));
        // 11 of 1000 are late; the first bound allows 100, and the second one 10.
        let verdict = judged(1, 0.5);
        assert_eq!((verdict.late, verdict.allowed, verdict.holds()), (11, 10, false), "{verdict:?}");
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
