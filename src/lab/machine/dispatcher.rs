//! What the dispatcher takes: its rounds over lanes that only let a moment pass, under every policy.
//!
//! A round takes `round + event · n` for the n arrivals and answered queries in it. Under load rounds grow, and the two are
//! told apart by a line through rounds of different n. The line is drawn for a policy that only queues; of each other
//! policy it is told how many times as long its rounds are.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::cost::machine_file::{DispatcherFile, RoundCost};
use crate::cost::{BatchCost, Cost, MachineModel};
use crate::ids::QueryId;
use crate::lab::LabError;
use crate::live::{self, Fleet, LaneWork, LiveQuery, LiveRun, QuerySet, Round};
use crate::machine::{Class, Idle, Machine, PerClass};
use crate::query::{Mode, Query};
use crate::random::Random;
use crate::sched::{Job, PolicyFactory, PolicyKind, PolicyOptions};
use crate::time::Nanos;

/// What a query lets pass on a CPU lane.
const CPU_US: f64 = 2.0;
/// Distinct queries.
const QUERIES: u32 = 512;
/// How long a run lasts, and at how many queries a second: more than any dispatcher takes, so that it never waits.
const SECONDS: f64 = 0.03;
const RATES_QPS: [f64; 2] = [400_000.0, 4_000_000.0];

/// Measures it on this machine, with so many CPU lanes and at most one GPU's.
///
/// # Errors
/// If threads can't be had, or a run fails.
pub(super) fn measure(cpus: usize, gpus: usize, idle: Idle) -> Result<DispatcherFile, LabError> {
    let mut rounds = Vec::new();
    let mut policies = BTreeMap::new();
    let counts: Vec<usize> = if cpus > 2 { vec![1, cpus] } else { vec![cpus] };
    for &cpus in &counts {
        let mut fleet = fleet(cpus, gpus)?;
        fleet.set_idle(idle);
        let base = line(&played(&mut fleet, &PolicyKind::CpuOnly.with(PolicyOptions::default()))?);
        rounds.push(RoundCost { lanes: (cpus + gpus) as u32, round_ns: base.0.max(0.0), event_ns: base.1.max(1.0) });
        if Some(&cpus) != counts.last() {
            continue;
        }
        for kind in PolicyKind::ALL {
            if kind.required_classes().iter().any(|&class| fleet.machine().count(class) == 0) {
                continue;
            }
            let policy = kind.with(PolicyOptions::default());
            let found = played(&mut fleet, &policy)?;
            let (took, expected) = found.iter().fold((0.0, 0.0), |(took, expected), round| {
                (took + round.time.0 as f64, expected + base.0 + base.1 * f64::from(round.events))
            });
            if took > 0.0 && expected > 0.0 {
                policies.insert(policy.name().to_owned(), (took / expected * 1000.0).round() / 1000.0);
            }
        }
    }
    Ok(DispatcherFile { rounds, policies })
}

/// The undisturbed rounds of runs under a policy.
fn played(fleet: &mut Fleet, policy: &dyn PolicyFactory) -> Result<Vec<Round>, LabError> {
    let mut rounds = Vec::new();
    for rate_qps in RATES_QPS {
        let jobs = plan(fleet.model(), rate_qps);
        let policy = policy.build(fleet.model())?;
        let abandon_after = Some(Nanos::from_secs(2.0 * SECONDS));
        let outcome = live::run(fleet, LiveRun { policy, jobs: &jobs, abandon_after, keep_journal: false })?;
        if let live::Ending::Failed(error) = outcome.ending {
            return Err(error.into());
        }
        rounds.extend(outcome.rounds.into_iter().filter(|round| !round.is_disturbed()));
    }
    Ok(rounds)
}

/// Time of a round of no events, and of each event, in nanoseconds: least squares over all rounds.
fn line(rounds: &[Round]) -> (f64, f64) {
    let n = rounds.len().max(1) as f64;
    let points = || rounds.iter().map(|round| (f64::from(round.events), round.time.0 as f64));
    let (mean_x, mean_y) = points().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let (over, under) = points().fold((0.0, 0.0), |(over, under), point| {
        (over + (point.0 - mean_x) * (point.1 - mean_y), under + (point.0 - mean_x).powi(2))
    });
    let slope = if under > 0.0 { over / under } else { 0.0 };
    (mean_y - slope * mean_x, slope)
}

/// Lanes that let a moment pass.
fn fleet(cpus: usize, gpus: usize) -> Result<Fleet, LabError> {
    let batches = BatchCost {
        host_fixed_us: 2.0,
        host_each_us: CPU_US / 80.0,
        exposed: None,
        device_fixed_us: 2.0,
        longest: 0.1,
        crowding: vec![(1, 8.0), (64, 2.0), (1024, 1.0)],
        bus_crowding: Vec::new(),
        most_queries: 1024,
    };
    let machine = Machine::new(cpus, 0).with_gpus(gpus, 1, 2);
    let work = machine.processors().map(|_| LaneWork::TimeWarp).collect();
    let model = MachineModel { batches: PerClass::two(None, Some(batches)), ..machine.into() };
    let query = |id| LiveQuery {
        id: QueryId(id),
        query: Query { id: QueryId(id), label: String::new(), terms: Vec::new(), dropped_terms: 0 },
        mode: Mode::Or,
        results: None,
    };
    let set = QuerySet::new(1, (0..QUERIES).map(query));
    Ok(Fleet::spawn(model, work, Arc::new(set), (0..QUERIES).map(cost).collect())?)
}

/// What the query in a row costs: half as much to half as much again as the mean.
fn cost(row: u32) -> PerClass<Cost> {
    let us = CPU_US * (0.5 + f64::from(row) / f64::from(QUERIES));
    PerClass::from_fn(|class| match class {
        Class::CPU => Cost::alone(Nanos::from_us(us)),
        Class::GPU => Cost { alone: Nanos::from_us(2.0 * us), added: Nanos::from_us(us / 20.0), ..Cost::default() },
        _ => Cost::NEVER,
    })
}

fn plan(model: &MachineModel, rate_qps: f64) -> Vec<Job> {
    let mut random = Random::new(1, 1);
    let told: Vec<_> = (0..QUERIES).map(|row| (QueryId(row), cost(row))).collect();
    let count = (rate_qps * SECONDS) as usize;
    let arrivals = (0..count).map(|i| (Nanos::from_secs(i as f64 / rate_qps), random.below(QUERIES)));
    let _ = model;
    live::plan(arrivals, &told, Nanos::from_ms(50.0))
}
