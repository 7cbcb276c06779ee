//! Policies that serve queues are simulated without a dispatcher, with rows equal to the dispatcher's.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tandem::base::ids::{DeviceId, JobId, QueryId};
use tandem::base::machine::{Class, Idle, Machine, PerClass, Processor};
use tandem::base::time::Nanos;
use tandem::cost::machine_profile::{Beside, DispatcherProfile, LaneProfile, Slowdown, Spread};
use tandem::cost::{BatchCost, Cost, Decisions, MachineModel, MachineProfile};
use tandem::sched::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyFactory, PolicyKind, PolicyOptions, RunLog};
use tandem::sim::{SimQuery, SimRun, simulate_into};

/// A policy that hides that it serves queues.
struct Unsaid(Box<dyn Policy>);

impl Policy for Unsaid {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn arrive(&mut self, job: &Job, jobs: &Jobs, now: Nanos) -> LanesToPoll {
        self.0.arrive(job, jobs, now)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        self.0.next(lane, jobs, now, batch)
    }

    fn finished(&mut self, lane: Lane, batch: &[JobId], jobs: &Jobs, service: Nanos, now: Nanos) -> LanesToPoll {
        self.0.finished(lane, batch, jobs, service, now)
    }
}

/// A lane whose service times depend on the rest of its machine.
fn lane_profile() -> LaneProfile {
    let slowdown = |busy, work, spread| Slowdown { busy, work, spread, ..Slowdown::default() };
    LaneProfile {
        each_us: 0.002,
        hand_over_us: 0.01,
        hand_back_us: 0.005,
        after_idle: vec![(0.05, 1.3)],
        beside: BTreeMap::from([(Class::GPU, Beside { lanes: 1, work: 1.2, device: 1.0 })]),
        slowdown: vec![slowdown(1, 1.0, Spread::Factors(vec![0.8, 1.2])), slowdown(3, 1.5, Spread::Deviation(0.3))],
        power: None,
    }
}

fn batch_cost() -> BatchCost {
    BatchCost {
        host_fixed_us: 0.004,
        host_each_us: 0.002,
        exposed: None,
        device_fixed_us: 0.003,
        longest: 0.5,
        crowding: vec![(1, 2.0), (8, 1.0)],
        most_queries: 8,
    }
}

prop_compose! {
    fn models()(
        (cpus, gpus, streams, depth) in (1..5_usize, 1..3_usize, 1..3_usize, 1..3_u32),
        second_sorts in 0..4_u32,
        (decision, handoff) in (0..9_u64, 0..9_u64),
        (has_batches, has_profile) in (any::<bool>(), any::<bool>()),
    ) -> MachineModel {
        let mut machine = Machine::new(cpus, 0).with_gpus(gpus, streams, depth);
        for (bit, class) in [Class::CPU2, Class::GPU2].into_iter().enumerate() {
            if second_sorts >> bit & 1 == 1 {
                machine = machine.with(Processor { class, device: DeviceId(0), stream: 0, depth });
            }
        }
        let model = MachineModel {
            decision: Nanos(decision),
            handoff: PerClass::two(Nanos(handoff), Nanos(2 * handoff)),
            batches: PerClass::two(None, has_batches.then(batch_cost)),
            ..MachineModel::from(machine)
        };
        if !has_profile {
            return model;
        }
        let each = Nanos(decision);
        let any = Decisions { round: Nanos(3 * decision), arrival: each, batch: each, answer: Nanos::ZERO };
        let policies =
            BTreeMap::from([(String::from("mct"), Decisions { arrival: Nanos(2 * decision), answer: each, ..any })]);
        let dispatcher = DispatcherProfile { any, policies };
        let classes = BTreeMap::from([(Class::CPU, lane_profile()), (Class::GPU, lane_profile())]);
        MachineProfile::new(BTreeMap::new(), Idle::Spin, classes, dispatcher).model(&model, |_| false)
    }
}

/// Costs so small that many events share a nanosecond, with right or wrong estimates.
fn queries() -> impl Strategy<Value = Vec<SimQuery>> {
    let costs = || (0..40_u64, 0..40_u64, 0..40_u64, 0..40_u64);
    let per_class = |(cpu, gpu, cpu2, gpu2): (u64, u64, u64, u64)| {
        let ns = [cpu, gpu, cpu2, gpu2];
        PerClass::from_fn(|class| Cost { added: Nanos(ns[class.index()] / 2), ..Cost::alone(Nanos(ns[class.index()])) })
    };
    let query = (costs(), costs(), any::<bool>()).prop_map(move |(service, estimate, is_right)| {
        let service = per_class(service);
        (service, if is_right { service } else { per_class(estimate) })
    });
    prop::collection::vec(query, 1..12).prop_map(|queries| {
        let query = |(id, (service, estimate)): (u32, _)| SimQuery { id: QueryId(id + 100), service, estimate };
        (0..).zip(queries).map(query).collect()
    })
}

const LINES: [PolicyKind; 6] = [
    PolicyKind::GpuOnly,
    PolicyKind::CpuOnly,
    PolicyKind::BestOf,
    PolicyKind::Mct,
    PolicyKind::RandomSplit,
    PolicyKind::LengthBased,
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn lines_give_the_rows_that_a_dispatcher_gives(
        model in models(),
        queries in queries(),
        arrivals in prop::collection::vec((0..60_u64, any::<prop::sample::Index>()), 0..150),
        crowd in 1..20_u64,
        batch_limit in 1..3_u32,
        stop_after in 0..200_usize,
    ) {
        let mut at = 0;
        let arrivals: Vec<(Nanos, u32)> = arrivals.iter().map(|(gap, row)| {
            at += gap / crowd;
            (Nanos(at), row.index(queries.len()) as u32)
        }).collect();
        for kind in LINES {
            let options = PolicyOptions { batch_limit, ..PolicyOptions::default() };
            let lengths = (0..queries.len() as u32).map(|row| 40_000 * (row % 2)).collect();
            let factory = kind.with(options).with_lengths(lengths);
            let play = |policy: Box<dyn Policy>, enough: usize| {
                let arrivals = arrivals.iter().copied();
                let run = SimRun { model: &model, policy, queries: &queries, arrivals, deadline: Nanos(50), priorities: None, others: None, seed: 0 };
                simulate_into(run, RunLog::default(), |log| log.rows.len() > enough).unwrap()
            };
            for enough in [usize::MAX, stop_after] {
                let policy = factory.build(&model).unwrap();
                let by_dispatcher = play(Box::new(Unsaid(factory.build(&model).unwrap())), enough);
                prop_assert_eq!(play(policy, enough), by_dispatcher, "{}", kind);
            }
        }
    }
}

#[test]
fn policies_that_commit_say_so_and_others_do_not() {
    let model = MachineModel::from(Machine::new(3, 2));
    let queues: Vec<PolicyKind> = PolicyKind::ALL
        .into_iter()
        .filter(|kind| kind.with(PolicyOptions::default()).build(&model).unwrap().as_fifo_queues().is_some())
        .collect();
    let mut expected = LINES.to_vec();
    expected.sort();
    let mut found = queues;
    found.sort();
    assert_eq!(found, expected);
    // With batches of more than one query, two of the policies serve no queues any more.
    let model = MachineModel { batches: PerClass::two(None, Some(batch_cost())), ..model };
    for kind in [PolicyKind::RandomSplit, PolicyKind::LengthBased] {
        assert!(kind.with(PolicyOptions::default()).build(&model).unwrap().as_fifo_queues().is_none());
    }
}
