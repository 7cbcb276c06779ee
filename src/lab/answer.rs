//! The question itself: what does this machine sustain?
//!
//! ```text
//!   each policy:  backlogs ─▶ Calibration ─▶ CapacitySearch over seeds ─▶ capacity, interval
//!   the best:     drive live at its capacity, and a tenth beyond ─▶ held, missed
//! ```
//!
//! A policy is simulated with what queries cost while *it* serves them here, not with what they cost alone. What the
//! simulator says is then driven for as long as the objective asks. If that fails, the answer was wrong, and it is told
//! so, with the highest of some lower rates that did hold.

use std::time::Duration;

use super::{
    Calibration, Capacities, CapacitySearch, Criterion, Drive, Judge, LabError, Node, Objective, Progress, RunLength,
    Verdict, draw, draw_all,
};
use crate::live;
use crate::query::ArrivalProcess;
use crate::sched::PolicyFactory;
use crate::time::Nanos;

/// How the question is put.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// From a query's arrival on.
    pub deadline: Nanos,
    /// What runs have to come up to.
    pub objective: Objective,
    /// How queries arrive.
    pub process: ArrivalProcess,
    /// What simulated arrivals are drawn from; live ones are drawn from the one after the last.
    pub seeds: Vec<u64>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// What each policy sustains by simulation, the best first.
    pub capacities: Vec<Capacities>,
    /// How the best one's live runs came out; `None` if they were interrupted, or no rate is low enough.
    pub live: Option<LiveCheck>,
    /// Where the live run at the capacity failed: the highest of some lower rates that held.
    pub held_below: Option<LiveRate>,
}

/// A live run at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveRate {
    /// Queries a second.
    pub qps: f64,
    /// What came of it: the better of two runs, if the first failed.
    pub verdict: Verdict,
    /// How many runs there were.
    pub attempts: u32,
    /// What queries cost in it, over what they cost when the machine was calibrated, on the class where that is most:
    /// well above 1, something else kept the machine busy.
    pub slowdown: f64,
}

/// Live runs that tell whether a capacity is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveCheck {
    /// At the capacity.
    pub at: LiveRate,
    /// A tenth beyond.
    pub beyond: LiveRate,
}

/// Backlogs that are served to know what queries cost while others are served.
const BACKLOGS: u64 = 5;
/// How long workers are kept busy before: clocks rise from idle within it.
const WARM_UP: Duration = Duration::from_millis(200);
/// How far beyond the capacity a second run is driven.
const BEYOND: f64 = 1.1;
/// Where the run at the capacity fails, lower ones are tried: these shares of it.
const BELOW: [f64; 5] = [0.95, 0.9, 0.8, 0.65, 0.5];
/// A live run has no more queries than this, all of whose log is kept.
const MOST_QUERIES: usize = 3_000_000;

/// Puts the question to a node that is at work.
///
/// # Errors
/// If a policy does not fit the machine, or a run fails.
pub fn answer(
    node: &mut Node,
    policies: &[&dyn PolicyFactory],
    question: &Question,
    progress: &dyn Progress,
) -> Result<Answer, LabError> {
    let Some(&last_seed) = question.seeds.last() else { return Err(LabError::NothingToSchedule) };
    let mut found: Vec<(Capacities, &dyn PolicyFactory)> = Vec::new();
    progress.doing("what queries cost while others are served");
    node.warm_up(WARM_UP)?;
    // In turns, so that a machine whose speed drifts is as slow to one policy as to another.
    let mut calibrations: Vec<Vec<Calibration>> = vec![Vec::new(); policies.len()];
    for round in 0..BACKLOGS {
        for (&policy, calibrations) in policies.iter().zip(&mut calibrations) {
            calibrations.push(node.calibrate(policy, last_seed.wrapping_add(1 + round))?);
        }
    }
    let calibrations: Vec<Calibration> = calibrations.iter().map(|several| Calibration::median(several)).collect();
    for (&policy, calibration) in policies.iter().zip(&calibrations) {
        if live::interrupted() {
            break;
        }
        progress.doing(&format!("simulating {}", policy.name()));
        let arrivals = draw_all(&question.process, &question.seeds, 0, node.workload().rows.len());
        let experiment = node.experiment(Some(calibration), arrivals, question.deadline);
        let search = CapacitySearch::new(&experiment, question.objective, RunLength::default())?.beside_no_miss();
        found.push((search.of(policy)?, policy));
    }
    let mut order: Vec<usize> = (0..found.len()).collect();
    order.sort_by(|&a, &b| found[b].0.objective.qps.total_cmp(&found[a].0.objective.qps));
    let best = order.first().map(|&best| (found[best].0.objective.qps, found[best].1, calibrations[best]));
    let (live, held_below) = match best {
        Some((qps, policy, calibration)) if qps > 0.0 => {
            Trial { node, policy, calibration, question, progress }.check(qps)?
        }
        _ => (None, None),
    };
    progress.end();
    Ok(Answer { capacities: order.into_iter().map(|i| found[i].0.clone()).collect(), live, held_below })
}

