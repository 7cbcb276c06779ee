//! The live runs of one policy, each beside its simulation.

use std::time::Duration;

use crate::base::time::Nanos;
use crate::lab::{
    Calibration, Judge, LabError, LiveReport, LiveRunSpec, LoggedRun, ServiceRun, Summary, Validated, Validation,
    ValidationCapacityRow, ValidationRow, Verdict,
};
use crate::live::{self, GpuLane};
use crate::sched::{PolicyFactory, RunLog};
use crate::sim::simulate;

/// Backlogs that are served before the first prediction.
const FIRST_BACKLOGS: usize = 5;
/// How long workers are kept busy before: clocks rise from idle within it.
const WARM_UP: Duration = Duration::from_millis(200);
/// Rates to drive live, as shares of the predicted capacity.
const SHARES: [f64; 7] = [0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25];
/// Runs below this share of the predicted capacity show delays and need no more than half the time.
const FAR_BELOW: f64 = 0.85;
/// How often the step between the last live rate that held and the first that did not is halved.
const REFINEMENTS: usize = 2;
/// How many rates above [`SHARES`] are tried while all hold, and the factor between them.
const EXTENSIONS: usize = 4;
const EXTENSION: f64 = 1.15;
/// The capacity is predicted from backlogs that were served before runs at rates within this share of the measured one:
/// a machine that is shared may have been a quarter slower half a minute before.
const NEAR: f64 = 0.15;

impl Validation<'_> {
    /// Predicts a policy's capacity, then drives live at shares of it and narrows down where runs begin to fail the
    /// objective. What was measured up to an interrupt or a failure is in `validated`, whatever comes back.
    ///
    /// # Errors
    /// If the policy does not fit the machine, no rate is low enough, a run fails, or it is [interrupted](live::interrupt).
    pub fn policy(&mut self, policy: &dyn PolicyFactory, validated: &mut Validated) -> Result<(), LabError> {
        let done = self.validate(policy, validated);
        self.progress.end();
        validated.rows.sort_by(|a, b| a.rate_qps.total_cmp(&b.rate_qps));
        done
    }

    fn validate(&mut self, policy: &dyn PolicyFactory, validated: &mut Validated) -> Result<(), LabError> {
        self.node.warm_up(WARM_UP)?;
        self.progress.doing(&format!("{}: what queries cost while others are served", policy.name()));
        self.sustained_qps = None;
        let flooded = self.calibrate(policy)?;
        // An estimate that finds no rate low enough is no rate to go by.
        self.sustained_qps = Some(self.quick_capacity(policy, &flooded)?).filter(|&qps| qps > 0.0);
        let first: Vec<Calibration> = (0..FIRST_BACKLOGS).map(|_| self.calibrate(policy)).collect::<Result<_, _>>()?;
        self.progress.doing(&format!("{}: simulating", policy.name()));
        let (predicted_qps, count) = self.predict(policy, &Calibration::median(&first))?;
        self.sustained_qps = Some(predicted_qps);
        self.compare(policy, predicted_qps, &mut validated.compared)?;
        Trial::new(self, policy, (predicted_qps, count), validated).run(&first)
    }
}

/// The live runs of one policy.
struct Trial<'v, 'a> {
    validation: &'v mut Validation<'a>,
    policy: &'v dyn PolicyFactory,
    /// Predicted at first.
    predicted_qps: f64,
    /// Queries of a run near that.
    count: usize,
    /// What has come of it so far.
    validated: &'v mut Validated,
    /// How this machine served right before a live run at a rate.
    calibrations: Vec<(f64, Calibration)>,
    /// For each live run its rate and what queries cost in it.
    served: Vec<(f64, Calibration)>,
    /// Rates that have been begun, and how many there will be, as far as that can be told.
    rates: usize,
    planned: usize,
}

impl<'v, 'a> Trial<'v, 'a> {
    fn new(
        validation: &'v mut Validation<'a>,
        policy: &'v dyn PolicyFactory,
        (predicted_qps, count): (f64, usize),
        validated: &'v mut Validated,
    ) -> Self {
        let (calibrations, served) = (Vec::new(), Vec::new());
        let planned = SHARES.len() + REFINEMENTS;
        Self { validation, policy, predicted_qps, count, validated, calibrations, served, rates: 0, planned }
    }

