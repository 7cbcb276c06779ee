//! Planned faults of lanes in simulated runs and in live runs on recorded times: both loops agree, and every query ends once.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use tandem::base::ids::{ProcessorId, QueryId};
use tandem::base::machine::{Class, FaultKind, FaultPlan, Idle, Machine, PerClass, PlannedFault};
use tandem::base::time::Nanos;
use tandem::cost::machine_profile::DispatcherProfile;
use tandem::cost::{BatchCost, Cost, Decisions, MachineModel, MachineProfile};
use tandem::live::{self, Ending, LanePool, LaneWork, LiveQuery, LiveRun, QuerySet};
use tandem::query::Query;
use tandem::sched::{BuiltIn, PolicyFactory, PolicyKind, PolicyOptions, RunLog, Shed};
use tandem::sim::{SimQuery, SimRun, simulate};
use tandem::traffic::Mode;

const DEADLINE: Nanos = Nanos(40_000);

fn assert_each_ended_once(log: &RunLog, count: usize) {
    let mut ids: Vec<u32> =
        log.rows.iter().map(|row| row.job.0).chain(log.shed.iter().map(|shed| shed.job.0)).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..count as u32).collect::<Vec<_>>());
}

fn sim_queries() -> impl Strategy<Value = Vec<SimQuery>> {
    let cost = || {
        (1u64..30, 1u64..3).prop_map(|(us, halves)| Cost { alone: Nanos(us * 1000), added: Nanos(us * 1000 / halves) })
    };
    let query = (cost(), cost(), cost(), cost()).prop_map(|(cpu, gpu, cpu_guess, gpu_guess)| {
        let costs = |cpu, gpu| {
            PerClass::from_fn(|class| match class {
                Class::CPU => cpu,
                Class::GPU => gpu,
                _ => Cost::NEVER,
            })
        };
        SimQuery { id: QueryId(0), service: costs(cpu, gpu), estimate: costs(cpu_guess, gpu_guess) }
    });
    prop::collection::vec(query, 1..8).prop_map(|mut queries| {
        (0..).zip(&mut queries).for_each(|(id, query)| query.id = QueryId(id));
        queries
    })
}

fn arrivals() -> impl Strategy<Value = Vec<(Nanos, u32)>> {
    prop::collection::vec((prop_oneof![Just(0u64), 0u64..20], any::<u32>()), 0..120).prop_map(|gaps| {
        let mut now = 0;
        let at = |(gap, query): (u64, u32)| {
            now += gap * 1000;
            (Nanos(now), query)
        };
        gaps.into_iter().map(at).collect()
    })
}

fn plans(lanes: usize) -> impl Strategy<Value = FaultPlan> {
    let fault = (0u64..1500, 0..lanes as u32, 0..FaultKind::ALL.len(), 1u64..300);
    let fault = fault.prop_map(|(at_us, lane, kind, lasts_us)| {
        let kind = FaultKind::ALL[kind];
        let lasts = if kind.passes() { Nanos(lasts_us * 1000) } else { Nanos::ZERO };
        PlannedFault { at: Nanos(at_us * 1000), processor: ProcessorId(lane), kind, lasts }
    });
    (prop::collection::vec(fault, 0..8), 50u64..400)
        .prop_map(|(faults, watchdog_us)| FaultPlan::new(faults, Nanos(watchdog_us * 1000)))
}

/// Rounds cost time by their events, more for one policy than for the others.
fn with_dispatcher(model: &MachineModel, each: Nanos) -> MachineModel {
    let ns = each.0;
    let any = Decisions { round: Nanos(3 * ns), arrival: each, batch: Nanos(2 * ns), answer: Nanos(ns / 2) };
    let policies = BTreeMap::from([(String::from("stealing"), Decisions { arrival: Nanos(4 * ns), ..any })]);
    let dispatcher = DispatcherProfile { any, policies };
    MachineProfile::new(BTreeMap::new(), Idle::Spin, BTreeMap::new(), dispatcher).model(model, |_| false)
}

/// A machine of up to three CPU workers and two GPUs, with or without batches and depth, whose lanes fail as planned.
fn models() -> impl Strategy<Value = MachineModel> {
    let batches = BatchCost {
        host_fixed_us: 1.0,
        host_each_us: 1.0,
        exposed: None,
        device_fixed_us: 1.0,
        longest: 0.5,
        crowding: vec![(1, 2.0), (16, 1.0)],
        most_queries: 16,
    };
    let batches = prop_oneof![Just(None), Just(Some(batches))];
    let overhead = || prop_oneof![Just(0u64), 0u64..3000].prop_map(Nanos);
    (1usize..4, 1usize..3, 1u32..3, batches, overhead(), overhead(), any::<bool>()).prop_flat_map(
        |(cpus, gpus, depth, batches, handoff, decision, has_file)| {
            let machine = Machine::new(cpus, 0).with_gpus(gpus, 1, depth);
            plans(machine.len()).prop_map(move |faults| {
                let model = MachineModel {
                    batches: PerClass::two(None, batches.clone()),
                    handoff: PerClass::two(handoff, handoff),
                    decision,
                    faults,
                    ..machine.clone().into()
                };
                if has_file { with_dispatcher(&model, decision) } else { model }
            })
        },
    )
}

