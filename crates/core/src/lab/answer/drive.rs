//! Live runs of one policy, between a rate that holds and one that does not.

use std::time::{Duration, Instant};

use super::interval::{half_width, sampled, scatter};
use super::search::{LiveSearch, Side};
use super::{Effort, Question};
use crate::base::time::Nanos;
use crate::lab::{
    Calibration, Capacities, Criterion, LabError, LiveReport, LiveRunSpec, Node, Progress, RunLength, ServiceRow,
    ServiceRun, Summary, SystemLoad, Verdict,
};
use crate::live;
use crate::sched::PolicyFactory;
use crate::sim::Arrivals;

/// A live run lasts for so many limits at least: in a shorter one even a rate far too high has no time to be late.
const LEAST_LIMITS: f64 = 5.0;

/// And no more than this many times as long as asked for, where queries are few.
const MOST_TIMES: f64 = 3.0;

/// One live run.
#[derive(Clone, Debug, PartialEq)]
pub struct DrivenRun {
    /// Queries a second.
    pub qps: f64,
    /// What its arrivals and queries were drawn from.
    pub seed: u64,
    /// How long its queries arrived.
    pub seconds: f64,
    /// Whether it came up to the objective.
    pub verdict: Verdict,
    /// Its delays; `None` if nothing finished.
    pub summary: Option<Summary>,
    /// What was predicted of it, and whether that held; `None` where it was not simulated.
    pub predicted: Option<(Summary, Verdict)>,
    /// What else kept the machine busy.
    pub load: SystemLoad,
    /// What a fixed loop took on the workers' cores, mean of before and after.
    pub fixed_loop: Nanos,
    /// How late the driver released one query in a hundred.
    pub lag_p99: Nanos,
    /// What queries cost in it.
    pub service: Calibration,
}

/// What the live runs of a policy came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Driven {
    /// The policy's name.
    pub policy: String,
    /// What was predicted before the first run.
    pub predicted: Capacities,
    /// What would have been predicted with what queries cost in the last run that held at the answer: what is left of the
    /// error then is the simulator's own.
    pub hindsight_qps: Option<f64>,
    /// The live runs, in order.
    pub runs: Vec<DrivenRun>,
    /// The highest rate that held, in enough runs,
    pub held: Option<Side>,
    /// and the lowest rate that did not, likewise.
    pub missed: Option<Side>,
    /// The standard error of the mean cost of the queries that were driven, as a sample of the log.
    pub sampled: f64,
    /// What stood in the GPU's place: `real`, `replay` or `none`.
    pub gpu: &'static str,
}

/// A capacity that was driven live: a rate that held, and how far it is from what the machine sustains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveCapacity {
    /// The rate that held.
    pub qps: f64,
    /// The lowest rate that did not.
    pub missed_qps: f64,
    /// Half of the 90 % interval, as a share of the rate.
    pub half_width: f64,
}

impl LiveCapacity {
    /// The 90 % interval.
    #[must_use]
    pub fn interval(&self) -> (f64, f64) {
        (self.qps * (1.0 - self.half_width), self.qps * (1.0 + self.half_width))
    }
}

impl Driven {
    /// The answer, which has two sides; `None` if either is not known.
    #[must_use]
    pub fn capacity(&self) -> Option<LiveCapacity> {
        let (held, missed) = (self.held?, self.missed?);
        let half_width = half_width(held.qps, missed.qps, self.machine_scatter(), self.sampled);
        Some(LiveCapacity { qps: held.qps, missed_qps: missed.qps, half_width })
    }

    /// How far the predicted capacity is off: from (predicted - missed) / missed to (predicted - held) / held.
    #[must_use]
    pub fn error(&self) -> Option<(f64, f64)> {
        let (held, missed) = (self.held?, self.missed?);
        let predicted = self.predicted.objective.qps;
        Some((predicted / missed.qps - 1.0, predicted / held.qps - 1.0))
    }

    /// The standard deviation of the machine's speed over the runs, by what queries took in them and by the fixed loop.
    #[must_use]
    pub fn machine_scatter(&self) -> f64 {
        let served: Vec<f64> = self.runs.iter().map(|run| run.service.slowest_of_all()).collect();
        scatter(&served).max(scatter(&self.fixed_loops()))
    }

    /// By how much the slowest run's fixed loop is slower than the fastest's.
    fn drift(&self) -> f64 {
        let loops = self.fixed_loops();
        let (least, most) =
            loops.iter().fold((f64::INFINITY, 0.0_f64), |(least, most), &us| (least.min(us), most.max(us)));
        if most > 0.0 { most / least - 1.0 } else { 0.0 }
    }

    fn fixed_loops(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.fixed_loop.as_us()).filter(|&us| us > 0.0).collect()
    }

    /// Queries and late ones of all runs at a rate.
    #[must_use]
    pub fn totals(&self, side: &Side) -> (usize, usize) {
        let at = self.runs.iter().filter(|run| run.qps == side.qps);
        at.fold((0, 0), |(sent, late), run| (sent + run.verdict.sent, late + run.verdict.late))
    }

    /// What else kept the machine busy during the runs.
    #[must_use]
    pub fn load(&self) -> SystemLoad {
        SystemLoad::mean(&self.runs.iter().map(|run| run.load).collect::<Vec<_>>())
    }
}