    /// Drives at rates around the predicted capacity. `first`: how the machine served before all of them.
    fn run(mut self, first: &[Calibration]) -> Result<(), LabError> {
        self.try_rates()?;
        // The measured one is known now, whatever becomes of the simulations beside it.
        let capacity = self.capacity(first)?;
        self.validated.capacity = Some(capacity);
        if live::interrupted() { Err(LabError::Interrupted) } else { Ok(()) }
    }

    fn try_rates(&mut self) -> Result<(), LabError> {
        for share in SHARES {
            self.try_rate(share * self.predicted_qps)?;
        }
        for _ in 0..EXTENSIONS {
            if self.first_failure().is_some() {
                break;
            }
            self.planned += 1;
            let highest = self.validated.rows.iter().map(|row| row.rate_qps).fold(0.0, f64::max);
            self.try_rate(highest * EXTENSION)?;
        }
        for _ in 0..REFINEMENTS {
            let Some(high) = self.first_failure() else { break };
            let low = self.highest_pass_below(high).unwrap_or(high / 2.0);
            self.try_rate((low * high).sqrt())?;
        }
        Ok(())
    }

    fn capacity(&self, first: &[Calibration]) -> Result<ValidationCapacityRow, LabError> {
        let high = self.first_failure();
        let measured_qps = self.highest_pass_below(high.unwrap_or(f64::INFINITY)).unwrap_or(0.0);
        let near = self.calibrations.iter().filter(|(rate, _)| (rate - measured_qps).abs() <= NEAR * measured_qps);
        let near: Vec<Calibration> = near.map(|&(_, calibration)| calibration).collect();
        // Where no run held, the first ones are as good as any.
        let calibration = Calibration::median(if near.is_empty() { first } else { &near });
        // Of two runs at a rate the later: it was made because the first failed.
        let at_capacity = self.served.iter().rev().find(|(rate, _)| *rate == measured_qps).map(|(_, served)| served);
        let alone = Calibration::median(&[]);
        let known = self.validation.known(&calibration);
        let asked: Vec<Option<&Calibration>> =
            [known, Some(&alone), Some(&calibration)].into_iter().chain(at_capacity.map(Some)).collect();
        self.validation.progress.doing(&format!("{}: simulating", self.policy.name()));
        let simulated_qps = self.validation.capacities(self.policy, &asked, self.count)?;
        Ok(ValidationCapacityRow {
            policy: self.policy.name().to_owned(),
            criterion: self.validation.criterion(),
            predicted_qps: simulated_qps[0].unwrap_or(self.predicted_qps),
            measured_qps,
            measured_high_qps: high,
            queries: self.count,
            gpu: self.gpu().name(),
            slowdown: calibration.slowdown,
            handoff: calibration.handoff,
            profiled_qps: simulated_qps[1],
            backlog_qps: simulated_qps[2],
            hindsight_qps: simulated_qps.get(3).copied().flatten(),
        })
    }

    /// Simulates and drives at a rate.
    ///
    /// Another program on the machine can hold up a run for longer than the deadline, the policy can't: a live run that
    /// fails where the simulated one holds is repeated once, and the better one counts. `attempts` says so. Each is
    /// predicted from a backlog that was served right before.
    fn try_rate(&mut self, rate_qps: f64) -> Result<(), LabError> {
        self.rates += 1;
        let first = self.attempt(rate_qps, 1)?;
        let is_settled = first.passed() || !first.predicted_verdict.holds();
        self.validated.rows.push(first);
        if is_settled {
            return Ok(());
        }
        let second = self.attempt(rate_qps, 2)?;
        let Some(kept) = self.validated.rows.last_mut() else { return Ok(()) };
        if second.verdict.late < kept.verdict.late {
            *kept = second;
        } else {
            kept.attempts = 2;
        }
        Ok(())
    }

    fn attempt(&mut self, rate_qps: f64, attempts: u32) -> Result<ValidationRow, LabError> {
        let calibration = self.validation.calibrate(self.policy)?;
        self.calibrations.push((rate_qps, calibration));
        let predicted = self.simulated(rate_qps, &calibration)?;
        self.driven(rate_qps, predicted, attempts)
    }

