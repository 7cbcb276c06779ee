//! Dispatcher costs: the rounds of each policy over lanes that only wait for a short time.
//!
//! A round costs `round + arrival · a + batch · b + answer · n` for a arrivals, b finished batches and n answered
//! queries. A single query is handed over and back like a batch, whereas a query of a large batch costs little more
//! than its log row. Rounds grow under load. Least squares over rounds of all sizes separates the four costs for each
//! policy. Policies without batches have as many batches as answers, so that both costs merge.
//!
//! Rounds with a long interruption of the driver are left out; [`stalls`](super::stalls) measures these.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::ids::QueryId;
use crate::base::machine::{Class, Idle, Machine, PerClass};
use crate::base::random::Random;
use crate::base::time::Nanos;
use crate::cost::batches::least_squares;
use crate::cost::machine_file::{DispatcherFile, DispatcherRounds, RoundCost, Stalls};
use crate::cost::{BatchCost, Cost, MachineModel};
use crate::lab::LabError;
use crate::live::{self, LanePool, LaneWork, LiveQuery, LiveRun, QuerySet, Round};
use crate::query::{Mode, Query};
use crate::sched::{Job, PolicyFactory, PolicyKind, PolicyOptions};

/// Time of a query on a CPU lane.
const CPU_US: f64 = 2.0;
const QUERIES: u32 = 512;
/// Duration and arrival rates of runs. The rates exceed every dispatcher, so that it never waits.
const SECONDS: f64 = 0.03;
const RATES_QPS: [f64; 2] = [400_000.0, 4_000_000.0];

/// Measures the dispatcher of this machine with `cpus` CPU lanes and `gpus` GPU lanes. `stalls` are those of the
/// driver.
///
/// # Errors
/// If a thread cannot start, or a run fails.
pub(super) fn measure(cpus: usize, gpus: usize, idle: Idle, stalls: Stalls) -> Result<DispatcherFile, LabError> {
    let mut found = Vec::new();
    let counts: Vec<usize> = if cpus > 2 { vec![1, cpus] } else { vec![cpus] };
    for cpus in counts {
        let mut lane_pool = lane_pool(cpus, gpus)?;
        lane_pool.set_idle(idle);
        let any = cost(&played(&mut lane_pool, &PolicyKind::CpuOnly.with(PolicyOptions::default()))?);
        let mut policies = BTreeMap::new();
        for kind in PolicyKind::ALL {
            if kind.required_classes().iter().any(|&class| lane_pool.machine().count(class) == 0) {
                continue;
            }
            let policy = kind.with(PolicyOptions::default());
            let rounds = played(&mut lane_pool, &policy)?;
            if !rounds.is_empty() {
                policies.insert(policy.name().to_owned(), cost(&rounds));
            }
        }
        found.push(DispatcherRounds { lanes: (cpus + gpus) as u32, any, policies });
    }
    Ok(DispatcherFile { rounds: found, stalls })
}

/// The undisturbed rounds of runs under a policy.
fn played(lane_pool: &mut LanePool, policy: &dyn PolicyFactory) -> Result<Vec<Round>, LabError> {
    let mut rounds = Vec::new();
    for rate_qps in RATES_QPS {
        let jobs = plan(rate_qps);
        let policy = policy.build(lane_pool.model())?;
        let abandon_after = Some(Nanos::from_secs(2.0 * SECONDS));
        let outcome = live::run(lane_pool, LiveRun { abandon_after, ..LiveRun::new(policy, &jobs) })?;
        if let live::Ending::Failed(error) = outcome.ending {
            return Err(error.into());
        }
        rounds.extend(outcome.rounds.into_iter().filter(|round| !round.is_disturbed()));
    }
    Ok(rounds)
}

/// Least-squares costs of a round by its events.
fn cost(rounds: &[Round]) -> RoundCost {
    let rows: Vec<([f64; 4], f64)> = rounds
        .iter()
        .map(|round| {
            let [arrivals, batches, answers] = [round.arrivals, round.batches, round.answers].map(f64::from);
            ([1.0, arrivals, batches, answers], round.time.0 as f64)
        })
        .collect();
    let [round_ns, arrival_ns, batch_ns, answer_ns] = least_squares(&rows);
    let tenths = |ns: f64| (ns * 10.0).round() / 10.0;
    RoundCost {
        round_ns: tenths(round_ns),
        arrival_ns: tenths(arrival_ns),
        batch_ns: tenths(batch_ns),
        answer_ns: tenths(answer_ns),
    }
}

/// Lanes that wait for the predicted times.
fn lane_pool(cpus: usize, gpus: usize) -> Result<LanePool, LabError> {
    let batches = BatchCost {
        host_fixed_us: 2.0,
        host_each_us: CPU_US / 80.0,
        exposed: None,
        device_fixed_us: 2.0,
        longest: 0.1,
        crowding: vec![(1, 8.0), (64, 2.0), (1024, 1.0)],
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
    Ok(LanePool::spawn(model, work, Arc::new(set), (0..QUERIES).map(of_row).collect())?)
}

/// The cost of the query in this row: 0.5 to 1.5 times the mean.
fn of_row(row: u32) -> PerClass<Cost> {
    let us = CPU_US * (0.5 + f64::from(row) / f64::from(QUERIES));
    PerClass::from_fn(|class| match class {
        Class::CPU => Cost::alone(Nanos::from_us(us)),
        Class::GPU => Cost { alone: Nanos::from_us(2.0 * us), added: Nanos::from_us(us / 20.0) },
        _ => Cost::NEVER,
    })
}

fn plan(rate_qps: f64) -> Vec<Job> {
    let mut random = Random::new(1, 1);
    let estimates: Vec<_> = (0..QUERIES).map(|row| (QueryId(row), of_row(row))).collect();
    let count = (rate_qps * SECONDS) as usize;
    let arrivals = (0..count).map(|i| (Nanos::from_secs(i as f64 / rate_qps), random.below(QUERIES)));
    live::plan(arrivals, &estimates, Nanos::from_ms(50.0))
}
