//! How many jobs a second one dispatcher carries, under each policy, when the lanes are no limit.
//!
//! Two measurements, on a machine of many CPU lanes and one GPU that takes batches:
//!
//! - **Alone**: all lanes recorded, under the clock that jumps, in one thread. What a job costs the driver's loop, the
//!   dispatcher and the policy, at a load at which queues form; nothing waits for another core.
//! - **With threads**: a thread for each lane around an executor that answers at once, rings between, the real clock.
//!   The highest rate that is served as it comes, and how late jobs are released at four fifths of it, and of the rate
//!   that every policy is meant to carry.
//!
//! Policies that keep one query under way (`best-of`, and `gpu-only`, which makes no batches) are bounded by one
//! hand-over a query with threads, whatever the dispatcher could do.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::cost::{BatchCost, Cost, MachineModel};
use crate::exec::{Answers, ExecError, Execution, Executor, Hit, Pipeline, Request};
use crate::ids::QueryId;
use crate::live::{self, Fleet, LaneWork, LiveError, LiveOutcome, LiveQuery, LiveRun, QuerySet, Spread};
use crate::machine::{Class, Machine, PerClass};
use crate::query::{ArrivalProcess, Mode, Query, unit_arrivals};
use crate::sched::{Job, PolicyError, PolicyFactory};
use crate::time::Nanos;

/// Queries in the workload, of as many different costs.
const QUERIES: u32 = 1024;
/// What they cost on a CPU, in the mean; on the GPU alone five times as much, in a large batch a fortieth.
const CPU_US: f64 = 4.0;
/// Jobs of a run alone.
const JOBS: usize = 200_000;
/// Seconds of arrivals in a run with threads.
const SECONDS: f64 = 0.2;
/// The rate that is tried first, and the one below which nothing is looked for.
const LOWEST_QPS: f64 = 50_000.0;
const LEAST_QPS: f64 = 1_000.0;
/// The highest.
const HIGHEST_QPS: f64 = 16_000_000.0;
/// A rate is served if the last job has finished this much later than it should, as a share of the run, plus a moment.
const SLACK: f64 = 0.01;
const MOMENT: Nanos = Nanos(500_000);
/// Bisections between a rate that is served and one, twice as high, that is not.
const BISECTIONS: u32 = 4;
/// The share of the highest rate at which the lag is measured.
const LOAD: f64 = 0.8;

/// The rate that every policy is meant to carry.
const TARGET_QPS: f64 = 2_000_000.0;

/// Why the dispatcher could not be measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DispatcherError {
    /// The policy can't be made.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The run did not go to its end.
    #[error(transparent)]
    Live(#[from] LiveError),
}

/// What one policy's jobs cost the dispatcher, and how many it carries.
#[derive(Clone, Debug, PartialEq)]
pub struct DispatcherTime {
    /// The policy's name.
    pub policy: String,
    /// Nanoseconds a job, alone.
    pub alone_ns: f64,
    /// With threads; `None` where they were not asked for.
    pub threads: Option<ThreadedRate>,
}

/// What the dispatcher carries with a thread for each lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreadedRate {
    /// The highest rate that was served, in jobs a second.
    pub rate_qps: f64,
    /// The driver's own time an event at four fifths of it,
    pub decision: Spread,
    /// how late jobs were released there,
    pub lag: Spread,
    /// how late at four fifths of two million jobs a second, whether that was served or not,
    pub lag_at_target: Spread,
    /// and what handing over took, by class.
    pub handoff: PerClass<Spread>,
}

/// The lanes: `cpus` CPU workers and a GPU, two batches deep.
#[must_use]
pub fn dispatcher_machine(cpus: usize) -> MachineModel {
    let batches = BatchCost {
        exposed: None,
        host_fixed_us: 2.0,
        host_each_us: CPU_US / 80.0,
        device_fixed_us: 2.0,
        longest: 0.1,
        crowding: vec![(1, 8.0), (64, 2.0), (1024, 1.0)],
        most_queries: 1024,
    };
    let machine = Machine::new(cpus, 0).with_gpus(1, 1, 2);
    MachineModel { batches: PerClass::two(None, Some(batches)), ..MachineModel::from(machine) }
}

