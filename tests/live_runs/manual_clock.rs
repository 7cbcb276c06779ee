//! The law of the live driver: under a manual clock its log equals the simulator's, on any machine.

use std::sync::Arc;

use proptest::prelude::*;
use tandem::base::ids::QueryId;
use tandem::base::machine::{Class, Machine, PerClass};
use tandem::base::time::Nanos;
use tandem::cost::{BatchCost, Cost, MachineModel, Parallelism, SpeedUp};
use tandem::live::{self, Ending, GapOf, GapSum, LanePool, LiveRun};
use tandem::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use tandem::sim::{SimQuery, SimRun, simulate};

use crate::machines::on_profile;

const DEADLINE: Nanos = Nanos(40_000);

/// Few, small and often equal numbers, in microseconds: ties are where two loops would differ.
fn queries() -> impl Strategy<Value = Vec<SimQuery>> {
    let time = || (1u64..30).prop_map(|us| Nanos(us * 1000));
    // A query adds half of its time alone to a batch, or all of it.
    let cost = || (time(), 1u64..3).prop_map(|(alone, halves)| Cost { alone, added: Nanos(alone.0 / halves) });
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
        for (query, id) in queries.iter_mut().zip(100..) {
            query.id = QueryId(id);
        }
        queries
    })
}

/// Gaps between arrivals, many of them zero, and the query of each arrival (modulo the number of queries).
fn arrivals() -> impl Strategy<Value = Vec<(Nanos, u32)>> {
    prop::collection::vec((prop_oneof![Just(0u64), 0u64..20], any::<u32>()), 0..120).prop_map(|gaps| {
        let mut now = 0;
        gaps.into_iter()
            .map(|(gap, query)| {
                now += gap * 1000;
                (Nanos(now), query)
            })
            .collect()
    })
}

/// CPU workers and GPUs of one or two streams, up to four batches deep, with and without batch costs and the speed-up of a query
/// on several CPU workers. Hand-over and decisions take some time or none, or service times come from a machine profile.
fn models() -> impl Strategy<Value = MachineModel> {
    let machine = (1usize..4, 1usize..3, 1usize..3, 1u32..5)
        .prop_map(|(cpus, gpus, streams, depth)| Machine::new(cpus, 0).with_gpus(gpus, streams, depth));
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
    let spread = prop::option::of(0u32..500);
    let parallelism = prop::option::of((1.0..2.0_f64).prop_map(|on_two| {
        let speed_up = SpeedUp::of_all(vec![1.0, on_two, 1.4 * on_two]);
        Arc::new(Parallelism::of(speed_up, (1..30).map(|us| Nanos(us * 1000)).collect()))
    }));
    (machine, batches, overhead(), overhead(), spread, parallelism).prop_map(
        |(machine, batches, handoff, decision, spread, parallelism)| {
            let model = MachineModel {
                parallelism,
                batches: PerClass::two(None, batches),
                handoff: PerClass::two(handoff, handoff),
                decision,
                ..machine.into()
            };
            spread.map_or(model.clone(), |spread| on_profile(&model, spread))
        },
    )
}

proptest! {
    #[test]
    fn live_driver_with_manual_clock_logs_exactly_what_sim_logs(
        model in models(),
        queries in queries(),
        mut arrivals in arrivals(),
        seed in any::<u64>(),
    ) {
        for (_, query) in &mut arrivals {
            *query %= queries.len() as u32;
        }
        let mut lane_pool = LanePool::recorded(model.clone(), queries.iter().map(|query| query.service).collect());
        let estimates: Vec<_> = queries.iter().map(|q| (q.id, q.estimate)).collect();
        let jobs = live::plan(arrivals.iter().copied(), &estimates, DEADLINE);
        for kind in PolicyKind::ALL {
            let policy = || kind.with(PolicyOptions::default()).build(&model).unwrap();
            let simulated = simulate(SimRun {
                model: &model,
                policy: policy(),
                queries: &queries,
                arrivals: arrivals.iter().copied(),
                deadline: DEADLINE,
                priorities: None,
                others: None,
                seed,
            })
            .unwrap();
            let run = LiveRun::new(policy(), &jobs);
            let driven = live::run_under_manual_clock(&mut lane_pool, run, seed).unwrap();
            prop_assert_eq!(&driven.log, &simulated, "{}", kind);
            prop_assert!(matches!(driven.ending, Ending::Complete));
            prop_assert_eq!(driven.log.rows.len(), jobs.len());
            prop_assert!(model.decision > Nanos::ZERO || driven.lag.max == Nanos::ZERO);
            prop_assert!(jobs.is_empty() || driven.decision.max == model.decision);
        }
    }
}

