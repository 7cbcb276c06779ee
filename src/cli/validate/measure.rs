//! One policy: its predicted capacity, and live runs at rates around it.

use std::time::Duration;

use indicatif::ProgressBar;

use super::super::Failure;
use super::calibration::Calibration;
use super::lab::Lab;
use super::{Arguments, SHARES};
use crate::live;
use crate::query::at_rate;
use crate::report::summary::Summary;
use crate::report::validation::{ServiceRun, ValidationCapacityRow, ValidationRow};
use crate::sched::{PolicyKind, RunLog};
use crate::sim::{Capacity, Grid, NoMiss, SimRun, find_capacity, simulate, simulate_into};
use crate::time::Nanos;

/// Backlogs that are served before the first prediction.
const FIRST_BACKLOGS: usize = 5;
/// A live run is given up when its oldest query is this many deadlines old.
const HOPELESS_DEADLINES: u64 = 4;
/// How often the step between the last live rate that met all deadlines and the first that did not is halved.
const REFINEMENTS: usize = 2;
/// How many rates above [`SHARES`] are tried while no query misses, and the factor between them.
const EXTENSIONS: usize = 4;
const EXTENSION: f64 = 1.15;
/// The capacity is predicted from backlogs that were served before runs at rates within this share of the measured one:
/// a machine that is shared may have been a quarter slower half a minute before.
const NEAR: f64 = 0.15;

/// What came of one policy.
pub(super) struct Found {
    pub(super) rows: Vec<ValidationRow>,
    /// `None` if Ctrl-C came before it was known.
    pub(super) capacity: Option<ValidationCapacityRow>,
}

/// Predicts the capacity, then drives live at shares of it and narrows down where deadlines begin to be missed.
pub(super) fn validate_policy(
    lab: &mut Lab,
    policy: PolicyKind,
    arguments: &Arguments,
    deadline: Nanos,
) -> Result<Found, Failure> {
    lab.warm_up()?;
    let calibrations: Vec<Calibration> =
        (0..FIRST_BACKLOGS).map(|_| lab.calibrate(policy, &arguments.options.checked()?)).collect::<Result<_, _>>()?;
    let (first, count) = predict(lab, policy, arguments, deadline, &Calibration::median(&calibrations))?;
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(200));
    let mut trial = Trial {
        lab,
        policy,
        arguments,
        deadline,
        calibrations: Vec::new(),
        count,
        rows: Vec::new(),
        served: Vec::new(),
        progress,
        runs: 0,
        late_runs: 0,
    };

    for share in SHARES {
        if !trial.try_rate(share * first.low_qps)? {
            return Ok(Found { rows: trial.rows, capacity: None });
        }
    }
    for _ in 0..EXTENSIONS {
        let highest = trial.rows.iter().map(|row| row.rate_qps).fold(0.0, f64::max);
        if trial.first_miss().is_some() || !trial.try_rate(highest * EXTENSION)? {
            break;
        }
    }
    for _ in 0..REFINEMENTS {
        let Some(high) = trial.first_miss() else { break };
        let low = trial.highest_pass_below(high).unwrap_or(high / 2.0);
        if !trial.try_rate((low * high).sqrt())? {
            break;
        }
    }
    let high = trial.first_miss();
    let measured_qps = trial.highest_pass_below(high.unwrap_or(f64::INFINITY)).unwrap_or(0.0);
    trial.progress.finish_and_clear();
    if trial.late_runs > 0 {
        errln!(
            "warning: {policy}: something else kept this machine busy in {} of {} live runs, and measured delays include \
             it\n  (1 % of the queries came later than they should have by more than 1 % of the deadline)",
            trial.late_runs,
            trial.runs
        );
    }
    let near: Vec<Calibration> = trial
        .calibrations
        .iter()
        .filter(|(rate_qps, _)| (rate_qps - measured_qps).abs() <= NEAR * measured_qps)
        .map(|&(_, calibration)| calibration)
        .collect();
    // Where no run met all deadlines, the first ones are as good as any.
    let calibration = Calibration::median(if near.is_empty() { &calibrations } else { &near });
    // Of two runs at a rate the later: it was made because the first missed.
    let at_capacity =
        trial.served.iter().rev().find(|(rate_qps, _)| *rate_qps == measured_qps).map(|(_, served)| *served);
    let mut rows = trial.rows;
    rows.sort_by(|a, b| a.rate_qps.total_cmp(&b.rate_qps));
    let simulated_qps = |costs: Option<&Calibration>| {
        Ok::<_, Failure>(capacity(lab, policy, arguments, deadline, costs, count)?.low_qps)
    };
    let capacity = ValidationCapacityRow {
        policy: policy.name().to_owned(),
        deadline,
        predicted_qps: simulated_qps(Some(&calibration))?,
        measured_qps,
        measured_high_qps: high,
        queries: count,
        gpu: lab.gpu_name(),
        slowdown: calibration.slowdown,
        handoff: calibration.handoff,
        profiled_qps: simulated_qps(None)?,
        hindsight_qps: at_capacity.map(|costs| simulated_qps(Some(&costs))).transpose()?,
    };
    Ok(Found { rows, capacity: Some(capacity) })
}

