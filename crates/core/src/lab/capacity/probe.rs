//! A run at one rate, stopped as soon as it has failed.

use std::cell::RefCell;
use std::rc::Rc;

use super::judge::{Judge, Overdue};
use crate::base::time::Nanos;
use crate::lab::Criterion;
use crate::live;
use crate::sched::{LogRow, PolicyFactory, ShedJob, Sink};
use crate::sim::{Arrivals, Experiment, SimError, simulate_into};

/// The aim of a run: to meet the objective, or to have no miss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aim {
    Objective,
    NoMiss,
}

/// A rate below this share of the limit fails if simulated time ends before enough queries arrive.
const NEGLIGIBLE: f64 = 1e-3;

impl Aim {
    /// Number of the `queries` that may be late.
    pub(super) fn allowed(self, criterion: &Criterion, queries: usize) -> usize {
        match self {
            Self::Objective => criterion.allowed(queries),
            Self::NoMiss => 0,
        }
    }
}

/// The result for each aim; `None` if the run stopped before it was known.
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

    /// The combined result of two runs at a rate.
    pub(super) fn and(self, other: Self) -> Self {
        Self { objective: self.objective.or(other.objective), no_miss: self.no_miss.or(other.no_miss) }
    }
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// Number of arrivals.
    pub(super) queries: usize,
    /// Number of late queries under the aim; for a stopped run, those known by then.
    pub(super) late: usize,
    /// Whether the run was stopped because too many queries were late.
    pub(super) is_lost: bool,
    /// Whether delays still grew at the end.
    pub(super) grows: bool,
    result: ProbeResult,
}

impl Probe {
    /// The probe, or a lost one if `rate_qps` is so far below `top_qps` that simulated time ends before enough of `queries`
    /// arrive.
    pub(super) fn or_lost(
        probe: Result<Self, SimError>,
        rate_qps: f64,
        top_qps: f64,
        queries: usize,
    ) -> Result<Self, SimError> {
        match probe {
            Err(SimError::TooLong { .. }) if rate_qps < NEGLIGIBLE * top_qps => Ok(Self {
                queries,
                late: queries,
                is_lost: true,
                grows: false,
                result: ProbeResult { objective: Some(false), no_miss: Some(false) },
            }),
            probe => probe,
        }
    }

    /// The result for both aims, valid if `allowed` was the aim's own number.
    pub(super) fn result(&self) -> ProbeResult {
        self.result
    }
}

/// Simulates these arrivals at a rate. The run stops once more than `allowed` queries are late under `aim`.
///
/// # Errors
/// If the policy does not fit the machine or breaks its contract, or an [interrupt](live::interrupt) came.
pub(super) fn probe(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    criterion: Criterion,
    (aim, allowed): (Aim, usize),
    arrivals: &Arrivals,
    rate_qps: f64,
) -> Result<Probe, SimError> {
    // Interrupts are checked between runs only, because runs are short and the inner loop is hot.
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
    let sink = ProbeSink { judge, aim, limit, allowed, overdue, late: 0, is_lost: false };
    let ProbeSink { judge, late, is_lost, .. } = simulate_into(run, sink, |sink| sink.is_lost)?;
    let verdict = judge.verdict(rate_qps);
    let result = match (is_lost, aim) {
        (false, _) => {
            ProbeResult { objective: Some(verdict.holds()), no_miss: Some(verdict.missed == 0 && !verdict.grows) }
        }
        // A query past a limit at or above the deadline has missed the deadline, too.
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

/// Judges a run and detects its failure.
struct ProbeSink {
    judge: Judge,
    aim: Aim,
    limit: Nanos,
    allowed: usize,
    overdue: Rc<RefCell<Overdue>>,
    late: usize,
    is_lost: bool,
}

impl Sink for ProbeSink {
    // Inlining lets the compiler skip unused fields of the row.
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

impl ProbeSink {
    /// Updates whether the run has failed by now.
    #[inline]
    fn look(&mut self, now: Nanos) {
        let (late, in_time) = match self.aim {
            Aim::Objective => self.judge.late_and_not(),
            Aim::NoMiss => self.judge.missed_and_not(),
        };
        // At least the due arrivals in excess of the timely queries are late.
        let overdue = self.overdue.borrow_mut().due(now, self.limit).saturating_sub(in_time);
        self.late = late.max(overdue);
        self.is_lost = self.late > self.allowed;
    }
}
