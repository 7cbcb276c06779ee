//! The question itself: what does this machine sustain?
//!
//! ```text
//!   all policies       simulate coarsely, with what queries cost alone ─▶ who comes near the best
//!   these, in turns    backlogs ─▶ Calibration: what they cost while others are served
//!   these              CapacitySearch over seeds ─▶ capacity, interval
//!   the best           drive live at its capacity ─▶ held, or: what queries cost in that run, and simulate again
//!   what held          drive live a tenth beyond
//! ```
//!
//! A policy is simulated with what queries cost while *it* serves them here, not with what they cost alone. That takes
//! backlogs, a fraction of a second each, so that it is done only for policies that may turn out to be the best. What the
//! simulator says is then driven for as long as the objective asks. If that fails, the answer was wrong, and it is told
//! so. The run that refuted it was the best measurement yet of what queries cost under such load: it is simulated again
//! with that, and whichever policy is the best now is driven. If the simulator stays with its answer, or falls far below
//! what that very run has answered, some lower rates are tried.

mod backlogs;
mod reach;
mod trial;

pub use backlogs::Disagreement;

use std::time::Duration;

use rayon::prelude::*;

use self::reach::{quick_capacities, within_reach};
use self::trial::Trial;
use super::{
    Calibration, Capacities, CapacitySearch, LabError, Node, Objective, Progress, RunLength, Verdict, draw_all,
};
use crate::base::time::Nanos;
use crate::live;
use crate::query::ArrivalProcess;
use crate::sched::PolicyFactory;
use crate::sim::Experiment;

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
    /// A live run takes no longer, unless it takes a hundred limits: at a few queries a second, those that an objective
    /// asks for would be hours.
    pub live_most: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What each policy sustains by simulation, the best first: those that come near the best.
    pub capacities: Vec<Capacities>,
    /// The others, and their coarse capacities, from what queries cost alone.
    pub out_of_reach: Vec<(String, f64)>,
    /// Where backlogs did not agree on what queries cost while the best policy serves them.
    pub disagreements: Vec<Disagreement>,
    /// Answers that were driven before the last one and did not hold, with their policies.
    pub refuted: Vec<(String, LiveRate)>,
    /// Whether the last run at a capacity failed though what queries cost in it explains no such thing: something else
    /// held the workers up.
    pub disturbed: bool,
    /// How the best one's live runs came out; `None` if they were interrupted, or no rate is low enough.
    pub live: Option<LiveCheck>,
    /// Where the live run at the capacity failed: the highest of some lower rates that held.
    pub held_below: Option<LiveRate>,
}

impl Answer {
    /// Whether the machine sustained more than was simulated, too, so that the capacity is no more than a lower bound.
    #[must_use]
    pub fn is_lower_bound(&self) -> bool {
        self.live.is_some_and(|live| live.at.verdict.holds() && live.beyond.verdict.holds())
    }

    /// The highest rate that held live; `None` if none did, or none was driven.
    #[must_use]
    pub fn held_qps(&self) -> Option<f64> {
        let held = |rate: &LiveRate| rate.verdict.holds().then_some(rate.qps);
        let driven = self.live.iter().flat_map(|live| [live.at, live.beyond]).chain(self.held_below);
        driven.filter_map(|rate| held(&rate)).reduce(f64::max)
    }
}

/// A live run at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveRate {
    /// Queries a second.
    pub qps: f64,
    /// What came of it: at the capacity the better of two runs, if the first failed.
    pub verdict: Verdict,
    /// How many runs there were.
    pub attempts: u32,
    /// What queries cost in it, over what they cost when the machine was calibrated, on the class where that is most:
    /// well above 1, something else kept the machine busy.
    pub slowdown: f64,
    /// Queries answered a second, over the whole run.
    pub answered_qps: f64,
}

/// Live runs that tell whether a capacity is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveCheck {
    /// At the capacity.
    pub at: LiveRate,
    /// A tenth beyond.
    pub beyond: LiveRate,
}

/// So many answers may be refuted before lower rates are tried.
const REFUTED_MOST: usize = 3;
/// A new answer that comes so near the one that was refuted is the same one.
const SAME: f64 = 0.98;
/// What is simulated with the costs of a run must come up to this share of what that run itself has answered. Below, the
/// run was not slow but disturbed: another program held the workers up, for longer than queries take.
const CREDIBLE: f64 = 0.5;

/// How long workers are kept busy before: clocks rise from idle within it.
const WARM_UP: Duration = Duration::from_millis(200);

/// Puts the question to a node that is at work. If it is [interrupted](live::interrupt), the answer is what was known by then.
///
/// # Errors
/// If a policy does not fit the machine, or a run fails.
pub fn answer(
    node: &mut Node,
    policies: &[&dyn PolicyFactory],
    question: &Question,
    progress: &dyn Progress,
) -> Result<Answer, LabError> {
    let mut answer = Answer::default();
    let found = find(node, policies, question, progress, &mut answer);
    progress.end();
    match found {
        Ok(()) | Err(LabError::Interrupted) => Ok(answer),
        Err(e) => Err(e),
    }
}

