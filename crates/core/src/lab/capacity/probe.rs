//! One run at one rate, given up as soon as it is lost.

use std::cell::RefCell;
use std::rc::Rc;

use super::judge::{Judge, Overdue};
use crate::base::time::Nanos;
use crate::lab::Criterion;
use crate::live;
use crate::sched::{LogRow, PolicyFactory, ShedJob, Sink};
use crate::sim::{Arrivals, Experiment, SimError, simulate_into};

/// What a run is for: the objective, or that no query misses its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    Objective,
    NoMiss,
}

impl Aim {
    /// How many of `queries` may be late.
    pub(super) fn allowed(self, criterion: &Criterion, queries: usize) -> usize {
        match self {
            Self::Objective => criterion.allowed(queries),
            Self::NoMiss => 0,
        }
    }
}

/// What a run has told of each aim; `None` where it was given up before that was known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ProbeResult {
    pub(super) objective: Option<bool>,
    pub(super) no_miss: Option<bool>,
}

impl ProbeResult {
    pub(super) fn of(self, aim: Aim) -> Option<bool> {
        match aim {
            Aim::Objective => self.objective,
            Aim::NoMiss => self.no_miss,
        }
    }

    /// What two runs at a rate have told.
    pub(super) fn and(self, other: Self) -> Self {
        Self { objective: self.objective.or(other.objective), no_miss: self.no_miss.or(other.no_miss) }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// Queries that arrive in it.
    pub(super) queries: usize,
    /// Queries that were later than the aim allows; of a run that was given up, those known by then.
    pub(super) late: usize,
    /// Whether it was given up, since more were late than may be.
    pub(super) is_lost: bool,
    /// Whether delays were still growing at its end.
    pub(super) grows: bool,
    result: ProbeResult,
}

impl Probe {
    /// What it tells where no more queries may be late than the aim allows.
    pub(super) fn result(&self) -> ProbeResult {
        self.result
    }
}

/// Plays these arrivals at a rate, and gives the run up once more than `allowed` queries are later than `aim` permits.
///
/// # Errors
/// If the policy can't be made for this machine, or breaks its contract; and once runs are to [end](live::interrupt).
pub(super) fn probe(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    criterion: Criterion,
    (aim, allowed): (Aim, usize),
    arrivals: &Arrivals,
    rate_qps: f64,
) -> Result<Probe, SimError> {
    // Here and not in the middle of a run: those of a search are short, and what each query takes counts.
    if live::interrupted() {
        return Err(SimError::Interrupted);
    }
    let limit = match aim {
        Aim::Objective => criterion.limit,
        Aim::NoMiss => criterion.deadline,
    };
    let overdue = Rc::new(RefCell::new(Overdue::new(rate_qps, limit)));
    let arriving = Rc::clone(&overdue);
    let run = experiment.run(policy, rate_qps, arrivals)?;
    let run = run.noticing(move |at| arriving.borrow_mut().arrive(at));
    let judge = Judge::new(criterion, arrivals.len());
    let watch = Watch { judge, aim, limit, allowed, overdue, late: 0, is_lost: false };
    let Watch { judge, late, is_lost, .. } = simulate_into(run, watch, |watch| watch.is_lost)?;
    let verdict = judge.verdict(rate_qps);
    let result = match (is_lost, aim) {
        (false, _) => {
            ProbeResult { objective: Some(verdict.holds()), no_miss: Some(verdict.missed == 0 && !verdict.grows) }
        }
        // Whoever is late after more than the deadline has missed it.
        (true, Aim::Objective) => {
            ProbeResult { objective: Some(false), no_miss: (criterion.limit >= criterion.deadline).then_some(false) }
        }
        (true, Aim::NoMiss) => ProbeResult { objective: None, no_miss: Some(false) },
    };
    let ended = match aim {
        Aim::Objective => verdict.late,
        Aim::NoMiss => verdict.missed,
    };
    Ok(Probe {
        queries: arrivals.len(),
        late: if is_lost { late } else { ended },
        is_lost,
        grows: !is_lost && verdict.grows,
        result,
    })
}

/// Judges a run, and notices when it is lost.
struct Watch {
    judge: Judge,
    aim: Aim,
    limit: Nanos,
    allowed: usize,
    overdue: Rc<RefCell<Overdue>>,
    late: usize,
    is_lost: bool,
}

impl Sink for Watch {
    // What is not looked at of a row need not be made.
    #[inline(always)]
    fn record(&mut self, row: &LogRow) {
        self.judge.record(row);
        self.look(row.finished);
    }

    fn shed(&mut self, job: &ShedJob) {
        self.judge.shed(job);
        self.look(job.dropped);
    }
}

impl Watch {
    /// Whether the run is lost by now.
    #[inline]
    fn look(&mut self, now: Nanos) {
        let (late, in_time) = match self.aim {
            Aim::Objective => self.judge.late_and_not(),
            Aim::NoMiss => self.judge.missed_and_not(),
        };
        // Of those that are due, at most all that have finished in time were in time.
        let overdue = self.overdue.borrow_mut().due(now, self.limit).saturating_sub(in_time);
        self.late = late.max(overdue);
        self.is_lost = self.late > self.allowed;
    }
}
