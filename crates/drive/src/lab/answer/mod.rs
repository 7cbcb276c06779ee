//! The whole question: which rate does this machine sustain, and how accurate are predictions?
//!
//! ```text
//!   all policies       simulate coarsely, with query costs alone ─▶ the policies near the best
//!   these, in turns    backlogs ─▶ Calibration: query costs under load
//!   these              CapacitySearch over seeds, with the machine profile at the backlogs' speed ─▶ predicted capacities
//!   the best, or all   live search from there ─▶ a rate that held, and a higher one that did not
//! ```
//!
//! For an answer, the best policy is driven live. The second one follows if its prediction exceeds the live capacity of
//! the first. For a validation, all policies are driven; the first two then take turns, A B B A, at one rate. Each live run has a forecast. Predictions do not see
//! the driven data: live runs have other seeds. If the log is large enough, they also have other queries.

mod drive;
mod predict;
mod search;

pub use drive::{Driven, DrivenRun, LiveCapacity};
pub use predict::Disagreement;
pub use search::{Estimate, LiveSearch, Side, Vote};

use std::time::{Duration, Instant};

use tandem_model::base::time::Nanos;
use tandem_model::sched::PolicyFactory;
use tandem_model::study::interval::predicted_half_width;
use tandem_model::study::{Capacity, Criterion, Objective, Progress, RunLength, StudyError};
use tandem_model::traffic::ArrivalProcess;

use self::drive::{LiveRuns, sampled_queries};
use self::predict::{forecast_runs, hindsight_qps, predict};
use super::{Calibration, LabError, Node, ServiceRow};
use crate::live;

/// The parameters of the question.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// Deadline after the arrival of a query.
    pub deadline: Nanos,
    /// The objective of each run.
    pub objective: Objective,
    /// The arrival process.
    pub process: ArrivalProcess,
    /// The seeds of simulated arrivals; live runs use the seeds after the last one.
    pub seeds: Vec<u64>,
    /// The effort for live runs.
    pub effort: Effort,
    /// Shares of the predicted capacity that a validation drives first, for delays.
    pub loads: Vec<f64>,
    /// Number of queries in the log, of which the driven ones are a sample.
    pub log_queries: usize,
}

/// The effort for live runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// The length of a live run, in seconds.
    pub run_s: f64,
    /// Most runs on each side.
    pub of: u32,
    /// Number of runs on a side that must agree.
    pub needed: u32,
    /// Whether all runs are driven even after enough agree.
    pub all: bool,
    /// Largest distance between the sides, as a share of the lower one.
    pub apart: f64,
    /// Time for the live runs: in total for an answer, per policy for a validation.
    pub budget: Duration,
    /// The half-width of the 90 % interval at which a [sequential search](LiveSearch) ends, as a share.
    pub precision: Option<f64>,
}

impl Effort {
    /// Two of three runs of 10 s per side, 5 % apart: about two minutes.
    #[must_use]
    pub fn usual() -> Self {
        Self {
            run_s: 10.0,
            of: 3,
            needed: 2,
            all: false,
            apart: 0.05,
            budget: Duration::from_secs(130),
            precision: None,
        }
    }

    /// Five runs of 30 s per side, 2.5 % apart: about ten minutes.
    #[must_use]
    pub fn proof() -> Self {
        Self {
            run_s: 30.0,
            of: 5,
            needed: 3,
            all: true,
            apart: 0.025,
            budget: Duration::from_secs(900),
            precision: None,
        }
    }

    /// Two of three runs of 3 s per side, 5 % apart: half a minute per policy.
    #[must_use]
    pub fn quick() -> Self {
        Self { run_s: 3.0, budget: Duration::from_secs(40), ..Self::usual() }
    }

    /// Duration of a run in seconds: the requested time, or several limits if that is longer. If queries are too few for the
    /// objective, the run is prolonged within bounds.
    #[must_use]
    pub fn seconds(&self, criterion: &Criterion, qps: f64) -> f64 {
        let told_s = (RunLength::told_by(criterion) as f64 / qps).min(MOST_TIMES * self.run_s);
        self.run_s.max(LEAST_LIMITS * criterion.limit.as_secs()).max(told_s)
    }

    /// As many runs as a precision needs, in at most four times the time.
    #[must_use]
    pub fn precise(self, precision: f64) -> Self {
        Self { of: 1, needed: 1, precision: Some(precision), budget: 4 * self.budget, ..self }
    }

    /// This effort with another run length; the budget is scaled in proportion.
    #[must_use]
    pub fn with_run(self, run_s: f64) -> Self {
        Self { run_s, budget: self.budget.mul_f64(run_s / self.run_s), ..self }
    }
}

/// The policies to drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The best policy, for an answer.
    Best,
    /// Every policy.
    All,
}

/// The results.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Predicted capacities, the best first: of the policies near the best, or of all.
    pub capacities: Vec<Capacity>,
    /// The other policies with their coarse capacities, based on query costs alone.
    pub out_of_reach: Vec<(String, f64)>,
    /// The results of live runs by policy, in order of the runs.
    pub driven: Vec<Driven>,
    /// Disagreements between backlogs on query costs, by policy.
    pub disagreements: Vec<(String, Disagreement)>,
    /// The query costs of each backlog and live run.
    pub service: Vec<ServiceRow>,
    /// Limits of the answer due to its arrivals, in words.
    pub caveats: Vec<String>,
}

impl Answer {
    /// The policy with the highest live capacity.
    #[must_use]
    pub fn best(&self) -> Option<(&Driven, LiveCapacity)> {
        let known = self.driven.iter().filter_map(|driven| Some((driven, driven.capacity()?)));
        known.max_by(|a, b| a.1.qps.total_cmp(&b.1.qps))
    }
}