    /// Queries of a run at this rate.
    fn count_at(&self, rate_qps: f64) -> usize {
        if rate_qps >= FAR_BELOW * self.predicted_qps {
            return self.count;
        }
        self.count.min(self.validation.queries_in(0.5 * self.validation.options.seconds, rate_qps))
    }

    fn simulated(&mut self, rate_qps: f64, calibration: &Calibration) -> Result<(Summary, Verdict), LabError> {
        let arrivals = self.validation.draw(self.count_at(rate_qps));
        let deadline = self.validation.options.deadline;
        let known = self.validation.known(calibration);
        let experiment = self.validation.node.experiment(known, vec![arrivals], deadline);
        let run = experiment.run(self.policy, rate_qps, &experiment.arrivals[0])?;
        let log = simulate(run).map_err(crate::sim::SimError::from)?;
        let policy = self.policy.name();
        (self.validation.keep)(LoggedRun { policy, rate_qps, is_live: false, log: &log })?;
        let verdict = self.judged(&log, rate_qps);
        let summary = Summary::of_log(&log, self.validation.node.machine());
        Ok((summary.ok_or_else(|| self.nothing_finished(rate_qps))?, verdict))
    }

    fn judged(&self, log: &RunLog, rate_qps: f64) -> Verdict {
        Judge::of_log(self.validation.criterion(), log, self.count_at(rate_qps), rate_qps)
    }

    fn driven(
        &mut self,
        rate_qps: f64,
        (predicted, predicted_verdict): (Summary, Verdict),
        attempts: u32,
    ) -> Result<ValidationRow, LabError> {
        let deadline: Nanos = self.validation.options.deadline;
        let policy = self.policy.name();
        let lasts = Duration::from_secs_f64(self.count_at(rate_qps) as f64 / rate_qps);
        let again = if attempts > 1 { ", once more" } else { "" };
        let which = format!("rate {} of some {}{again}", self.rates, self.planned);
        self.validation.progress.lasts(&format!("{policy}, live at {rate_qps:.0} q/s ({which})"), lasts);
        let arrivals = self.validation.draw(self.count_at(rate_qps));
        let run = LiveRunSpec::new(rate_qps, &arrivals, self.validation.criterion());
        let LiveReport { outcome, summary, verdict, .. } = self.validation.node.run_strict(self.policy, run)?;
        if outcome.interrupted() || live::interrupted() {
            return Err(LabError::Interrupted);
        }
        self.validated.runs += 1;
        self.validated.late_runs += usize::from(outcome.lag_warning(deadline).is_some());
        let served = self.validation.note_service(self.policy, ServiceRun::Live, rate_qps, &outcome);
        self.served.push((rate_qps, served));
        (self.validation.keep)(LoggedRun { policy, rate_qps, is_live: true, log: &outcome.log })?;
        let measured = summary.ok_or_else(|| self.nothing_finished(rate_qps))?;
        Ok(ValidationRow {
            policy: policy.to_owned(),
            rate_qps,
            predicted,
            measured,
            predicted_verdict,
            verdict,
            unanswered: outcome.unreleased + outcome.unfinished,
            attempts,
            gpu: self.gpu().name(),
        })
    }

    fn gpu(&self) -> GpuLane {
        self.validation.node.lane_pool().gpu()
    }

    fn nothing_finished(&self, rate_qps: f64) -> LabError {
        LabError::NothingFinished { policy: self.policy.name().to_owned(), rate_qps }
    }

    /// The lowest live rate that failed the objective.
    fn first_failure(&self) -> Option<f64> {
        let failed = self.validated.rows.iter().filter(|row| !row.passed()).map(|row| row.rate_qps);
        failed.min_by(f64::total_cmp)
    }

    /// The highest live rate below `high_qps` that held.
    fn highest_pass_below(&self, high_qps: f64) -> Option<f64> {
        let passed =
            self.validated.rows.iter().filter(|row| row.passed() && row.rate_qps < high_qps).map(|row| row.rate_qps);
        passed.max_by(f64::total_cmp)
    }
}
