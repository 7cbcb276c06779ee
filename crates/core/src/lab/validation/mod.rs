//! Predicted beside measured: a policy's capacity by simulation, and live runs at rates around it.
//!
//! ```text
//! backlogs ─▶ Calibration ─▶ simulate ─▶ predicted capacity ─▶ rates around it ─┐
//!    ▲           ▲                              │                               ▼
//!    └───────────┼── a tenth above ─────────────┘                               │
//!                └───────────── before each live run one more ◀──── drive live at each
//! ```

pub(super) mod calibration;
pub(super) mod compared;

mod repeats;
mod trial;

use std::time::Instant;

use rayon::prelude::*;

use super::{
    Calibration, CapacitySearch, Compared, Criterion, LabError, Node, Objective, Progress, RunLength, ServiceRow,
    ServiceRun, Summary, Verdict, draw_all,
};
use crate::base::machine::PerClass;
use crate::base::time::Nanos;
use crate::live::{self, LiveOutcome};
use crate::query::ArrivalProcess;
use crate::sched::{PolicyFactory, RunLog};
use crate::sim::{Arrivals, Experiment};

/// One policy at one rate, simulated and driven live with the same arrivals and queries.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidationRow {
    /// The policy's name.
    pub policy: String,
    /// The rate offered.
    pub rate_qps: f64,
    /// What the simulator predicts.
    pub predicted: Summary,
    /// What was measured.
    pub measured: Summary,
    /// Whether the simulated run comes up to the objective.
    pub predicted_verdict: Verdict,
    /// Whether the live run does: what it did not answer is late.
    pub verdict: Verdict,
    /// Queries that the live run never released or never finished: its backlog was hopeless.
    pub unanswered: usize,
    /// Live runs at this rate: a second one is made if the first failed and the prediction did not.
    pub attempts: u32,
    /// What stood in the GPU's place: `real`, `replay` or `none`.
    pub gpu: &'static str,
}

impl ValidationRow {
    /// Whether the live run came up to the objective.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.verdict.holds()
    }
}

/// One policy's highest rate that comes up to the objective.
#[derive(Clone, Debug, PartialEq)]
pub struct ValidationCapacityRow {
    /// The policy's name.
    pub policy: String,
    /// What runs came up to.
    pub criterion: Criterion,
    /// By simulation; where an interrupt ended that, the first one, which the rates were chosen by.
    pub predicted_qps: f64,
    /// The highest live rate below the first that failed.
    pub measured_qps: f64,
    /// The lowest live rate that failed; `None` if none did.
    pub measured_high_qps: Option<f64>,
    /// Queries a run.
    pub queries: usize,
    /// What stood in the GPU's place.
    pub gpu: &'static str,
    /// Time at work while serving, over the time that the same queries took alone: what predictions reckon with.
    pub slowdown: PerClass<f64>,
    /// What handing a query over and its results back takes beyond.
    pub handoff: PerClass<Nanos>,
    /// The capacity by simulation with what backlogs took right before runs near it: a check of what a machine file says.
    /// Where there is none, the prediction itself. This and the next two are `None` if an interrupt ended their simulation.
    pub backlog_qps: Option<f64>,
    /// The capacity by simulation if queries took exactly what they took when they were profiled alone.
    pub profiled_qps: Option<f64>,
    /// The capacity by simulation with what queries took in the live run that sets `measured_qps`: what is left of the
    /// error then is the simulator's, the rest that of costs found beforehand. `None`, too, if no live run held.
    pub hindsight_qps: Option<f64>,
}

impl ValidationCapacityRow {
    /// (predicted - measured) / measured.
    #[must_use]
    pub fn error(&self) -> f64 {
        (self.predicted_qps - self.measured_qps) / self.measured_qps
    }
}

/// What came of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Validated {
    /// By rate.
    pub rows: Vec<ValidationRow>,
    /// `None` if the runs were interrupted before it was known.
    pub capacity: Option<ValidationCapacityRow>,
    /// Live runs.
    pub runs: usize,
    /// Those in which the driver itself was late.
    pub late_runs: usize,
    /// Rates that were driven several times, with the same arrivals each time.
    pub compared: Vec<Compared>,
}