/// The capacity by simulation, for runs of as many queries as arrive within `--seconds` at that capacity.
fn predict(
    lab: &Lab,
    policy: PolicyKind,
    arguments: &Arguments,
    deadline: Nanos,
    calibration: &Calibration,
) -> Result<(Capacity, usize), Failure> {
    let queries = lab.sim_queries(Some(calibration));
    // The run's length depends on the capacity and the capacity, a little, on the length: two rounds settle it.
    let length = |rate_qps: f64| ((rate_qps * arguments.seconds) as usize).clamp(200, 5_000_000);
    let rough = capacity(lab, policy, arguments, deadline, Some(calibration), length(lab.region_qps(&queries)?))?;
    let count = length(rough.low_qps);
    Ok((capacity(lab, policy, arguments, deadline, Some(calibration), count)?, count))
}

/// The capacity by simulation, for runs of `count` queries.
fn capacity(
    lab: &Lab,
    policy: PolicyKind,
    arguments: &Arguments,
    deadline: Nanos,
    calibration: Option<&Calibration>,
    count: usize,
) -> Result<Capacity, Failure> {
    let (model, queries) = (lab.model(calibration), lab.sim_queries(calibration));
    let region_qps = lab.region_qps(&queries)?;
    let (unit, drawn) = lab.draw(count);
    let grid = Grid { low_qps: region_qps * 1e-3, high_qps: region_qps * 1.5, step: 1.02, parts: 8 };
    let capacity = find_capacity(&grid, |rate| {
        let run = SimRun {
            model: &model,
            policy: lab.policy(policy, &arguments.options.checked()?)?,
            queries: &queries,
            arrivals: at_rate(&unit, rate).zip(drawn.iter().copied()),
            deadline,
        };
        let verdict = simulate_into(run, NoMiss::default(), |sink| sink.is_broken)?;
        Ok::<_, Failure>(!verdict.is_broken)
    })?;
    if capacity.low_qps <= 0.0 {
        return Err(Failure::input(format!(
            "{policy}: some query misses its deadline of {} ms at any rate: give --deadline-ms more",
            deadline.as_ms()
        )));
    }
    Ok(capacity)
}

/// The live runs of one policy.
struct Trial<'a> {
    lab: &'a mut Lab,
    policy: PolicyKind,
    arguments: &'a Arguments,
    deadline: Nanos,
    /// How this machine served right before a live run at a rate.
    calibrations: Vec<(f64, Calibration)>,
    count: usize,
    rows: Vec<ValidationRow>,
    /// For each live run its rate and what queries cost in it.
    served: Vec<(f64, Calibration)>,
    progress: ProgressBar,
    /// Live runs, and those in which the driver itself was late.
    runs: usize,
    late_runs: usize,
}