/// Every policy with and without shedding, and with lengths where it needs them.
fn policies() -> impl Iterator<Item = BuiltIn> {
    let options = |shed| PolicyOptions { shed, length_threshold: 4, ..PolicyOptions::default() };
    let of = move |kind: PolicyKind| {
        Shed::ALL.map(|shed| kind.with(options(shed)).with_lengths(Arc::new([1, 9, 3, 4, 5, 2, 8, 3])))
    };
    PolicyKind::ALL.into_iter().flat_map(of)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn under_faults_queries_end_once_and_logs_are_equal(
        model in models(),
        queries in sim_queries(),
        mut arrivals in arrivals(),
    ) {
        arrivals.iter_mut().for_each(|(_, query)| *query %= queries.len() as u32);
        let mut lane_pool = LanePool::recorded(model.clone(), queries.iter().map(|query| query.service).collect());
        let estimates: Vec<_> = queries.iter().map(|q| (q.id, q.estimate)).collect();
        let jobs = live::plan(arrivals.iter().copied(), &estimates, DEADLINE);
        for policy in policies() {
            let run = SimRun {
                model: &model,
                policy: policy.build(&model).unwrap(),
                queries: &queries,
                arrivals: arrivals.iter().copied(),
                deadline: DEADLINE,
                priorities: None,
                others: None,
                seed: 0,
            };
            let simulated = simulate(run).unwrap();
            assert_each_ended_once(&simulated, jobs.len());
            prop_assert!(policy.options.shed == Shed::Late || simulated.shed.is_empty());
            // A dropped query was late when it was taken up, as far as the policy knew.
            prop_assert!(simulated.shed.iter().all(|shed| shed.dropped + shed.predicted[shed.class] > shed.deadline));
            let built = policy.build(&model).unwrap();
            let run = LiveRun::new(built, &jobs);
            let driven = live::run_under_manual_clock(&mut lane_pool, run, 0).unwrap();
            prop_assert_eq!(&driven.log, &simulated, "{}", policy.name());
            prop_assert_eq!(driven.unfinished, 0);
            // Queries ran again only on a lane that failed, and each failed lane lost some.
            let failed = |lane: ProcessorId| simulated.faults.iter().any(|fault| fault.processor == lane);
            prop_assert!(simulated.rows.iter().all(|row| !row.again || failed(row.processor)));
            prop_assert_eq!(simulated.rows.iter().any(|row| row.again), !simulated.faults.is_empty());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn pretended_lanes_fail_as_planned_in_real_time(
        model in models(),
        queries in sim_queries(),
        mut arrivals in arrivals(),
    ) {
        arrivals.iter_mut().for_each(|(_, query)| *query %= queries.len() as u32);
        let estimates: Vec<_> = queries.iter().map(|q| (q.id, q.estimate)).collect();
        let jobs = live::plan(arrivals.iter().copied(), &estimates, DEADLINE);
        let live = |query: &SimQuery| LiveQuery {
            id: query.id,
            query: Query { id: query.id, label: String::new(), terms: Vec::new(), dropped_terms: 0 },
            mode: Mode::And,
            results: None,
        };
        let set = Arc::new(QuerySet::new(10, queries.iter().map(live)));
        let work = || model.machine.processors().map(|_| LaneWork::TimeWarp).collect();
        let costs: Vec<_> = queries.iter().map(|query| query.service).collect();
        let mut lane_pool = LanePool::spawn(model.clone(), work(), set, costs).unwrap();
        for policy in policies() {
            let built = policy.build(&model).unwrap();
            let run = LiveRun::new(built, &jobs);
            let outcome = live::run(&mut lane_pool, run).unwrap();
            prop_assert!(matches!(outcome.ending, Ending::Complete), "{}: {:?}", policy.name(), outcome.ending);
            assert_each_ended_once(&outcome.log, jobs.len());
            prop_assert_eq!((outcome.unfinished, outcome.unreleased), (0, 0));
        }
    }
}

#[test]
fn beyond_capacity_shedding_answers_more_in_time() {
    // One worker serves queries that come every 10 us and take 15, with a deadline of 200.
    let model = MachineModel::from(Machine::new(1, 0));
    let cost = PerClass::from_fn(|class| if class == Class::CPU { Cost::alone(Nanos(15_000)) } else { Cost::NEVER });
    let queries = [SimQuery { id: QueryId(0), service: cost, estimate: cost }];
    let in_time = |shed| {
        let policy = PolicyKind::CpuOnly.with(PolicyOptions { shed, ..PolicyOptions::default() });
        let log = simulate(SimRun {
            model: &model,
            policy: policy.build(&model).unwrap(),
            queries: &queries,
            arrivals: (0..1000).map(|i| (Nanos(i * 10_000), 0)),
            deadline: Nanos(200_000),
            priorities: None,
            others: None,
            seed: 0,
        })
        .unwrap();
        assert_each_ended_once(&log, 1000);
        (log.rows.iter().filter(|row| !row.missed()).count(), log.shed.len())
    };
    // Without shedding the i-th query is ready after 15 (i + 1) us, in time up to i = 37. With shedding all queries that
    // run are in time.
    assert_eq!(in_time(Shed::Nothing), (38, 0));
    let (kept, dropped) = in_time(Shed::Late);
    assert_eq!(kept + dropped, 1000);
    assert!((660..=680).contains(&kept), "{kept}");
}