/// How a validation is done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValidationOptions {
    /// From a query's arrival on.
    pub deadline: Nanos,
    /// What runs have to come up to.
    pub objective: Objective,
    /// How long a live run near the predicted capacity lasts, or five deadlines if that is longer; those far below, which only show
    /// delays, take half of it.
    pub seconds: f64,
    /// Draws arrivals and queries.
    pub seed: u64,
    /// How often each of the rates is driven at which delays are compared.
    pub repeats: u32,
}

impl ValidationOptions {
    /// How many seconds a run near the predicted capacity is to last.
    #[must_use]
    pub fn lasts_s(&self) -> f64 {
        self.seconds.max(LEAST_DEADLINES * self.deadline.as_secs())
    }
}

/// The log of a run, on offer to whoever keeps logs.
#[derive(Clone, Copy, Debug)]
pub struct LoggedRun<'a> {
    /// The policy's name.
    pub policy: &'a str,
    /// The rate.
    pub rate_qps: f64,
    /// Whether it was driven, not simulated.
    pub is_live: bool,
    /// What happened.
    pub log: &'a RunLog,
}

/// Keeps a log, or lets it go.
pub type LogSink<'a> = dyn FnMut(LoggedRun<'_>) -> std::io::Result<()> + 'a;

/// Fewest and most queries of a run: at millions a second the delays of half a second tell whether they grow.
const RUN_QUERIES: (usize, usize) = (200, 1_500_000);
/// A run near the capacity lasts for so many deadlines at least, whatever it is to last: in a shorter one even a rate far too high has
/// no time to be late.
const LEAST_DEADLINES: f64 = 5.0;
/// For that it may have so many queries.
const MOST_QUERIES: usize = 10_000_000;

/// Compares what is predicted of a node with what it does, policy by policy.
pub struct Validation<'a> {
    pub(super) node: &'a mut Node,
    pub(super) options: ValidationOptions,
    pub(super) progress: &'a dyn Progress,
    pub(super) keep: &'a mut LogSink<'a>,
    /// Backlogs served so far: each has draws of its own.
    backlogs: u64,
    /// What the policy that is looked at is thought to sustain; backlogs come a tenth faster.
    pub(super) sustained_qps: Option<f64>,
    /// When the first policy's began.
    began: Instant,
    service: Vec<ServiceRow>,
}

impl std::fmt::Debug for Validation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validation").field("options", &self.options).finish_non_exhaustive()
    }
}

impl<'a> Validation<'a> {
    /// Of this node; `keep` is offered every log.
    #[must_use]
    pub fn new(
        node: &'a mut Node,
        options: ValidationOptions,
        progress: &'a dyn Progress,
        keep: &'a mut LogSink<'a>,
    ) -> Self {
        Self {
            node,
            options,
            progress,
            keep,
            backlogs: 0,
            sustained_qps: None,
            began: Instant::now(),
            service: Vec::new(),
        }
    }

    /// What queries cost in each run so far.
    #[must_use]
    pub fn service(&self) -> &[ServiceRow] {
        &self.service
    }

    /// Measures how this machine serves under a policy now: a backlog of queries, drawn as no other run draws them.
    pub(super) fn calibrate(&mut self, policy: &dyn PolicyFactory) -> Result<Calibration, LabError> {
        self.backlogs += 1;
        let seed = self.options.seed.wrapping_add(self.backlogs);
        let (rate_qps, outcome) = self.node.serve_backlog(policy, self.sustained_qps, seed)?;
        // A part of a backlog tells nothing.
        if outcome.interrupted() || live::interrupted() {
            return Err(LabError::Interrupted);
        }
        Ok(self.note_service(policy, ServiceRun::Backlog, rate_qps, &outcome))
    }