impl Trial<'_> {
    /// Simulates and drives at a rate. `false` if Ctrl-C came.
    ///
    /// Another program on the machine can hold up a run for longer than the deadline, the policy can't: a live run that
    /// misses where the simulator sees no miss is repeated once, and the better one counts. `attempts` says so. Each is
    /// predicted from a backlog that was served right before.
    fn try_rate(&mut self, rate_qps: f64) -> Result<bool, Failure> {
        let mut best: Option<ValidationRow> = None;
        for attempts in 1..=2 {
            let calibration = self.lab.calibrate(self.policy, &self.arguments.options.checked()?)?;
            self.calibrations.push((rate_qps, calibration));
            let predicted = self.simulated(rate_qps, &calibration)?;
            let Some(row) = self.driven(rate_qps, predicted, attempts)? else { return Ok(false) };
            let missed = |row: &ValidationRow| row.measured.missed + row.unanswered;
            let kept = match best.take() {
                Some(first) if missed(&first) <= missed(&row) => ValidationRow { attempts, ..first },
                _ => row,
            };
            let is_settled = kept.passed() || kept.predicted.missed > 0;
            best = Some(kept);
            if is_settled {
                break;
            }
        }
        self.rows.extend(best);
        Ok(true)
    }

    fn simulated(&self, rate_qps: f64, calibration: &Calibration) -> Result<Summary, Failure> {
        let queries = self.lab.sim_queries(Some(calibration));
        let (unit, drawn) = self.lab.draw(self.count);
        let run = SimRun {
            model: &self.lab.model(Some(calibration)),
            policy: self.lab.policy(self.policy, &self.arguments.options.checked()?)?,
            queries: &queries,
            arrivals: at_rate(&unit, rate_qps).zip(drawn),
            deadline: self.deadline,
        };
        let log = simulate(run)?;
        self.write_log("simulated", rate_qps, &log)?;
        Summary::of_log(&log, self.lab.machine()).ok_or_else(|| Failure::failed("no query was simulated"))
    }

    fn driven(&mut self, rate_qps: f64, predicted: Summary, attempts: u32) -> Result<Option<ValidationRow>, Failure> {
        self.progress.set_message(format!("live: {} at {rate_qps:.0} q/s", self.policy));
        let policy = self.lab.policy(self.policy, &self.arguments.options.checked()?)?;
        let hopeless = Nanos(self.deadline.0.saturating_mul(HOPELESS_DEADLINES));
        let outcome = self.lab.drive(policy, rate_qps, self.count, self.deadline, Some(hopeless))?;
        if outcome.interrupted() || live::interrupted() {
            return Ok(None);
        }
        self.runs += 1;
        self.late_runs += usize::from(outcome.lag_warning(self.deadline).is_some());
        let served = self.lab.note_service(self.policy, ServiceRun::Live, rate_qps, &outcome);
        self.served.push((rate_qps, served));
        self.write_log("live", rate_qps, &outcome.log)?;
        let measured = Summary::of_log(&outcome.log, self.lab.machine())
            .ok_or_else(|| Failure::failed(format!("{} at {rate_qps:.0} q/s: no query finished", self.policy)))?;
        Ok(Some(ValidationRow {
            policy: self.policy.name().to_owned(),
            rate_qps,
            predicted,
            measured,
            unanswered: outcome.unreleased + outcome.unfinished,
            attempts,
            gpu: self.lab.gpu_name(),
        }))
    }

    fn write_log(&self, source: &str, rate_qps: f64, log: &RunLog) -> Result<(), Failure> {
        if self.arguments.log {
            let name = format!("{}-{rate_qps:.0}-{source}.log.csv", self.policy);
            log.write(&self.lab.out().join("logs").join(name), &self.lab.provenance())?;
        }
        Ok(())
    }

    /// The lowest live rate that missed a deadline.
    fn first_miss(&self) -> Option<f64> {
        let missed = self.rows.iter().filter(|row| !row.passed()).map(|row| row.rate_qps);
        missed.min_by(f64::total_cmp)
    }

    /// The highest live rate below `high_qps` that met all deadlines.
    fn highest_pass_below(&self, high_qps: f64) -> Option<f64> {
        let passed = self.rows.iter().filter(|row| row.passed() && row.rate_qps < high_qps).map(|row| row.rate_qps);
        passed.max_by(f64::total_cmp)
    }
}