/// Measures what each policy's jobs cost alone, the best of `rounds`, and how many it carries with threads if `threaded`.
///
/// # Errors
/// If a policy can't be made for this machine, or a run fails.
pub fn time_dispatcher(
    model: &MachineModel,
    policies: &[&dyn PolicyFactory],
    rounds: usize,
    threaded: bool,
) -> Result<Vec<DispatcherTime>, DispatcherError> {
    let costs: Vec<PerClass<Cost>> = (0..QUERIES).map(cost).collect();
    let mut recorded = Fleet::recorded(model.clone(), costs.clone());
    let jobs = plan(&costs, busy_rate_qps(model), JOBS);
    let time = |factory: &&dyn PolicyFactory| DispatcherTime {
        policy: factory.name().to_owned(),
        alone_ns: f64::INFINITY,
        threads: None,
    };
    let mut times: Vec<DispatcherTime> = policies.iter().map(time).collect();
    for _ in 0..rounds {
        for (factory, time) in policies.iter().zip(&mut times) {
            let run = LiveRun { policy: factory.build(model)?, jobs: &jobs, abandon_after: None, keep_journal: false };
            let taken = live::run_under_manual_clock(&mut recorded, run)?.driver_time;
            time.alone_ns = time.alone_ns.min(taken.as_nanos() as f64 / jobs.len() as f64);
        }
    }
    if threaded {
        let mut fleet = fleet_of_fakes(model)?;
        for (factory, time) in policies.iter().zip(&mut times) {
            time.threads = Some(highest_rate(&mut fleet, *factory, &costs)?);
        }
    }
    Ok(times)
}

/// A rate at which the CPU lanes together have seven tenths of what they can do: queues form and empty.
fn busy_rate_qps(model: &MachineModel) -> f64 {
    0.7 * model.machine.count(Class::CPU).max(1) as f64 * 1e6 / CPU_US
}

/// What the query in a row costs: half as much to half as much again as the mean.
fn cost(row: u32) -> PerClass<Cost> {
    let cpu_us = CPU_US * (0.5 + f64::from(row.wrapping_mul(0x9E37_79B9) >> 8) / f64::from(1 << 24));
    PerClass::from_fn(|class| match class {
        Class::CPU => Cost::alone(Nanos::from_us(cpu_us)),
        Class::GPU => Cost { alone: Nanos::from_us(5.0 * cpu_us), added: Nanos::from_us(cpu_us / 40.0) },
        _ => Cost::NEVER,
    })
}

/// Jobs that arrive at random, at this rate.
fn plan(costs: &[PerClass<Cost>], rate_qps: f64, count: usize) -> Vec<Job> {
    let queries: Vec<(QueryId, PerClass<Cost>)> = (0..).map(QueryId).zip(costs.iter().copied()).collect();
    let unit = unit_arrivals(&ArrivalProcess::Poisson, 1, count);
    let row = |i: u32| i.wrapping_mul(0x85EB_CA6B) >> 22;
    let arrivals = unit.iter().zip(0..).map(|(at, i)| (Nanos::from_secs(at / rate_qps), row(i)));
    live::plan(arrivals, &queries, Nanos::from_ms(50.0))
}

fn fleet_of_fakes(model: &MachineModel) -> Result<Fleet, LiveError> {
    let query = |id| LiveQuery {
        id: QueryId(id),
        query: Query { id: QueryId(id), label: String::new(), terms: Vec::new(), dropped_terms: 0 },
        mode: Mode::Or,
        results: Some(0),
    };
    let lanes = model.machine.processors().map(|(_, processor)| {
        LaneWork::Executor(Box::new(Fake { class: processor.class, under_way: VecDeque::with_capacity(2) }))
    });
    let queries = Arc::new(QuerySet::new(1, (0..QUERIES).map(query)));
    Fleet::spawn(model.clone(), lanes.collect(), queries, Vec::new())
}

