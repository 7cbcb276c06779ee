//! The question itself: what does this machine sustain? And how near predictions come.
//!
//! ```text
//!   all policies       simulate coarsely, with what queries cost alone ─▶ who comes near the best
//!   these, in turns    backlogs ─▶ Calibration: what they cost while others are served
//!   these              CapacitySearch over seeds ─▶ predicted capacities
//!   the best, or all   live search from there ─▶ a rate that held, and a higher one that did not
//! ```
//!
//! Asked for the answer, the best policy is driven, and the next one too if it is predicted to sustain more than the first one
//! did live. Asked to validate, all policies are driven, and each live run is simulated beside. What is driven is held back from
//! predictions: live runs have other seeds, and queries whose costs no prediction has seen, where the log has more than were
//! measured for it.

mod drive;
mod interval;
mod predict;
mod search;

pub use drive::{Driven, DrivenRun, LiveCapacity};
pub use predict::Disagreement;
pub use search::Side;

use std::time::{Duration, Instant};

use self::drive::{LiveRuns, sampled_queries};
use self::predict::{predict, simulated_runs};
use super::{Capacities, LabError, Node, Objective, Progress, ServiceRow};
use crate::base::time::Nanos;
use crate::live;
use crate::query::ArrivalProcess;
use crate::sched::PolicyFactory;

/// How the question is put.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// From a query's arrival on.
    pub deadline: Nanos,
    /// What runs have to come up to.
    pub objective: Objective,
    /// How queries arrive.
    pub process: ArrivalProcess,
    /// What simulated arrivals are drawn from; live runs are drawn from those after the last.
    pub seeds: Vec<u64>,
    /// How much is driven.
    pub effort: Effort,
    /// Queries of the log, of which those that are driven are a sample.
    pub log_queries: usize,
}

/// How much is driven live.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// The length of a live run, in seconds.
    pub run_s: f64,
    /// Runs on each side at most,
    pub of: u32,
    /// and how many of them have to agree.
    pub needed: u32,
    /// Whether all of them are driven.
    pub all: bool,
    /// How far the sides may be apart, as a share of the lower one.
    pub apart: f64,
    /// Time for the live runs: of all policies for the answer, and of each in a validation.
    pub budget: Duration,
}

impl Effort {
    /// Two of three runs of 10 s agree on each side, 5 % apart: two minutes or so.
    #[must_use]
    pub fn usual() -> Self {
        Self { run_s: 10.0, of: 3, needed: 2, all: false, apart: 0.05, budget: Duration::from_secs(130) }
    }

    /// Five runs of 30 s on each side, 2.5 % apart: ten minutes or so.
    #[must_use]
    pub fn proof() -> Self {
        Self { run_s: 30.0, of: 5, needed: 3, all: true, apart: 0.025, budget: Duration::from_secs(900) }
    }

    /// Two of three runs of 3 s, 5 % apart: half a minute for each policy.
    #[must_use]
    pub fn quick() -> Self {
        Self { run_s: 3.0, budget: Duration::from_secs(40), ..Self::usual() }
    }

    /// The same with runs of another length, and time in proportion.
    #[must_use]
    pub fn with_run(self, run_s: f64) -> Self {
        Self { run_s, budget: self.budget.mul_f64(run_s / self.run_s), ..self }
    }
}

/// What is driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The best policy, for the answer.
    Best,
    /// Every policy, each run beside its prediction.
    All,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// What policies sustain by simulation, the best first: those that come near the best, or all.
    pub capacities: Vec<Capacities>,
    /// The others, and their coarse capacities, from what queries cost alone.
    pub out_of_reach: Vec<(String, f64)>,
    /// The policies that were driven, in that order.
    pub driven: Vec<Driven>,
    /// Where backlogs did not agree on what queries cost, by policy.
    pub disagreements: Vec<(String, Disagreement)>,
    /// What queries cost in each backlog and live run.
    pub service: Vec<ServiceRow>,
    /// Limits of the answer that follow from its arrivals, in words.
    pub caveats: Vec<String>,
}

impl Answer {
    /// The policy with the highest rate that held, if that has two sides.
    #[must_use]
    pub fn best(&self) -> Option<(&Driven, LiveCapacity)> {
        let known = self.driven.iter().filter_map(|driven| Some((driven, driven.capacity()?)));
        known.max_by(|a, b| a.1.qps.total_cmp(&b.1.qps))
    }
}

/// Shares of the predicted capacity at which a validation drives first, for delays.
const SHARES: [f64; 2] = [0.5, 0.8];
/// How long workers are kept busy before: clocks rise from idle within it.
const WARM_UP: Duration = Duration::from_millis(200);
/// For the answer so many policies are driven at most.
const MOST_DRIVEN: usize = 2;

/// Puts the question to a node that is at work. What was known before an interrupt or a failure is in `answer`, whatever comes
/// back.
///
/// # Errors
/// If a policy does not fit the machine, a run fails, or it was [interrupted](live::interrupt).
pub fn find_answer(
    node: &mut Node,
    policies: &[&dyn PolicyFactory],
    question: &Question,
    scope: Scope,
    progress: &dyn Progress,
    answer: &mut Answer,
) -> Result<(), LabError> {
    let found = find(node, policies, question, scope, progress, answer);
    progress.end();
    found
}

fn find(
    node: &mut Node,
    policies: &[&dyn PolicyFactory],
    question: &Question,
    scope: Scope,
    progress: &dyn Progress,
    answer: &mut Answer,
) -> Result<(), LabError> {
    let began = Instant::now();
    node.warm_up(WARM_UP)?;
    let predicted = predict(node, policies, question, scope, progress, answer)?;
    let budget = question.effort.budget;
    let mut until = Instant::now() + budget;
    let first_seed = question.seeds.last().map_or(0, |seed| seed.wrapping_add(1));
    for (at, one) in predicted.iter().enumerate() {
        let best_qps = answer.best().map_or(0.0, |(_, best)| best.qps);
        let goes_on = match scope {
            Scope::All => true,
            Scope::Best => at < MOST_DRIVEN && one.capacities.objective.qps > best_qps,
        };
        if !goes_on || one.capacities.objective.qps <= 0.0 {
            continue;
        }
        go_on()?;
        let mut driven = Driven {
            policy: one.policy.name().to_owned(),
            predicted: one.capacities.clone(),
            hindsight_qps: None,
            runs: Vec::new(),
            held: None,
            missed: None,
            sampled: sampled_queries(node, question.log_queries),
            gpu: node.lane_pool().gpu().name(),
        };
        let shares: &[f64] = if scope == Scope::All { &SHARES } else { &[] };
        let service = &mut answer.service;
        if scope == Scope::All {
            until = Instant::now() + budget;
        }
        let (policy, seed) = (one.policy, first_seed);
        let done =
            LiveRuns { node, policy, question, progress, seed, began, until, service }.search(&mut driven, shares);
        if scope == Scope::All && !live::interrupted() {
            simulated_runs(node, one, question, &mut driven)?;
        }
        if !driven.runs.is_empty() {
            answer.driven.push(driven);
        }
        done?;
    }
    go_on()
}

/// # Errors
/// If runs are to end.
fn go_on() -> Result<(), LabError> {
    if live::interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
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
