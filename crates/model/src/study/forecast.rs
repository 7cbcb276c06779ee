//! Forecast of a live run: simulated delays with their 90 % intervals.
//!
//! One long simulation gives the values. Short ones, each with other arrivals, another bootstrap sample of the queries
//! and another speed of the machine, give the intervals. The errors of the model add to them:
//!
//! | part | from |
//! | --- | --- |
//! | seeds | other arrivals in each short simulation |
//! | queries | a bootstrap sample of the measured queries in each |
//! | machine | a speed in each, as far apart as backlogs are, and the model's error of costs |
//! | model | known errors of simulated delays beyond those of costs |
//!
//! The machine's speed moves delays little at low load and much near the capacity, and intervals follow. On a machine
//! that is slower by a factor, all times are longer by it: the rate is multiplied instead, and the delays afterwards.

use rayon::prelude::*;

use super::interval::{MODEL, Z, deviation};
use crate::base::stats::normal_quantile;
use crate::sched::PolicyFactory;
use crate::sim::{Arrivals, Experiment, SimError};
use crate::study::capacity::resampled;
use crate::study::{Summary, Tally};
use crate::traffic::ArrivalProcess;

/// Least and most queries of the long simulation, and most of each short one. The long one gives expectations, also of a
/// run with few queries, whose chance is in the short ones.
const LEAST_LONG: usize = 30_000;
const LONG: usize = 300_000;
const SHORT: usize = 60_000;
/// Number of short simulations.
const SHORT_RUNS: u64 = 8;
/// Errors of simulated mean delays and 99th percentiles with known costs, as standard deviations of their logarithms.
/// `docs/results/accuracy.md` shows how often the intervals contain the measurement.
const MODEL_OF_MEAN: f64 = 0.08;
const MODEL_OF_P99: f64 = 0.12;

/// The forecast of a live run.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The simulated delays.
    pub summary: Summary,
    /// The 90 % interval of the mean reaches from the mean divided by 1 plus this number to the mean times it.
    pub mean_half_width: f64,
    /// The 90 % interval of the 99th percentile, likewise as a factor minus 1.
    pub p99_half_width: f64,
}

impl Forecast {
    /// The forecast of a run of `queries` queries at `qps`, whose live arrivals have another seed. The machine's speed varies
    /// by the relative standard deviation `speed_sd`. `None` without queries.
    ///
    /// # Errors
    /// If the run cannot be simulated.
    pub fn of(
        experiment: &Experiment,
        policy: &dyn PolicyFactory,
        process: &ArrivalProcess,
        (qps, queries): (f64, usize),
        (live_seed, speed_sd): (u64, f64),
    ) -> Result<Option<Self>, SimError> {
        forecast(experiment, policy, Planned { process, qps, queries, live_seed, speed_sd })
    }
}

/// The live run to forecast.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    /// The arrival process.
    pub process: &'a ArrivalProcess,
    /// Arrival rate, in queries per second.
    pub qps: f64,
    /// Number of queries.
    pub queries: usize,
    /// The seed of the live arrivals. The forecast uses others.
    pub live_seed: u64,
    /// The relative standard deviation of the machine's speed.
    pub speed_sd: f64,
}

/// The simulated delays of a planned run; `None` without queries.
pub fn simulated(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    run: Planned<'_>,
) -> Result<Option<Summary>, SimError> {
    played(experiment, policy, run, (run.queries.clamp(LEAST_LONG, LONG), 0, 1.0))
}

/// The simulated delays of a planned run on a machine whose service times are longer by a factor; `None` without queries.
///
/// # Errors
/// If the run cannot be simulated.
pub fn slowed(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    run: Planned<'_>,
    slower: f64,
) -> Result<Option<Summary>, SimError> {
    played(experiment, policy, run, (run.queries.clamp(LEAST_LONG, SHORT), 0, slower))
}