/// Drives one policy.
pub(super) struct LiveRuns<'a> {
    pub(super) node: &'a mut Node,
    pub(super) policy: &'a dyn PolicyFactory,
    pub(super) question: &'a Question,
    pub(super) progress: &'a dyn Progress,
    /// The seed of the next run.
    pub(super) seed: u64,
    /// When all began, and when the last run has to have ended.
    pub(super) began: Instant,
    pub(super) until: Instant,
    pub(super) service: &'a mut Vec<ServiceRow>,
}

impl LiveRuns<'_> {
    /// Searches around the predicted capacity, after runs at some `shares` of it that show delays. What was driven up to an
    /// interrupt or a failure is in `driven`, whatever comes back.
    pub(super) fn search(&mut self, driven: &mut Driven, shares: &[f64]) -> Result<(), LabError> {
        let predicted_qps = driven.predicted.objective.qps;
        for share in shares {
            self.drive(share * predicted_qps, driven)?;
        }
        let mut search = LiveSearch::new(predicted_qps, self.question.effort);
        while let Some(qps) = search.next(self.runs_left(predicted_qps)) {
            let verdict = self.drive(qps, driven)?;
            // A run that was cut short, though nobody interrupted it, says nothing.
            if verdict.is_undecided() {
                break;
            }
            search.note(qps, verdict.holds());
            search.drifts(driven.drift());
            (driven.held, driven.missed) = search.sides();
        }
        Ok(())
    }

    /// For how many more runs there is time.
    fn runs_left(&self, qps: f64) -> u32 {
        let left = self.until.saturating_duration_since(Instant::now());
        (left.as_secs_f64() / self.seconds(qps)).floor() as u32
    }

    /// How long queries arrive.
    fn seconds(&self, qps: f64) -> f64 {
        run_seconds(&self.question.effort, &self.question.objective.within(self.question.deadline), qps)
    }

    fn drive(&mut self, qps: f64, driven: &mut Driven) -> Result<Verdict, LabError> {
        let Question { deadline, objective, process, .. } = self.question;
        let criterion = objective.within(*deadline);
        let seconds = self.seconds(qps);
        let count = ((seconds * qps) as usize).max(1);
        let what = format!("{}, live at {qps:.0} q/s", self.policy.name());
        self.progress.lasts(&what, Duration::from_secs_f64(count as f64 / qps));
        let arrivals = Arrivals::drawn(process, self.seed, count, self.node.driven_rows().len());
        let before = self.node.lane_pool().fixed_loop();
        let run = LiveRunSpec::new(qps, &arrivals, criterion).of_driven_rows(self.node);
        let report = self.node.run_strict(self.policy, run)?;
        let LiveReport { outcome, summary, verdict, load } = report;
        if outcome.interrupted() || live::interrupted() {
            return Err(LabError::Interrupted);
        }
        let after = self.node.lane_pool().fixed_loop();
        let service = self.node.calibration(&outcome);
        self.service.push(ServiceRow::of(
            self.policy.name(),
            self.began.elapsed(),
            (ServiceRun::Live, qps),
            verdict.sent,
            &service,
        ));
        driven.runs.push(DrivenRun {
            qps,
            seed: self.seed,
            seconds,
            verdict,
            summary,
            predicted: None,
            load,
            fixed_loop: Nanos(before.0.midpoint(after.0)),
            lag_p99: outcome.lag.p99,
            service,
        });
        self.seed = self.seed.wrapping_add(1);
        self.progress.told(&format!("{what}: {}; {}", verdict.words(), load.words()));
        Ok(verdict)
    }
}

/// How long the queries of a run arrive: no shorter than asked for, however short the deadline; longer where queries are so few
/// that the objective could not be told, within limits.
fn run_seconds(effort: &Effort, criterion: &Criterion, qps: f64) -> f64 {
    let told_s = (RunLength::told_by(criterion) as f64 / qps).min(MOST_TIMES * effort.run_s);
    effort.run_s.max(LEAST_LIMITS * criterion.limit.as_secs()).max(told_s)
}

/// The standard error of the mean cost of the queries that a node is driven with.
pub(super) fn sampled_queries(node: &Node, log_queries: usize) -> f64 {
    let costs = node.workload().costs();
    sampled(&costs[node.driven_rows()], log_queries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::Objective;

    #[test]
    fn no_run_is_shorter_than_asked_for_whatever_the_deadline() {
        let of = |limit_ms: f64, qps| {
            run_seconds(&Effort::usual(), &Objective::default().within(Nanos::from_ms(limit_ms)), qps)
        };
        assert_eq!([0.05, 1.0, 100.0, 10_000.0].map(|limit_ms| of(limit_ms, 2000.0)), [10.0, 10.0, 10.0, 50.0]);
        // p99 is told by 10,000 queries.
        assert_eq!([of(100.0, 500.0), of(100.0, 5.0)], [20.0, 30.0]);
    }
}