/// Looks for the highest rate that is served as it comes.
fn highest_rate(
    fleet: &mut Fleet,
    factory: &dyn PolicyFactory,
    costs: &[PerClass<Cost>],
) -> Result<ThreadedRate, DispatcherError> {
    let (mut low, mut high) = (LOWEST_QPS, HIGHEST_QPS);
    // Whatever disturbs a run does not disturb the next one too.
    let mut is_served = |rate_qps| -> Result<bool, DispatcherError> {
        Ok(was_served(&play(fleet, factory, costs, rate_qps)?) || was_served(&play(fleet, factory, costs, rate_qps)?))
    };
    // What carries less than the lowest rate is looked for below it.
    while !is_served(low)? && low > LEAST_QPS {
        (low, high) = (low / 2.0, low);
    }
    while 2.0 * low <= high && high == HIGHEST_QPS {
        if is_served(2.0 * low)? {
            low *= 2.0;
        } else {
            high = 2.0 * low;
        }
    }
    for _ in 0..BISECTIONS {
        let middle = (low + high) / 2.0;
        *(if is_served(middle)? { &mut low } else { &mut high }) = middle;
    }
    let outcome = play(fleet, factory, costs, LOAD * low)?;
    let LiveOutcome { decision, lag, handoff, .. } = outcome;
    let lag_at_target = play(fleet, factory, costs, LOAD * TARGET_QPS)?.lag;
    Ok(ThreadedRate { rate_qps: low, decision, lag, lag_at_target, handoff })
}

fn play(
    fleet: &mut Fleet,
    factory: &dyn PolicyFactory,
    costs: &[PerClass<Cost>],
    rate_qps: f64,
) -> Result<LiveOutcome, DispatcherError> {
    let jobs = plan(costs, rate_qps, (rate_qps * SECONDS) as usize);
    let policy = factory.build(fleet.model())?;
    let outcome = live::run(
        fleet,
        LiveRun { policy, jobs: &jobs, abandon_after: Some(Nanos::from_ms(20.0)), keep_journal: false },
    )?;
    match outcome.ending {
        live::Ending::Failed(error) => Err(error.into()),
        _ => Ok(outcome),
    }
}

/// Whether all jobs were finished soon after the last had arrived.
fn was_served(outcome: &LiveOutcome) -> bool {
    let rows = &outcome.log.rows;
    let finished = rows.iter().map(|row| row.finished).max().unwrap_or_default();
    let arrived = rows.last().map_or(Nanos::ZERO, |row| row.arrival);
    outcome.unreleased + outcome.unfinished == 0 && finished <= arrived + arrived.scaled(SLACK) + MOMENT
}

/// Answers at once, with nothing.
struct Fake {
    class: Class,
    /// Sizes of the batches in the pipeline.
    under_way: VecDeque<usize>,
}

impl Executor for Fake {
    fn class(&self) -> Class {
        self.class
    }

    fn device(&self) -> String {
        String::from("a fake")
    }

    fn search(&mut self, _: &Query, _: Mode, _: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        hits.clear();
        Ok(Execution::default())
    }

    fn search_batch(&mut self, batch: &[Request<'_>], answers: &mut Answers) -> Result<Execution, ExecError> {
        answers.clear();
        batch.iter().for_each(|_| answers.push(&[]));
        Ok(Execution::default())
    }

    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        if self.class.is_gpu() { Some(self) } else { None }
    }
}

impl Pipeline for Fake {
    fn depth(&self) -> usize {
        2
    }

    fn submit(&mut self, batch: &[Request<'_>]) -> Result<(), ExecError> {
        self.under_way.push_back(batch.len());
        Ok(())
    }

    fn poll(&mut self, answers: &mut Answers) -> Option<Result<Execution, ExecError>> {
        let queries = self.under_way.pop_front()?;
        answers.clear();
        (0..queries).for_each(|_| answers.push(&[]));
        Some(Ok(Execution::default()))
    }
}
