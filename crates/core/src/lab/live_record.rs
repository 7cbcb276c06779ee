//! Statistics of a live run while it lasts.

use super::{Criterion, Judge, PriorityTally, Summary, Tally, Verdict};
use crate::base::machine::{LaneFault, Machine};
use crate::base::time::Nanos;
use crate::live::Record;
use crate::query::Priorities;
use crate::sched::{Job, LogRow, ShedJob, Sink};

/// Delays, misses and verdict of a live run, in constant memory.
#[derive(Debug)]
pub(super) struct LiveRecord {
    judge: Judge,
    tally: Tally,
    /// The delays of each priority.
    levels: PriorityTally,
    limit: Nanos,
    gives_up: bool,
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
        let (tally, levels, limit) = (Tally::counting(machine), PriorityTally::new(priorities), judge.limit());
        Self { judge, tally, levels, limit, gives_up }
    }

    /// The verdict of the run, its summary if a query finished, and those of the priorities.
    pub(super) fn into_results(self) -> (Option<Summary>, Verdict, Vec<(String, Summary)>) {
        (self.tally.summary(), self.judge.verdict(), self.levels.summaries())
    }
}

impl Sink for LiveRecord {
    #[inline]
    fn record(&mut self, row: &LogRow) {
        self.judge.record(row);
        self.tally.record(row);
        self.levels.record(row);
    }

    fn shed(&mut self, job: &ShedJob) {
        self.judge.shed(job);
        self.tally.shed(job);
        self.levels.shed(job);
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
}
