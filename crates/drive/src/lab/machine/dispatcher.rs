//! Dispatcher costs: the rounds of each policy over lanes that only wait for a short time.
//!
//! A round costs `round + arrival · a + batch · b + answer · n` for a arrivals, b finished batches and n answered
//! queries. A single query is handed over and back like a batch, whereas a query of a large batch costs little more
//! than its log row. Rounds grow under load. Least squares over rounds of all sizes separates the four costs for each
//! policy. Policies without batches have as many batches as answers, so that both costs merge.
//!
//! Interrupted rounds are left out: the rounds with busy lanes show them.

use std::sync::Arc;

use tandem_engine::query::Query;
use tandem_model::base::ids::QueryId;
use tandem_model::base::machine::{Class, Idle, Machine, PerClass};
use tandem_model::base::random::Random;
use tandem_model::base::time::Nanos;
use tandem_model::cost::batches::least_squares;
use tandem_model::cost::machine_profile::DispatcherProfile;
use tandem_model::cost::{BatchCost, Cost, Decisions, MachineModel};
use tandem_model::sched::{Job, PolicyFactory};
use tandem_model::traffic::Mode;

use crate::lab::LabError;
use crate::live::{self, LanePool, LaneWork, LiveQuery, LiveRun, QuerySet, Round};

/// Time of a query on a CPU lane.
const CPU_US: f64 = 2.0;
const QUERIES: u32 = 512;
/// Duration and arrival rates of runs. The rates exceed every dispatcher, so that it never waits.
const SECONDS: f64 = 0.03;
const RATES_QPS: [f64; 2] = [400_000.0, 4_000_000.0];
/// All policies play in turns, so that drift of the machine affects all of them.
const TURNS: u64 = 3;

/// Measures the dispatcher of this machine with these numbers of CPU and GPU lanes, under some policies, in a
/// fifth of a second for each. The first policy stands for all others.
///
/// # Errors
/// If a thread cannot start, or a run fails.
pub(in crate::lab) fn measure(
    (cpus, gpus): (usize, usize),
    idle: Idle,
    policies: &[&dyn PolicyFactory],
) -> Result<DispatcherProfile, LabError> {
    let mut lane_pool = lane_pool(cpus, gpus)?;
    lane_pool.set_idle(idle);
    let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); policies.len()];
    for turn in 0..TURNS {
        for (policy, rounds) in policies.iter().zip(&mut rounds) {
            rounds.extend(played(&mut lane_pool, *policy, turn)?);
        }
    }
    let costs = rounds.iter().map(|rounds| cost(rounds));
    let any = costs.clone().next().unwrap_or_default();
    let policies = policies.iter().map(|policy| policy.name().to_owned()).zip(costs).collect();
    Ok(DispatcherProfile { any, policies })
}

/// The undisturbed rounds of runs under a policy.
fn played(lane_pool: &mut LanePool, policy: &dyn PolicyFactory, turn: u64) -> Result<Vec<Round>, LabError> {
    let mut rounds = Vec::new();
    for rate_qps in RATES_QPS {
        let jobs = plan(rate_qps, turn);
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

/// Least-squares costs of a round by its events. Relative errors are fitted, which favours short rounds, so that the costs
/// are then scaled to the time of all rounds.
fn cost(rounds: &[Round]) -> Decisions {
    let row = |round: &Round| {
        let [arrivals, batches, answers] = [round.arrivals, round.batches, round.answers].map(f64::from);
        ([1.0, arrivals, batches, answers], round.time.0 as f64)
    };
    let rows: Vec<([f64; 4], f64)> = rounds.iter().map(row).collect();
    let fitted = least_squares(&rows);
    let time = |events: &[f64; 4]| events.iter().zip(fitted).map(|(count, each)| count * each).sum::<f64>();
    let (predicted, measured) = rows.iter().fold((0.0, 0.0), |sum, (events, ns)| (sum.0 + time(events), sum.1 + ns));
    let scale = if predicted > 0.0 { measured / predicted } else { 1.0 };
    let [round, arrival, batch, answer] = fitted.map(|ns| Nanos((ns * scale).round() as u64));
    Decisions { round, arrival, batch, answer }
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

fn plan(rate_qps: f64, turn: u64) -> Vec<Job> {
    let mut random = Random::new(1, turn);
    let estimates: Vec<_> = (0..QUERIES).map(|row| (QueryId(row), of_row(row))).collect();
    let count = (rate_qps * SECONDS) as usize;
    let arrivals = (0..count).map(|i| (Nanos::from_secs(i as f64 / rate_qps), random.below(QUERIES)));
    live::plan(arrivals, &estimates, Nanos::from_ms(50.0))
}
