//! Driving a rate several times, beside its prediction.

use std::time::Duration;

use super::compared::{distance, scatter};
use crate::base::machine::{Class, PerClass};
use crate::lab::{
    Calibration, Compared, ComparedRun, Interference, LabError, LiveReport, LiveRunSpec, Parts, ServiceRun, Summary,
    Validation,
};
use crate::live::{self, LiveOutcome};
use crate::sched::{PolicyFactory, RunLog};
use crate::sim::{SimError, SimQuery, simulate};

/// The rates, as shares of the predicted capacity: up to them delays are compared.
const LOADS: [f64; 3] = [0.2, 0.5, 0.8];
/// So many times as many runs are made as are to count, at most.
const PATIENCE: u32 = 2;
/// How long a run lasts, over how long those near the capacity do.
const SHORTER: f64 = 0.4;

impl Validation<'_> {
    /// Drives a policy at some shares of its predicted capacity, each as often as asked for, and compares. Runs that
    /// something else disturbed are made again.
    pub(super) fn compare(
        &mut self,
        policy: &dyn PolicyFactory,
        capacity_qps: f64,
        compared: &mut Vec<Compared>,
    ) -> Result<(), LabError> {
        if self.options.repeats == 0 {
            return Ok(());
        }
        for load in LOADS {
            let found = self.compare_at(policy, load, load * capacity_qps)?;
            compared.extend(found);
            if live::interrupted() {
                return Err(LabError::Interrupted);
            }
        }
        Ok(())
    }

    /// Drives a policy at one load. If it is interrupted, what came of the runs before is given all the same.
    fn compare_at(
        &mut self,
        policy: &dyn PolicyFactory,
        load: f64,
        rate_qps: f64,
    ) -> Result<Option<Compared>, LabError> {
        let count = self.queries_in(SHORTER * self.options.seconds, rate_qps);
        let arrivals = self.draw(count);
        let deadline = self.options.deadline;
        let mut before = self.calibrate(policy)?;
        let known = self.known(&before);
        let experiment = self.node.experiment(known, vec![arrivals.clone()], deadline);
        let predicted = played(&experiment, policy, rate_qps)?;
        let machine = self.node.machine().clone();
        let nothing = || LabError::NothingFinished { policy: policy.name().to_owned(), rate_qps };
        let summary = Summary::of_log(&predicted, &machine).ok_or_else(nothing)?;
        let (parts, interference) = (Parts::of(&predicted), Interference::default());
        let mut compared = Compared {
            policy: policy.name().to_owned(),
            rate_qps,
            load,
            predicted: ComparedRun { summary, parts, distance: 0.0, interference, disturbed: None },
            at_speed: None,
            runs: Vec::new(),
            scatter: Vec::new(),
        };
        let lasts = Duration::from_secs_f64(count as f64 / rate_qps);
        let mut speeds: Vec<f64> = Vec::new();
        for run in 0..PATIENCE * self.options.repeats {
            let (counted, wanted) = (compared.counted().count(), self.options.repeats as usize);
            if counted >= wanted {
                break;
            }
            let so_far = if counted < run as usize { format!(" ({counted} of {run} count)") } else { String::new() };
            let what = format!("{}, live at {rate_qps:.0} q/s, {} of {wanted}{so_far}", policy.name(), counted + 1);
            self.progress.lasts(&what, lasts);
            let run = LiveRunSpec::new(rate_qps, &arrivals, self.criterion());
            let LiveReport { outcome, summary, load, .. } = self.node.run_strict(policy, run)?;
            if outcome.interrupted() || live::interrupted() {
                break;
            }
            self.note_service(policy, ServiceRun::Live, rate_qps, &outcome);
            let after = match self.calibrate(policy) {
                Err(LabError::Interrupted) => break,
                after => after?,
            };
            let interference =
                Interference { load, lag_p99: outcome.lag.p99, before: before.slowdown, after: after.slowdown };
            let disturbed = interference.why(&machine, deadline);
            if disturbed.is_none() {
                speeds.push((before.slowdown[Class::CPU] + after.slowdown[Class::CPU]) / 2.0);
                if compared.scatter.is_empty() {
                    compared.scatter = scatter(&predicted, &outcome.log);
                }
            }
            before = after;
            let summary = summary.ok_or_else(nothing)?;
            compared.runs.push(ComparedRun {
                summary,
                parts: parts_of(&outcome, &machine),
                distance: distance(&predicted, &outcome.log),
                interference,
                disturbed,
            });
        }
        compared.at_speed = self.at_speed(policy, &experiment, rate_qps, &speeds)?;
        Ok((!compared.runs.is_empty()).then_some(compared))
    }

    /// The prediction with the CPU as fast as backlogs found it around the runs that count, over what the machine file
    /// says of lanes that are never without work; `None` without a file, or if none counts.
    fn at_speed(
        &self,
        policy: &dyn PolicyFactory,
        experiment: &crate::sim::Experiment,
        rate_qps: f64,
        speeds: &[f64],
    ) -> Result<Option<Summary>, LabError> {
        let Some(lanes) = &self.node.model().lanes[Class::CPU] else { return Ok(None) };
        if speeds.is_empty() {
            return Ok(None);
        }
        let all = PerClass::two(experiment.model.machine.count(Class::CPU) as u32, 0);
        let of_file = lanes.stream() * lanes.crowded(Class::CPU, &all);
        let speed = speeds.iter().sum::<f64>() / speeds.len() as f64 / of_file;
        let now = Calibration { slowdown: PerClass::two(speed, 1.0), ..Calibration::median(&[]) };
        let queries: Vec<SimQuery> = experiment.queries.iter().map(|query| now.query(query)).collect();
        let experiment = crate::sim::Experiment { queries, ..experiment.clone() };
        Ok(Summary::of_log(&played(&experiment, policy, rate_qps)?, &experiment.model.machine))
    }
}

fn played(experiment: &crate::sim::Experiment, policy: &dyn PolicyFactory, rate_qps: f64) -> Result<RunLog, LabError> {
    let run = experiment.run(policy, rate_qps, &experiment.arrivals[0])?;
    Ok(simulate(run).map_err(SimError::from)?)
}

/// Where a live run's delays came from.
fn parts_of(outcome: &LiveOutcome, machine: &crate::base::machine::Machine) -> Parts {
    let mut sums = PerClass::<(f64, f64, usize)>::default();
    for batch in &outcome.served {
        let sum = &mut sums[machine.class(batch.processor)];
        sum.0 += batch.worked.as_us();
        sum.1 += batch.handoff().as_us();
        sum.2 += 1;
    }
    let mean = |sum: f64, count: usize| (count > 0).then(|| sum / count as f64);
    Parts {
        work_us: PerClass::from_fn(|class| mean(sums[class].0, sums[class].2)),
        handoff_us: PerClass::from_fn(|class| mean(sums[class].1, sums[class].2)),
        ..Parts::of(&outcome.log)
    }
}
