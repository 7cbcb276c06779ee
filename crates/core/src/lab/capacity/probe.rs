//! A run at one rate, stopped as soon as it has failed.

use std::cell::RefCell;
use std::rc::Rc;

use super::judge::{Judge, Overdue};
use crate::base::interrupt::interrupted;
use crate::base::time::Nanos;
use crate::lab::Criterion;
use crate::sched::{LogRow, PolicyFactory, ShedJob, Sink};
use crate::sim::{Arrivals, Experiment, SimError, simulate_into};

/// A rate below this share of the limit fails if simulated time ends before enough queries arrive.
const NEGLIGIBLE: f64 = 1e-3;

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Probe {
    /// Number of arrivals.
    pub(super) queries: usize,
    /// Number of late queries; for a stopped run, those known by then.
    pub(super) late: usize,
    /// Whether the run was stopped because too many queries were late.
    pub(super) is_lost: bool,
    /// Whether delays still grew at the end.
    pub(super) grows: bool,
    /// Whether the objective allows the late queries and delays do not grow, if the run was not stopped.
    holds: bool,
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
            Err(SimError::TooLong { .. }) if rate_qps < NEGLIGIBLE * top_qps => {
                Ok(Self { queries, late: queries, is_lost: true, grows: false, holds: false })
            }
            probe => probe,
        }
    }

    /// Whether the run met the objective; valid if `allowed` was the objective's own number.
    pub(super) fn holds(&self) -> bool {
        self.holds
    }
}

/// Simulates these arrivals at a rate. The run stops once more than `allowed` queries are late.
///
/// # Errors
/// If the policy does not fit the machine or breaks its contract, or an [interrupt](crate::base::interrupt) came.
pub(super) fn probe(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    criterion: Criterion,
    allowed: usize,
    arrivals: &Arrivals,
    rate_qps: f64,
) -> Result<Probe, SimError> {
    // Interrupts are checked between runs only, because runs are short and the inner loop is hot.
    if interrupted() {
        return Err(SimError::Interrupted);
    }
    let judge =
        Judge::new(criterion, arrivals.len(), rate_qps).with_priorities(arrivals.priorities().map(AsRef::as_ref));
    let limit = judge.limit();
    let overdue = Rc::new(RefCell::new(Overdue::new(rate_qps, limit)));
    let arriving = Rc::clone(&overdue);
    let run = experiment.run(policy, rate_qps, arrivals)?;
    let run = run.noticing(move |at| arriving.borrow_mut().arrive(at));
    let sink = ProbeSink { judge, limit, allowed, overdue, late: 0, is_lost: false };
    let ProbeSink { judge, late, is_lost, .. } = simulate_into(run, sink, |sink| sink.is_lost)?;
    let verdict = judge.verdict();
    Ok(Probe {
        queries: arrivals.len(),
        late: if is_lost { late } else { verdict.late },
        is_lost,
        grows: !is_lost && verdict.unsteady.is_some(),
        holds: !is_lost && verdict.holds(),
    })
}

/// Judges a run and detects its failure.
struct ProbeSink {
    judge: Judge,
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
        let (late, in_time) = self.judge.late_and_not();
        // At least the due arrivals in excess of the timely queries are late.
        let overdue = self.overdue.borrow_mut().due(now, self.limit).saturating_sub(in_time);
        self.late = late.max(overdue);
        self.is_lost = self.late > self.allowed;
    }
}