/// Shortest live run, in limits: in a shorter run no query could become late.
const LEAST_LIMITS: f64 = 5.0;
/// Longest live run, as a multiple of the requested time, if queries are few.
const MOST_TIMES: f64 = 3.0;
/// Duration of the warm-up, in which clocks rise from idle.
const WARM_UP: Duration = Duration::from_millis(200);
/// The rate of pairs, as a share of the lower predicted capacity, and how far their seed is from those of other runs.
const PAIR_LOAD: f64 = 0.8;
const PAIR_SEEDS: u64 = 1 << 32;
/// Most policies that are driven for an answer.
const MOST_DRIVEN: usize = 2;

/// Answers the question for a running node. `answer` keeps all results, even after an interrupt or a failure.
///
/// # Errors
/// If a policy does not fit the machine, a run fails, or an [interrupt](live::interrupt) came.
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
    progress.doing("the dispatcher's time");
    node.measure_dispatcher(policies)?;
    progress.end();
    let predicted = predict(node, policies, question, scope, progress, answer)?;
    let budget = question.effort.budget;
    let mut until = Instant::now() + budget;
    let first_seed = question.seeds.last().map_or(0, |seed| seed.wrapping_add(1));
    for (at, one) in predicted.iter().enumerate() {
        let best_qps = answer.best().map_or(0.0, |(_, best)| best.qps);
        let goes_on = match scope {
            Scope::All => true,
            Scope::Best => at < MOST_DRIVEN && one.prediction.qps() > best_qps,
        };
        if !goes_on || one.prediction.qps() <= 0.0 {
            continue;
        }
        go_on()?;
        let mut driven = Driven {
            policy: one.policy.name().to_owned(),
            predicted: one.prediction.clone(),
            hindsight_qps: None,
            runs: Vec::new(),
            held: None,
            missed: None,
            pause_limited: None,
            sampled: sampled_queries(node, question.log_queries),
            precision: question.effort.precision,
            gpu: node.lane_pool().gpu().name(),
        };
        let loads: &[f64] = if scope == Scope::All { &question.loads } else { &[] };
        let service = &mut answer.service;
        if scope == Scope::All {
            until = Instant::now() + budget;
        }
        let (policy, seed) = (one.policy, first_seed);
        let done =
            LiveRuns { node, policy, question, progress, seed, began, until, service }.search(&mut driven, loads);
        // Short simulations, so that runs before an interrupt have their forecasts, too.
        forecast_runs(node, one, question, &mut driven)?;
        if scope == Scope::All && !live::interrupted() {
            driven.hindsight_qps = hindsight_qps(node, policy, question, &driven)?;
        }
        if !driven.runs.is_empty() {
            answer.driven.push(driven);
        }
        done?;
    }
    if let (Scope::All, [first, second, ..], [a, b, ..]) = (scope, &predicted[..], &mut answer.driven[..])
        && [&a.policy, &b.policy] == [first, second].map(|one| one.policy.name())
    {
        // Drift cancels in the ratios of runs that take turns, with equal arrivals.
        let qps = PAIR_LOAD * a.predicted.qps().min(b.predicted.qps());
        for (number, at) in [(1, 0), (1, 1), (2, 1), (2, 0)] {
            let (policy, driven) = if at == 0 { (first.policy, &mut *a) } else { (second.policy, &mut *b) };
            let (seed, service, until) = (first_seed.wrapping_add(PAIR_SEEDS), &mut answer.service, Instant::now());
            let mut runs = LiveRuns { node, policy, question, progress, seed, began, until, service };
            let known = driven.runs.len();
            runs.drive(qps, driven)?;
            driven.runs[known..].iter_mut().for_each(|run| run.pair = Some(number));
        }
        forecast_runs(node, first, question, a)?;
        forecast_runs(node, second, question, b)?;
    }
    go_on()
}

/// Returns an error after an interrupt.
fn go_on() -> Result<(), LabError> {
    if live::interrupted() { Err(StudyError::Interrupted.into()) } else { Ok(()) }
}

/// Progress of a step whose pieces end in any order, on any thread.
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

/// The prediction for a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The capacity, with costs of the machine profile at the speed of the backlogs, else of the backlogs alone.
    pub capacity: Capacity,
    /// The query costs of the backlogs.
    pub backlogs: Calibration,
    /// Whether a machine profile defines the costs, so that backlogs only define the machine's speed.
    pub has_machine_profile: bool,
    /// The relative standard deviation of the machine's speed over the backlogs.
    pub speed_sd: f64,
    /// A rehearsal: the capacity with costs of the backlogs; `None` without backlogs.
    pub rehearsal_qps: Option<f64>,
    /// Linear scaling: the capacity if all processors were always busy with queries that cost what they do alone.
    pub linear_qps: Option<f64>,
}

impl Prediction {
    /// A prediction from a machine profile alone.
    #[must_use]
    pub fn by_profile(capacity: Capacity) -> Self {
        let backlogs = Calibration::default();
        Self { capacity, backlogs, has_machine_profile: true, speed_sd: 0.0, rehearsal_qps: None, linear_qps: None }
    }

    /// The capacity under the objective.
    #[must_use]
    pub fn qps(&self) -> f64 {
        self.capacity.qps
    }

    /// Half-width of its 90 % interval: from the capacity divided by 1 plus this number to the capacity times it.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        predicted_half_width(&self.capacity, self.speed_sd)
    }
}