/// The live runs of the best policy.
struct Trial<'a> {
    node: &'a mut Node,
    policy: &'a dyn PolicyFactory,
    calibration: Calibration,
    question: &'a Question,
    progress: &'a dyn Progress,
}

impl Trial<'_> {
    /// Drives at the capacity and beyond, and below where that fails.
    fn check(mut self, qps: f64) -> Result<(Option<LiveCheck>, Option<LiveRate>), LabError> {
        let Some(at) = self.try_rate(qps)? else { return Ok((None, None)) };
        let mut held_below = None;
        if !at.verdict.holds() {
            for share in BELOW {
                match self.try_rate(qps * share)? {
                    Some(lower) if lower.verdict.holds() => {
                        held_below = Some(lower);
                        break;
                    }
                    Some(_) => {}
                    None => break,
                }
            }
        }
        let beyond = self.try_rate(qps * BEYOND)?;
        Ok((beyond.map(|beyond| LiveCheck { at, beyond }), held_below))
    }

    /// Another program on the machine can hold up a run for longer than the deadline: one that fails is repeated once,
    /// and the better one counts. `None` if it was interrupted.
    fn try_rate(&mut self, qps: f64) -> Result<Option<LiveRate>, LabError> {
        let mut best: Option<(Verdict, f64)> = None;
        for attempts in 1..=2 {
            let Some(this) = self.drive(qps)? else { return Ok(None) };
            let kept = best.filter(|(best, _)| best.late <= this.0.late).unwrap_or(this);
            let (verdict, slowdown) = kept;
            if verdict.holds() || attempts == 2 {
                return Ok(Some(LiveRate { qps, verdict, attempts, slowdown }));
            }
            best = Some(kept);
        }
        Ok(None)
    }

    /// The verdict, and how much slower the machine was than when it was calibrated.
    fn drive(&mut self, qps: f64) -> Result<Option<(Verdict, f64)>, LabError> {
        let Question { deadline, objective, process, seeds } = self.question;
        let criterion: Criterion = objective.within(*deadline);
        // As long as a run that tells must be, whatever a search may do with less.
        let count = RunLength::full(&criterion, qps).min(MOST_QUERIES);
        let seconds = count as f64 / qps;
        self.progress.doing(&format!("live: {} at {qps:.0} q/s, {seconds:.0} s", self.policy.name()));
        let seed = seeds.last().map_or(0, |seed| seed.wrapping_add(1));
        let arrivals = draw(process, seed, count, self.node.workload().rows.len());
        let outcome = self.node.drive_well(self.policy, Drive::new(qps, &arrivals, criterion.limit.max(*deadline)))?;
        if outcome.interrupted() || live::interrupted() {
            return Ok(None);
        }
        let now = self.node.calibration(&outcome);
        let slowdown =
            self.node.machine().classes().map(|class| now.slowdown[class] / self.calibration.slowdown[class]);
        let slowdown = slowdown.fold(0.0, f64::max);
        Ok(Some((Judge::of_log(criterion, &outcome.log, count, qps), slowdown)))
    }
}