/// The forecast of a planned run; `None` without queries.
pub fn forecast(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    run: Planned<'_>,
) -> Result<Option<Forecast>, SimError> {
    let Some(summary) = simulated(experiment, policy, run)? else { return Ok(None) };
    let sd = run.speed_sd.hypot(MODEL);
    let short = (0..SHORT_RUNS).into_par_iter().map(|number| {
        let sample = resampled(experiment, number);
        // Speeds at equal steps of probability vary less than drawn ones.
        let slower = (sd * normal_quantile((number as f64 + 0.5) / SHORT_RUNS as f64)).exp();
        played(&sample, policy, run, (run.queries.min(SHORT), 1 + number, slower))
    });
    let short: Vec<Summary> = short.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
    let half_width = |of: fn(&Summary) -> f64, model: f64| {
        let logs: Vec<f64> = short.iter().map(|summary| of(summary).ln()).collect();
        (Z * deviation(&logs).hypot(model)).exp_m1()
    };
    Ok(Some(Forecast {
        summary,
        mean_half_width: half_width(|summary| summary.mean_ms, MODEL_OF_MEAN),
        p99_half_width: half_width(|summary| summary.p99_ms, MODEL_OF_P99),
    }))
}

/// Plays this number of queries with another seed, on a machine that is slower by a factor.
fn played(
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    run: Planned<'_>,
    (queries, number, slower): (usize, u64, f64),
) -> Result<Option<Summary>, SimError> {
    // Far from the live seeds, which are small numbers in a row.
    let seed = !run.live_seed.wrapping_mul(SHORT_RUNS + 1).wrapping_add(number);
    let arrivals = Arrivals::drawn(run.process, seed, queries, experiment.queries.len())
        .with_priorities(experiment.priorities().cloned());
    let tally = Tally::new(&experiment.model.machine, queries);
    let summary = experiment.play(policy, run.qps * slower, &arrivals, tally, |_| false)?.summary();
    Ok(summary.map(|found| Summary { mean_ms: found.mean_ms * slower, p99_ms: found.p99_ms * slower, ..found }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::QueryId;
    use crate::base::machine::{Machine, PerClass};
    use crate::base::time::Nanos;
    use crate::cost::Cost;
    use crate::sched::{PolicyKind, PolicyOptions};
    use crate::sim::SimQuery;

    fn forecast_at(load: f64, speed_sd: f64) -> Forecast {
        // 200 exponential costs around 1 ms on one worker.
        let cost = |at: u32| {
            let share = (f64::from(at) + 0.5) / 200.0;
            PerClass::two(Cost::alone(Nanos((-(1.0 - share).ln() * 1e6) as u64)), Cost::NEVER)
        };
        let queries = (0..200).map(|at| SimQuery { id: QueryId(at), service: cost(at), estimate: cost(at) }).collect();
        let model = Machine::new(1, 0).into();
        let experiment =
            Experiment { model, queries, deadline: Nanos::from_ms(100.0), arrivals: Vec::new(), cluster: None };
        let process = &ArrivalProcess::Poisson;
        let run = Planned { process, qps: 1000.0 * load, queries: 200_000, live_seed: 1, speed_sd };
        forecast(&experiment, &PolicyKind::CpuOnly.with(PolicyOptions::default()), run).unwrap().unwrap()
    }

    #[test]
    fn forecasts_are_those_of_theory() {
        let (half, near) = (forecast_at(0.5, 0.0), forecast_at(0.9, 0.0));
        // M/M/1 with a mean service time of 1 ms: 2 and 10 ms.
        assert!((half.summary.mean_ms / 2.0 - 1.0).abs() < 0.04, "{half:?}");
        assert!((near.summary.mean_ms / 10.0 - 1.0).abs() < 0.15, "{near:?}");
        assert!(half.mean_half_width > 0.05 && near.mean_half_width > 2.0 * half.mean_half_width);
        assert!(half.p99_half_width > half.mean_half_width);
        assert!(forecast_at(0.5, 0.25).mean_half_width > 1.5 * half.mean_half_width);
        assert_eq!(half, forecast_at(0.5, 0.0));
    }
}