    /// What queries cost in a run. Keeps it for [`service`](Self::service).
    pub(super) fn note_service(
        &mut self,
        policy: &dyn PolicyFactory,
        run: ServiceRun,
        rate_qps: f64,
        outcome: &LiveOutcome,
    ) -> Calibration {
        let found = self.node.calibration(outcome);
        self.service.push(ServiceRow {
            policy: policy.name().to_owned(),
            at: self.began.elapsed(),
            run,
            rate_qps,
            queries: outcome.log.rows.len(),
            slowdown: found.slowdown,
            handoff: found.handoff,
            device: found.device,
            host: found.host,
            decision: found.decision,
        });
        found
    }

    /// The arrivals of runs: the same for the simulator and the live driver, and for every policy and rate.
    pub(super) fn draw(&self, count: usize) -> Arrivals {
        Arrivals::drawn(&ArrivalProcess::Poisson, self.options.seed, count, self.node.workload().rows.len())
    }

    /// What a simulation without a live run reckons with: the machine file if there is one, else what backlogs took.
    pub(super) fn known<'c>(&self, backlogs: &'c Calibration) -> Option<&'c Calibration> {
        self.node.model().is_exact().then_some(backlogs)
    }

    /// The capacity by simulation, for runs of as many queries as arrive at that capacity in the time a run lasts.
    pub(super) fn predict(
        &self,
        policy: &dyn PolicyFactory,
        calibration: &Calibration,
    ) -> Result<(f64, usize), LabError> {
        // The run's length depends on the capacity and the capacity, a little, on the length.
        let rate_qps = self.quick_capacity(policy, calibration)?;
        let least = (LEAST_DEADLINES * self.options.deadline.as_secs() * rate_qps) as usize;
        let count = self.queries_in(self.options.seconds, rate_qps).max(least.min(MOST_QUERIES));
        let found = self.capacities(policy, &[self.known(calibration)], count)?;
        let qps = found.into_iter().flatten().next().ok_or(LabError::Interrupted)?;
        Ok((qps, count))
    }

    /// The capacity by simulation, roughly.
    pub(super) fn quick_capacity(
        &self,
        policy: &dyn PolicyFactory,
        calibration: &Calibration,
    ) -> Result<f64, LabError> {
        let arrivals = draw_all(&ArrivalProcess::Poisson, &[self.options.seed], 0, self.node.workload().rows.len());
        let experiment = self.node.experiment(self.known(calibration), arrivals, self.options.deadline);
        let search = CapacitySearch::new(&experiment, self.options.objective, RunLength::default())?;
        Ok(search.estimate_capacity_coarse(&[policy], &|| ())?.into_iter().sum())
    }

    /// Queries of a run at a rate that is to last so long, as far as it may.
    pub(super) fn queries_in(&self, seconds: f64, rate_qps: f64) -> usize {
        ((rate_qps * seconds) as usize).clamp(RUN_QUERIES.0, RUN_QUERIES.1)
    }

    /// The capacities by simulation with what queries cost by each calibration, or alone, for runs of `count` queries:
    /// those of the live runs. `None` for those that an interrupt ended.
    pub(super) fn capacities(
        &self,
        policy: &dyn PolicyFactory,
        calibrations: &[Option<&Calibration>],
        count: usize,
    ) -> Result<Vec<Option<f64>>, LabError> {
        let arrivals = self.draw(count);
        let options = self.options;
        let experiment =
            |&found: &Option<&Calibration>| self.node.experiment(found, vec![arrivals.clone()], options.deadline);
        let experiments: Vec<Experiment> = calibrations.iter().map(experiment).collect();
        let of = |experiment: &Experiment| {
            let search = CapacitySearch::new(experiment, options.objective, RunLength::Exactly(count))?;
            let found = search.of(policy)?.objective;
            if found.qps <= 0.0 {
                let criterion = options.objective.within(options.deadline);
                return Err(LabError::DeadlineTooShort { policy: found.policy, criterion });
            }
            Ok(found.qps)
        };
        let found: Vec<Result<f64, LabError>> = experiments.par_iter().map(of).collect();
        let known = |found: Result<f64, LabError>| match found {
            Err(LabError::Interrupted) => Ok(None),
            found => found.map(Some),
        };
        found.into_iter().map(known).collect()
    }

    /// What runs are judged by.
    pub(super) fn criterion(&self) -> Criterion {
        self.options.objective.within(self.options.deadline)
    }
}
