//! Statistics of a live run while it lasts, and its verdict.
//!
//! A live run is judged as a simulated one, with two additions, since a machine is not a model:
//!
//! - **Paused.** A run that misses the objective, although it kept [`KEPT_SHARE`] of its throughput and the objective holds
//!   without the queries that waited in a [gap](crate::live::Gap) of the machine, says nothing about its rate. It is driven
//!   again. At least half of the queries must have waited in no gap.
//! - **Floor.** A machine gets slower by some per cent within seconds. Delays that rise no more than this explains do not
//!   grow: the work of a query rises by a share s from the first to the last third of the run, at least by [`LEAST_DRIFT`],
//!   and delays then rise by about s / (1 - busy share).

use tandem_model::base::machine::{Class, LaneFault, Machine};
use tandem_model::base::time::Nanos;
use tandem_model::sched::{Job, LogRow, ShedJob, Sink};
use tandem_model::study::{Criterion, Judge, PriorityTally, Summary, Tally, Unsteady, Verdict};
use tandem_model::traffic::Priorities;

use crate::live::{Course, Gap, Record};

/// The share of its throughput that a run with a pause keeps. A run of a saturated machine keeps less.
pub const KEPT_SHARE: f64 = 0.985;
/// The least change of a machine's speed within a run, as a share: the previous run of a file predicts the next one's mean
/// cost with a median error of 5 %.
const LEAST_DRIFT: f64 = 0.05;
/// The floor counts lanes as idle for at least this share of the time.
const LEAST_IDLE: f64 = 0.1;

/// Delays, misses and verdict of a live run, in constant memory.
#[derive(Debug)]
pub(super) struct LiveRecord {
    judge: Judge,
    /// Judges the queries that waited in a gap.
    waited: Judge,
    /// The end of the last gap, and the last arrival.
    gap_end: Nanos,
    last_arrival: Nanos,
    /// All but the delays, which the judge counts.
    tally: Tally,
    /// The delays of each priority.
    levels: PriorityTally,
    limit: Nanos,
    gives_up: bool,
}

/// What is known of a live run at its end.
#[derive(Debug)]
pub(super) struct LiveResults {
    /// `None` if no query finished.
    pub(super) summary: Option<Summary>,
    pub(super) verdict: Verdict,
    pub(super) kept_up: bool,
    pub(super) is_paused: bool,
    pub(super) priorities: Vec<(String, Summary)>,
}

impl LiveRecord {
    /// A record of a run of `planned` queries at a rate. With `gives_up` the run may end once it has failed and its backlog
    /// grows.
    pub(super) fn new(
        criterion: Criterion,
        (planned, rate_qps): (usize, f64),
        (machine, priorities): (&Machine, Option<&Priorities>),
        gives_up: bool,
    ) -> Self {
        let judge = Judge::new(criterion, planned, rate_qps).with_priorities(priorities);
        let (tally, levels, limit) = (Tally::new(machine, 0), PriorityTally::new(priorities), judge.limit());
        let (waited, gap_end, last_arrival) = (judge.clone(), Nanos::ZERO, Nanos::ZERO);
        Self { judge, waited, gap_end, last_arrival, tally, levels, limit, gives_up }
    }

    /// The results of the run.
    pub(super) fn into_results(self, course: &Course) -> LiveResults {
        let summary = self.tally.summary_of(&self.judge.delays());
        let busy = summary.map_or(0.0, |summary| {
            Class::ALL.map(|class| summary.utilisation[class]).into_iter().flatten().fold(0.0, f64::max)
        });
        let verdict = above_floor(self.judge.verdict(), &self.judge, slower(course), busy);
        let offered_qps = verdict.sent as f64 / self.last_arrival.as_secs();
        let kept_up = summary.is_some_and(|summary| summary.throughput_qps >= KEPT_SHARE * offered_qps);
        let is_paused = is_paused(&verdict, kept_up, self.judge.holds_without(&self.waited));
        LiveResults { summary, verdict, kept_up, is_paused, priorities: self.levels.summaries() }
    }
}

/// Whether a run that missed the objective says nothing about its rate, because the machine paused.
#[must_use]
pub fn is_paused(verdict: &Verdict, kept_up: bool, holds_without_gaps: bool) -> bool {
    !verdict.holds() && !verdict.is_cut_short && kept_up && holds_without_gaps
}

/// By which share the work of a query rose from the first to the last third of a run. Thirds have equally many queries.
fn slower(course: &Course) -> f64 {
    let [first, _, last] =
        course.thirds.map(|third| Class::ALL.map(|class| third.worked[class].as_secs()).iter().sum::<f64>());
    if first > 0.0 { (last / first - 1.0).max(0.0) } else { 0.0 }
}

/// The verdict without growth that a machine explains which got slower by a share while its lanes were `busy` for a share of
/// the time.
#[must_use]
pub fn above_floor(verdict: Verdict, judge: &Judge, slower: f64, busy: f64) -> Verdict {
    let floor = slower.max(LEAST_DRIFT) / (1.0 - busy).clamp(LEAST_IDLE, 1.0);
    let grows = matches!(verdict.unsteady, Some(Unsteady::MeanGrows | Unsteady::AgeGrows));
    let is_small = || judge.drifts().is_some_and(|drifts| drifts.iter().all(|drift| drift.rise <= floor * drift.level));
    if grows && is_small() { Verdict { unsteady: None, ..verdict } } else { verdict }
}

impl Sink for LiveRecord {
    #[inline]
    fn record(&mut self, row: &LogRow) {
        self.judge.record(row);
        self.tally.record_the_rest(row);
        self.levels.record(row);
        self.last_arrival = self.last_arrival.max(row.arrival);
        if row.arrival < self.gap_end {
            self.waited.record(row);
        }
    }