#[test]
fn variation_of_lanes_is_felt_by_both_loops() {
    let batches = BatchCost {
        host_fixed_us: 4.0,
        host_each_us: 1.0,
        exposed: None,
        device_fixed_us: 1.0,
        longest: 0.5,
        crowding: vec![(1, 2.0), (16, 1.0)],
        most_queries: 16,
    };
    let machine = Machine::new(2, 0).with_gpus(1, 1, 4);
    let plain = MachineModel { batches: PerClass::two(None, Some(batches)), decision: Nanos(50), ..machine.into() };
    let service = |i: u64| {
        let mut service = Cost::on_cpu_and_gpu(Nanos((10 + i) * 1000), Nanos((5 + i) * 1000));
        service[Class::GPU].added = Nanos((5 + i) * 300);
        service
    };
    let queries: Vec<SimQuery> =
        (0..8).map(|i| SimQuery { id: QueryId(i), service: service(i.into()), estimate: service(i.into()) }).collect();
    let arrivals: Vec<(Nanos, u32)> = (0..400).map(|i| (Nanos(u64::from(i) * 700), i * 7 % 8)).collect();
    let estimates: Vec<_> = queries.iter().map(|q| (q.id, q.estimate)).collect();
    let jobs = live::plan(arrivals.iter().copied(), &estimates, DEADLINE);
    // The policies include lines, batches, and queries stolen from lines.
    for kind in [PolicyKind::BestOf, PolicyKind::Adaptive, PolicyKind::Combined] {
        let simulated = |model: &MachineModel| {
            let (policy, arrivals) =
                (kind.with(PolicyOptions::default()).build(model).unwrap(), arrivals.iter().copied());
            simulate(SimRun {
                model,
                policy,
                queries: &queries,
                arrivals,
                deadline: DEADLINE,
                priorities: None,
                others: None,
                seed: 0,
            })
            .unwrap()
        };
        let driven = |model: &MachineModel| {
            let mut lane_pool = LanePool::recorded(model.clone(), queries.iter().map(|query| query.service).collect());
            let policy = kind.with(PolicyOptions::default()).build(model).unwrap();
            let run = LiveRun::new(policy, &jobs);
            live::run_under_manual_clock(&mut lane_pool, run, 0).unwrap().log
        };
        let (varied, steady) = (on_profile(&plain, 400), on_profile(&plain, 0));
        assert_eq!(simulated(&varied), driven(&varied), "{kind}");
        assert_ne!(simulated(&varied), driven(&steady), "{kind}");
        assert_ne!(simulated(&steady), driven(&varied), "{kind}");
    }
}

#[test]
fn a_round_that_its_events_do_not_explain_is_a_gap_of_the_driver() {
    let slow = MachineModel { decision: Nanos(40_000_000), ..Machine::new(1, 0).into() };
    let cost = Cost::on_cpu_and_gpu(Nanos(100_000), Nanos::MAX);
    let queries = [(QueryId(0), PerClass::from_fn(|class| cost[class]))];
    let jobs = live::plan((0..6).map(|i| (Nanos(i * 400_000_000), 0)), &queries, DEADLINE);
    let driven = |model: &MachineModel| {
        let mut lane_pool = LanePool::recorded(model.clone(), vec![cost]);
        let policy = PolicyKind::CpuOnly.with(PolicyOptions::default()).build(model).unwrap();
        live::run_under_manual_clock(&mut lane_pool, LiveRun::new(policy, &jobs), 0).unwrap().course
    };
    let course = driven(&slow);
    let gaps = course.gaps(GapOf::Driver);
    // The rounds of each arrival and of each answer take 40 ms, of which half a microsecond is explained.
    assert_eq!((gaps.count, gaps.time), (12, Nanos(12 * (40_000_000 - 500))));
    assert!(course.longest.iter().all(|gap| gap.of == GapOf::Driver && gap.lasts() >= Nanos::from_ms(39.0)));
    assert!(course.thirds.iter().all(|third| third.driver.count == 4), "{course:?}");
    assert_eq!(course.gaps(GapOf::Lanes), GapSum::default());
    let calm = driven(&MachineModel { decision: Nanos(50), ..slow });
    assert_eq!((calm.gaps(GapOf::Driver), calm.longest.len()), (GapSum::default(), 0));
}
