//! A run at one rate, stopped as soon as it has failed.

use std::cell::RefCell;
use std::rc::Rc;

use super::judge::{ByBound, Judge, Overdue};
use crate::base::interrupt::interrupted;
use crate::base::time::Nanos;
use crate::sched::{LogRow, PolicyFactory, ShedJob, Sink};
use crate::sim::{Arrivals, Experiment, SimError, simulate_into};
use crate::study::objective::MOST_BOUNDS;
use crate::study::{Criterion, Verdict};

/// A rate below this share of the limit fails if simulated time ends before enough queries arrive.
const NEGLIGIBLE: f64 = 1e-3;

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Probe {
    /// Number of arrivals.
    pub(super) queries: usize,
    /// Numbers of late queries by bound; for a stopped run, those known by then.
    pub(super) late: ByBound<usize>,
    /// The verdict; `None` if the run was stopped because too many queries were late.
    pub(super) verdict: Option<Verdict>,
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
                Ok(Self { queries, late: [queries; MOST_BOUNDS], verdict: None })
            }
            probe => probe,
        }
    }

    /// Whether the run met the objective and is stationary.
    pub(super) fn holds(&self) -> bool {
        self.verdict.is_some_and(|verdict| verdict.holds())
    }
}

/// How a run is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeRun {
    pub(super) criterion: Criterion,
    /// The run stops once it alone exceeds the late queries that are allowed of so many queries.
    pub(super) allowed_of: usize,
    /// Seconds after which its arrivals repeat.
    pub(super) pass: Option<f64>,
    /// Whether busy periods must have ended in it.
    pub(super) must_settle: bool,
}

/// Simulates these arrivals at a rate until the run has failed.
///
/// # Errors
/// If the policy does not fit the machine or breaks its contract, or an [interrupt](crate::base::interrupt) came.
pub(super) fn probe(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    judged: ProbeRun,
    arrivals: &Arrivals,
    rate_qps: f64,
) -> Result<Probe, SimError> {
    // Interrupts are checked between runs only, because runs are short and the inner loop is hot.
    if interrupted() {
        return Err(SimError::Interrupted);
    }
    let ProbeRun { criterion, allowed_of, pass, must_settle } = judged;
    let judge = Judge::new(criterion, arrivals.len(), rate_qps)
        .with_passes(rate_qps, pass)
        .with_priorities(arrivals.priorities().map(AsRef::as_ref))
        .that_must_settle(must_settle);
    let limit = judge.limit();
    let overdue = Rc::new(RefCell::new(Overdue::new(rate_qps, limit)));
    let arriving = Rc::clone(&overdue);
    let run = experiment.run(policy, rate_qps, arrivals)?;
    let run = run.noticing(move |at| arriving.borrow_mut().arrive(at));
    let allowed = criterion.allowed_by_bound(allowed_of);
    let sink = ProbeSink { judge, limit, allowed, overdue, late: [0; MOST_BOUNDS], is_lost: false };
    let ProbeSink { judge, late, is_lost, .. } = simulate_into(run, sink, |sink| sink.is_lost)?;
    let (queries, verdict) = (arrivals.len(), (!is_lost).then(|| judge.verdict()));
    Ok(Probe { queries, late: if is_lost { late } else { *judge.late() }, verdict })
}

/// Judges a run and detects its failure.
struct ProbeSink {
    judge: Judge,
    limit: Nanos,
    allowed: ByBound<usize>,
    overdue: Rc<RefCell<Overdue>>,
    late: ByBound<usize>,
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
        self.late = *self.judge.late();
        // At least the due arrivals in excess of the timely queries are late.
        let overdue = self.overdue.borrow_mut().due(now, self.limit).saturating_sub(self.judge.timely());
        self.late[0] = self.late[0].max(overdue);
        self.is_lost = (0..MOST_BOUNDS).any(|i| self.late[i] > self.allowed[i]);
    }
}