    fn shed(&mut self, job: &ShedJob) {
        self.judge.shed(job);
        self.tally.shed(job);
        self.levels.shed(job);
        if job.arrival < self.gap_end {
            self.waited.shed(job);
        }
    }

    fn lane_fault(&mut self, fault: &LaneFault) {
        self.tally.lane_fault(fault);
    }
}

impl Record for LiveRecord {
    fn late_after(&self) -> Option<Nanos> {
        self.gives_up.then_some(self.limit)
    }

    fn is_lost(&self, overdue: usize) -> bool {
        self.judge.is_lost(overdue)
    }

    fn unanswered(&mut self, job: &Job, age: Nanos) {
        self.judge.unanswered(job.priority, job.arrival, age);
        let has_missed = job.arrival + age > job.deadline;
        self.tally.unanswered(age, has_missed);
        self.levels.unanswered(job.priority, age, has_missed);
    }

    fn gap(&mut self, gap: &Gap) {
        self.gap_end = self.gap_end.max(gap.until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::GapOf;
    use tandem_model::base::ids::{JobId, ProcessorId, QueryId};
    use tandem_model::base::machine::PerClass;
    use tandem_model::study::Objective;

    const MS: u64 = 1_000_000;

    fn row(job: u64, finished: Nanos) -> LogRow {
        let arrival = Nanos(job * MS);
        LogRow {
            job: JobId(job as u32),
            query: QueryId(0),
            arrival,
            released: arrival,
            started: arrival,
            finished,
            processor: ProcessorId(0),
            class: Class::CPU,
            batch: job as u32,
            deadline: arrival + Nanos::from_ms(50.0),
            priority: 0,
            predicted: PerClass::default(),
            stolen: false,
            again: false,
            lanes: 1,
            helped: Nanos::ZERO,
        }
    }

    /// A run of 10,000 queries, 1 ms apart; `delay_ms` by number. The machine stands still for the given times.
    fn judged(gaps: &[(u64, u64)], delay_ms: impl Fn(u64) -> u64) -> LiveResults {
        let criterion = Objective::default().within(Nanos::from_ms(50.0));
        let machine = Machine::new(1, 0);
        let mut record = LiveRecord::new(criterion, (10_000, 1000.0), (&machine, None), true);
        let mut gaps = gaps.iter().peekable();
        let mut rows: Vec<(Nanos, u64)> = (0..10_000).map(|job| (Nanos((job + delay_ms(job)) * MS), job)).collect();
        rows.sort();
        for (finished, job) in rows {
            while let Some(&(from, until)) = gaps.next_if(|gap| gap.1 * MS <= finished.0) {
                record.gap(&Gap { of: GapOf::Driver, from: Nanos(from * MS), until: Nanos(until * MS) });
            }
            record.record(&row(job, finished));
        }
        record.into_results(&Course::default())
    }

    #[test]
    fn a_miss_is_paused_if_only_queries_in_gaps_were_late() {
        // Two gaps of 120 ms make 140 of 10,000 queries late.
        let in_gap = |job: u64| [2000, 6000].into_iter().find(|&from| (from..from + 120).contains(&job));
        let delay = |job| in_gap(job).map_or(1 + job % 3, |from| from + 121 - job);
        let both = judged(&[(2000, 2120), (6000, 6120)], delay);
        assert!(!both.verdict.holds() && both.kept_up && both.is_paused, "{both:?}");
        // Of an unseen gap, 70 late queries remain, which is less than 1 %. Without any gap it is a miss.
        assert!(judged(&[(2000, 2120)], delay).is_paused);
        let unseen = judged(&[], delay);
        assert!(!unseen.verdict.holds() && unseen.kept_up && !unseen.is_paused, "{unseen:?}");
        // Queries that were late without a gap are not forgiven, and neither are all queries at once.
        let late = |job: u64| if job.is_multiple_of(50) { 60 } else { delay(job) };
        assert!(!judged(&[(2000, 2120), (6000, 6120)], late).is_paused);
        assert!(!judged(&[(0, 9000)], |job| if job < 9000 { 9100 - job } else { 1 }).is_paused);
        // A machine that does not keep up misses.
        let behind = judged(&[(2000, 2120)], |job| 1 + job / 20);
        assert!(!behind.kept_up && !behind.is_paused, "{behind:?}");
    }

    #[test]
    fn delays_that_rise_with_the_machines_own_time_do_not_grow() {
        // The work of a query rises by a tenth, and so do delays of 20 to 22 ms.
        let rising = |job: u64| 20 * MS + 200 * job;
        let mut judge = Judge::new(Objective::default().within(Nanos::from_ms(50.0)), 10_000, 1000.0);
        (0..10_000).for_each(|job| judge.record(&row(job, Nanos(job * MS + rising(job)))));
        let verdict = judge.verdict();
        assert!(verdict.unsteady.is_some(), "{verdict:?}");
        assert!(!above_floor(verdict, &judge, 0.02, 0.0).holds());
        assert!(above_floor(verdict, &judge, 0.1, 0.0).holds());
        assert!(above_floor(verdict, &judge, 0.05, 0.6).holds());
        let thirds = |ms: [u64; 3]| {
            let mut course = Course::default();
            (0..3).for_each(|i| course.thirds[i].worked[Class::CPU] = Nanos(ms[i] * MS));
            slower(&course)
        };
        assert_eq!((thirds([100, 105, 110]) * 1000.0).round(), 100.0);
        assert_eq!((thirds([100, 90, 80]), thirds([0, 1, 2])), (0.0, 0.0));
    }
}
