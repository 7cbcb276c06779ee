//! The rate of jobs that one dispatcher sustains under each policy, with lanes that answer at once.
//!
//! Two measurements, on a machine of many CPU lanes and one GPU that takes batches:
//!
//! - **Alone**: recorded lanes in one thread, under a clock that jumps. It times the driver's loop, the dispatcher and the policy
//!   per job, at a load at which queues form. Nothing waits for another core.
//! - **With threads**: one thread per lane, with an executor that answers at once, rings between threads, and the real clock. It
//!   finds the highest rate that is served. It also measures how late jobs are released at four fifths of this rate, and of the
//!   target rate.
//!
//! `cargo run --release --example dispatcher -- results/dispatcher/bench.csv` writes a row per policy and metric.
//!
//! Policies that keep one query under way (`best-of`, and `gpu-only`, which makes no batches) are bounded by one hand-over per
//! query with threads, however fast the dispatcher is.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt::Write;
use std::sync::Arc;

use tandem::base::ids::QueryId;
use tandem::base::machine::{Class, Machine, PerClass};
use tandem::base::time::Nanos;
use tandem::cost::{BatchCost, Cost, MachineModel};
use tandem::files::Provenance;
use tandem::live::{self, LanePool, LaneWork, LiveError, LiveOutcome, LiveQuery, LiveRun, QuerySet};
use tandem::query::Query;
use tandem::sched::{Job, PolicyFactory, PolicyKind, PolicyOptions};
use tandem::search::{Answers, ExecError, Execution, Executor, Hit, Pipeline, Request};
use tandem::traffic::{ArrivalProcess, Mode, unit_arrivals};

/// Number of CPU lanes, and of rounds of which the fastest counts.
const LANES: usize = 16;
const ROUNDS: usize = 3;
/// Number of queries in the workload. Each has a different cost.
const QUERIES: u32 = 1024;
/// Mean cost of a query on a CPU. Alone on the GPU it is five times as large, in a large batch a fortieth.
const CPU_US: f64 = 4.0;
/// Number of jobs in a run without threads.
const JOBS: usize = 200_000;
/// Length of a run with threads, in seconds of arrivals.
const SECONDS: f64 = 0.2;
/// The first rate of the search, and its lowest.
const LOWEST_QPS: f64 = 50_000.0;
const LEAST_QPS: f64 = 1_000.0;
/// The highest rate of the search.
const HIGHEST_QPS: f64 = 16_000_000.0;
/// A rate is served if the last job finishes at most this much late, as a share of the run, plus a constant.
const SLACK: f64 = 0.01;
const MOMENT: Nanos = Nanos(500_000);
/// Number of bisections between a rate that is served and twice this rate.
const BISECTIONS: u32 = 4;
/// The share of the highest rate at which the lag is measured.
const LOAD: f64 = 0.8;

/// The target rate of every policy.
const TARGET_QPS: f64 = 2_000_000.0;

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| String::from("dispatcher.csv"));
    let model = machine(LANES);
    let policies = PolicyKind::ALL.map(|kind| kind.with(PolicyOptions::default()));
    let costs: Vec<PerClass<Cost>> = (0..QUERIES).map(cost).collect();
    let mut alone_ns = policies.each_ref().map(|_| f64::INFINITY);
    let mut recorded = LanePool::recorded(model.clone(), costs.clone());
    let jobs = plan(&costs, busy_rate_qps(&model), JOBS);
    for _ in 0..ROUNDS {
        for (policy, alone_ns) in policies.iter().zip(&mut alone_ns) {
            let run = LiveRun::new(policy.build(&model)?, &jobs);
            let taken = live::run_under_manual_clock(&mut recorded, run, 0)?.driver_time;
            *alone_ns = alone_ns.min(taken.as_nanos() as f64 / jobs.len() as f64);
        }
    }
    let mut text = String::new();
    for (key, value) in Provenance::new().with_command_and_machine().lines() {
        let value = value.replacen("tandem ", "cargo run --release --example dispatcher -- ", 1);
        writeln!(text, "# {key}: {value}")?;
    }
    writeln!(text, "part,name,metric,value")?;
    let mut lane_pool = lane_pool_of_fakes(&model)?;
    for (policy, alone_ns) in policies.iter().zip(alone_ns) {
        let rate_qps = highest_rate(&mut lane_pool, policy, &costs)?;
        let LiveOutcome { decision, lag, handoff, .. } = play(&mut lane_pool, policy, &costs, LOAD * rate_qps)?;
        let lag_at_target = play(&mut lane_pool, policy, &costs, LOAD * TARGET_QPS)?.lag;
        // Of the class that worked, or of the CPUs if both did.
        let handoff = [Class::CPU, Class::GPU].map(|class| handoff[class].p50.as_us());
        let metrics = [
            ("ns_a_job_alone", alone_ns),
            ("jobs_per_s", rate_qps),
            ("event_mean_ns", decision.mean.0 as f64),
            ("event_p50_ns", decision.p50.0 as f64),
            ("event_p99_ns", decision.p99.0 as f64),
            ("lag_p50_us", lag.p50.as_us()),
            ("lag_p99_us", lag.p99.as_us()),
            ("lag_p99_us_at_1600000_per_s", lag_at_target.p99.as_us()),
            ("handoff_p50_us", if handoff[0] > 0.0 { handoff[0] } else { handoff[1] }),
        ];
        for (metric, value) in metrics {
            println!("{} {metric} {value:.6}", policy.name());
            writeln!(text, "dispatcher,{},{metric},{value:.6}", policy.name())?;
        }
    }
    std::fs::write(path, text)?;
    Ok(())
}

/// The lanes: `cpus` CPU workers and a GPU, two batches deep.
fn machine(cpus: usize) -> MachineModel {
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

/// A rate at which the CPU lanes are busy seven tenths of the time: queues form and empty.
fn busy_rate_qps(model: &MachineModel) -> f64 {
    0.7 * model.machine.count(Class::CPU).max(1) as f64 * 1e6 / CPU_US
}

/// The cost of the query in a row: 0.5 to 1.5 times the mean.
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

fn lane_pool_of_fakes(model: &MachineModel) -> Result<LanePool, LiveError> {
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
    LanePool::spawn(model.clone(), lanes.collect(), queries, Vec::new())
}

/// Searches the highest rate that is served.
fn highest_rate(lane_pool: &mut LanePool, factory: &dyn PolicyFactory, costs: &[PerClass<Cost>]) -> Outcome<f64> {
    let (mut low, mut high) = (LOWEST_QPS, HIGHEST_QPS);
    // A disturbance of one run seldom disturbs the next one.
    let mut is_served = |rate_qps| -> Outcome<bool> {
        Ok(was_served(&play(lane_pool, factory, costs, rate_qps)?)
            || was_served(&play(lane_pool, factory, costs, rate_qps)?))
    };
    // If the first rate is not served, lower rates are tried.
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
    Ok(low)
}

fn play(
    lane_pool: &mut LanePool,
    factory: &dyn PolicyFactory,
    costs: &[PerClass<Cost>],
    rate_qps: f64,
) -> Outcome<LiveOutcome> {
    let jobs = plan(costs, rate_qps, (rate_qps * SECONDS) as usize);
    let policy = factory.build(lane_pool.model())?;
    let outcome =
        live::run(lane_pool, LiveRun { abandon_after: Some(Nanos::from_ms(20.0)), ..LiveRun::new(policy, &jobs) })?;
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

/// An executor that answers at once, without results.
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