fn find(
    node: &mut Node,
    policies: &[&dyn PolicyFactory],
    question: &Question,
    progress: &dyn Progress,
    answer: &mut Answer,
) -> Result<(), LabError> {
    let coarse_qps = quick_capacities(node, policies, question, progress)?;
    let (near, out_of_reach) = within_reach(&coarse_qps);
    let near: Vec<&dyn PolicyFactory> = near.into_iter().map(|i| policies[i]).collect();
    answer.out_of_reach = out_of_reach.into_iter().map(|i| (policies[i].name().to_owned(), coarse_qps[i])).collect();
    go_on()?;
    node.warm_up(WARM_UP)?;
    let backlogs = backlogs::serve(node, &near, question, progress)?;
    go_on()?;
    let mut calibrations: Vec<Calibration> = if one_service(node) {
        // All backlogs tell of the same, and interference with a few of them weighs less.
        vec![Calibration::median(&backlogs.concat()); near.len()]
    } else {
        backlogs.iter().map(|several| Calibration::median(several)).collect()
    };
    // Where a machine file says what serving costs, backlogs are no more than a check of it.
    let has_file = !node.model().is_exact();
    let reckoned: Vec<Option<Calibration>> = calibrations.iter().map(|&one| (!has_file).then_some(one)).collect();
    let mut found = simulate(node, &near, &reckoned, question, progress)?;
    loop {
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_by(|&a, &b| found[b].objective.qps.total_cmp(&found[a].objective.qps));
        answer.capacities = order.iter().map(|&i| found[i].clone()).collect();
        let Some(&best) = order.first().filter(|&&best| found[best].objective.qps > 0.0) else { return Ok(()) };
        answer.disagreements = backlogs::disagreements(node.machine(), &backlogs[best]);
        let qps = found[best].objective.qps;
        let mut trial = Trial { node, policy: near[best], calibration: calibrations[best], question, progress };
        let Some((at, cost)) = trial.at(qps)? else { return Ok(()) };
        if at.verdict.holds() {
            answer.live = trial.beyond(qps)?.map(|beyond| LiveCheck { at, beyond });
            return Ok(());
        }
        let refuted = (near[best].name().to_owned(), at);
        let again = match simulate(node, &near[best..=best], &[Some(cost)], question, progress) {
            Ok(mut again) => again.remove(0),
            // That it did not hold is known all the same.
            Err(e) => {
                answer.refuted.push(refuted);
                return Err(e);
            }
        };
        answer.disturbed = again.objective.qps < CREDIBLE * at.answered_qps;
        if answer.disturbed || answer.refuted.len() == REFUTED_MOST || again.objective.qps > SAME * qps {
            let mut trial = Trial { node, policy: near[best], calibration: calibrations[best], question, progress };
            answer.live = trial.beyond(qps)?.map(|beyond| LiveCheck { at, beyond });
            answer.held_below = trial.below(qps)?;
            return Ok(());
        }
        answer.refuted.push(refuted);
        (calibrations[best], found[best]) = (cost, again);
    }
}

/// # Errors
/// If runs are to end.
fn go_on() -> Result<(), LabError> {
    if live::interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
}

/// Whether queries take the same under every policy: where there is one class of processor, and nothing is batched.
fn one_service(node: &Node) -> bool {
    node.machine().classes().count() == 1 && node.model().batches.iter().all(|(_, batches)| batches.is_none())
}

/// What each policy sustains, all at once: each with what queries cost while it serves them.
fn simulate(
    node: &Node,
    policies: &[&dyn PolicyFactory],
    calibrations: &[Option<Calibration>],
    question: &Question,
    progress: &dyn Progress,
) -> Result<Vec<Capacities>, LabError> {
    let rows = node.workload().rows.len();
    let drawn = || draw_all(&question.process, &question.seeds, 0, rows);
    let calibrated = |one: &Option<Calibration>| node.experiment(one.as_ref(), drawn(), question.deadline);
    let experiments: Vec<Experiment> = calibrations.iter().map(calibrated).collect();
    let steps = Steps::new(progress, "simulating those near the best", policies.len() * (question.seeds.len() + 1));
    let of = |(experiment, &policy): (&Experiment, &&dyn PolicyFactory)| {
        let search = CapacitySearch::new(experiment, question.objective, RunLength::default())?
            .beside_no_miss()
            .of_sampled_queries();
        let mut found = search.of_all(&[policy], &|| steps.done())?;
        steps.done();
        // One policy, one answer.
        Ok(found.remove(0))
    };
    let found: Vec<Result<Capacities, LabError>> = experiments.par_iter().zip(policies).map(of).collect();
    progress.end();
    found.into_iter().collect()
}

/// Pieces of a step that end in any order, on any thread.
struct Steps<'a> {
    progress: &'a dyn Progress,
    done: std::sync::atomic::AtomicU64,
    of: u64,
}

impl<'a> Steps<'a> {
    fn new(progress: &'a dyn Progress, step: &'static str, of: usize) -> Self {
        progress.begin(step, of as u64);
        Self { progress, done: 0.into(), of: of as u64 }
    }

    fn done(&self) {
        let done = 1 + self.done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.progress.reach(done, self.of);
    }
}
