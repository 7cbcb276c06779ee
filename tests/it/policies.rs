//! Laws that hold for every policy and all arrivals.

use proptest::prelude::*;
use tandem::base::ids::{DeviceId, QueryId};
use tandem::base::machine::{Class, Machine, PerClass, Processor};
use tandem::base::time::Nanos;
use tandem::cost::{BatchCost, BatchLoad, Cost, MachineModel};
use tandem::sched::{PolicyFactory, PolicyKind, PolicyOptions, RunLog, StealGuard};
use tandem::sim::{Arrivals, Experiment, SimQuery, simulate};

/// A machine with one or two classes of CPUs, GPUs of several streams and depths, with or without batch costs, hand-over
/// time and decision time.
fn models() -> impl Strategy<Value = MachineModel> {
    let gpus = (1_usize..3, 1_usize..3, 1_u32..4);
    let batches = prop::option::of((0.0..5e3_f64, 0.0..500.0_f64, 0.0..1.0_f64, 1.0..20.0_f64, 2_u32..40));
    let overheads = (0_u64..2_000_000, 0_u64..500_000);
    (1_usize..4, 0_u32..3, gpus, batches, overheads).prop_map(
        |(cpus, second_sort, (gpus, streams, depth), batches, (handoff, decision))| {
            let mut machine = Machine::default().with_cpus(cpus).with_gpus(gpus, streams, depth);
            for stream in 0..second_sort {
                machine = machine.with(Processor { class: Class::CPU2, device: DeviceId(0), stream, depth: 1 });
            }
            let batches = batches.map(|(host_fixed_us, host_each_us, longest, crowding, most_queries)| BatchCost {
                host_fixed_us,
                host_each_us,
                exposed: None,
                device_fixed_us: 0.0,
                longest,
                crowding: vec![(2, crowding), (most_queries, 1.0)],
                most_queries,
            });
            MachineModel {
                batches: PerClass::from_fn(|class| batches.clone().filter(|_| class == Class::GPU)),
                handoff: PerClass::from_fn(|class| Nanos(if class.is_gpu() { 2 * handoff } else { handoff })),
                decision: Nanos(decision),
                ..machine.into()
            }
        },
    )
}

/// A machine, a workload with random errors of estimates, arrivals with ties, and any options.
fn experiments() -> impl Strategy<Value = (Experiment, PolicyOptions)> {
    let cost = || {
        (0_u64..400_000_000, 0.0..1.0_f64).prop_map(|(alone, share)| {
            let alone = Nanos(alone);
            Cost { alone, added: alone.scaled(share) }
        })
    };
    let costs = move || [cost(), cost(), cost()];
    let queries = prop::collection::vec((costs(), costs()), 1..8);
    let gaps = prop::collection::vec((prop_oneof![Just(0.0), 0.0..3.0_f64], any::<prop::sample::Index>()), 1..120);
    (models(), queries, gaps, options(), 1_u64..1000).prop_map(|(model, queries, gaps, options, deadline_ms)| {
        let mut at = 0.0;
        let unit = gaps.iter().map(|(gap, _)| {
            at += gap;
            at
        });
        let drawn = gaps.iter().map(|(_, query)| query.index(queries.len()) as u32);
        let arrivals = vec![Arrivals::given(0, unit.collect(), drawn.collect())];
        let on_machine = |costs: [Cost; 3]| {
            PerClass::from_fn(|class| match model.machine.count(class) {
                0 => Cost::NEVER,
                _ => costs[class.index()],
            })
        };
        let query = |(id, (service, estimate)): (u32, ([Cost; 3], [Cost; 3]))| SimQuery {
            id: QueryId(id),
            service: on_machine(service),
            estimate: on_machine(estimate),
        };
        let queries = (0..).zip(queries).map(query).collect();
        (Experiment { cluster: None, deadline: Nanos(deadline_ms * 1_000_000), arrivals, queries, model }, options)
    })
}

fn options() -> impl Strategy<Value = PolicyOptions> {
    let guard = prop::sample::select(&StealGuard::ALL[..]);
    let choosing = (1.0..4.0, 0.0..=1.0, 0.0..20.0, 0.0..3.0, 0.0..3.0, guard);
    let batching = (1_u32..50, 0.01..=1.0_f64, 0.0..1e5_f64, 1_u32..50);
    (choosing, batching).prop_map(
        |((threshold_ratio, urgent_share, cost_weight, deadline_weight, affinity_weight, steal_guard), batching)| {
            let (batch_limit, batch_share, window_us, window_queries) = batching;
            PolicyOptions {
                threshold_ratio,
                urgent_share,
                cost_weight,
                deadline_weight,
                affinity_weight,
                steal_guard,
                batch_limit,
                batch_share,
                window_us,
                window_queries,
                ..PolicyOptions::default()
            }
        },
    )
}

fn play(experiment: &Experiment, policy: &dyn PolicyFactory, rate_qps: f64) -> RunLog {
    simulate(experiment.run(policy, rate_qps, &experiment.arrivals[0]).unwrap()).unwrap()
}

/// Whether no two of these spans of time overlap; they may touch.
fn are_apart(mut spans: Vec<(Nanos, Nanos)>) -> bool {
    spans.sort_unstable();
    spans.windows(2).all(|pair| pair[0].1 <= pair[1].0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_policy_loses_or_repeats_a_query((experiment, options) in experiments(), rate_qps in 0.5..50.0_f64) {
        let model = &experiment.model;
        for kind in PolicyKind::ALL {
            let log = play(&experiment, &kind.with(options), rate_qps);
            let arrivals = &experiment.arrivals[0];
            prop_assert_eq!(log.rows.len(), arrivals.len());
            for (i, (row, query)) in log.rows.iter().zip(arrivals.queries()).enumerate() {
                prop_assert_eq!(row.job.index(), i);
                prop_assert_eq!(row.query.0, query);
                prop_assert!(row.started >= row.released && row.released >= row.arrival);
                prop_assert_eq!(model.machine.class(row.processor), row.class);
            }
            for (processor, lane) in model.machine.processors() {
                let mut rows: Vec<_> = log.rows.iter().filter(|row| row.processor == processor).collect();
                rows.sort_by_key(|row| row.batch);
                let batches: Vec<&[&_]> = rows.chunk_by(|a, b| a.batch == b.batch).collect();
                for (i, batch) in batches.iter().enumerate() {
                    prop_assert!(batch.iter().all(|row| row.finished == batch[0].finished));
                    prop_assert!(batch.len() as u32 <= options.batch_limit.max(8));
                    let service = |query: QueryId| experiment.queries[query.index()].service[lane.class];
                    let load = batch.iter().fold(BatchLoad::default(), |load, row| load.with(service(row.query)));
                    let least = model.batch_time(lane.class, &load).total() + model.handoff[lane.class];
                    prop_assert!(batch[0].finished.since(batch[0].started) >= least);
                    // At most the lane's depth of batches are under way.
                    if let Some(before) = i.checked_sub(lane.depth as usize) {
                        prop_assert!(batches[before][0].finished <= batch[0].started);
                    }
                }
            }
        }
    }

    #[test]
    fn best_of_never_runs_two_queries_at_once((experiment, options) in experiments(), rate_qps in 0.5..50.0_f64) {
        let log = play(&experiment, &PolicyKind::BestOf.with(options), rate_qps);
        prop_assert!(are_apart(log.rows.iter().map(|row| (row.started, row.finished)).collect()));
    }

    #[test]
    fn only_thieves_steal((experiment, options) in experiments(), rate_qps in 0.5..50.0_f64) {
        use PolicyKind::{Stealing, StealingAdaptive, StealingPublished};
        let thieves = [Stealing, StealingAdaptive, StealingPublished];
        for kind in PolicyKind::ALL.into_iter().filter(|kind| !thieves.contains(kind)) {
            prop_assert!(play(&experiment, &kind.with(options), rate_qps).rows.iter().all(|row| !row.stolen));
        }
    }

    #[test]
    fn first_come_first_served_keeps_the_order_of_arrival(
        (experiment, options) in experiments(),
        rate_qps in 0.5..50.0_f64,
    ) {
        use PolicyKind::{Adaptive, CpuOnly, GpuOnly, Greedy, Window};
        for kind in [CpuOnly, GpuOnly, Greedy, Window, Adaptive] {
            let log = play(&experiment, &kind.with(options), rate_qps);
            prop_assert!(log.rows.is_sorted_by_key(|row| row.started), "{}", kind);
        }
    }
}

#[test]
fn equal_inputs_give_equal_logs() {
    let service = |cpu, gpu| Cost::on_cpu_and_gpu(Nanos::from_ms(cpu), Nanos::from_ms(gpu));
    let query = |(id, service)| SimQuery { id: QueryId(id), service, estimate: service };
    let experiment = Experiment {
        cluster: None,
        model: Machine::new(2, 2).into(),
        queries: (0..).zip([service(3.0, 3.0), service(20.0, 4.0), service(1.0, 9.0)]).map(query).collect(),
        deadline: Nanos::from_ms(50.0),
        // Queries arrive three at a time, so that ties are frequent.
        arrivals: vec![Arrivals::given(
            0,
            (0..3000).map(|i| f64::from(i / 3)).collect(),
            (0..3000).map(|i| i % 3).collect(),
        )],
    };
    for kind in PolicyKind::ALL {
        let policy = kind.with(PolicyOptions::default());
        assert_eq!(play(&experiment, &policy, 250.0), play(&experiment, &policy, 250.0));
    }
}

/// One CPU and two queries, of 1 and 9 ms.
fn two_queries() -> Experiment {
    let query = |(id, ms): (u32, f64)| {
        let service = Cost::on_cpu_and_gpu(Nanos::from_ms(ms), Nanos::MAX);
        SimQuery { id: QueryId(id), service, estimate: service }
    };
    Experiment {
        cluster: None,
        model: Machine::new(1, 0).into(),
        deadline: Nanos::from_ms(50.0),
        arrivals: vec![Arrivals::given(1, vec![0.0, 1.0, 2.0, 3.0], vec![0, 1, 0, 1])],
        queries: (0..).zip([1.0, 9.0]).map(query).collect(),
    }
}

#[test]
fn without_its_longest_queries_the_region_is_the_others() {
    let experiment = two_queries();
    let region =
        |dropped| experiment.region_of(&PolicyKind::CpuOnly.with(Default::default()), dropped).unwrap().rate_qps;
    assert!((region(0.0) - 200.0).abs() < 1e-6, "{}", region(0.0));
    assert!((region(0.5) - 2000.0).abs() < 1e-6, "{}", region(0.5));
}

#[test]
fn runs_beyond_simulated_time_are_refused_with_length() {
    // A query arrives every second and takes five milliseconds in the mean; half of the range is 9.2 billion seconds.
    let refused = two_queries().check_time(1.0, 9_190_000_000).unwrap_err().to_string();
    assert!(refused.contains("9190000000"), "{refused}");
    assert!(two_queries().check_time(1.0, 9_100_000_000).is_ok());
}

/// A GPU as measured on the GOV2-size index: 22 us alone, 1.7 us per query in batches of 4096.
fn batching_gpu(cpus: usize) -> Experiment {
    let batches = BatchCost {
        host_fixed_us: 8.0,
        host_each_us: 0.3,
        exposed: None,
        device_fixed_us: 0.0,
        longest: 0.5,
        crowding: vec![(2, 7.0), (16, 6.5), (64, 3.6), (256, 1.6), (1024, 1.15), (4096, 1.0)],
        most_queries: 4096,
    };
    let cost = |i: u32| {
        let scale = f64::from(1 + i % 7) / 4.0;
        PerClass::from_fn(|class| match class {
            Class::CPU => Cost::alone(Nanos::from_us(1400.0 * scale)),
            Class::GPU => Cost { alone: Nanos::from_us(10.0 + 12.0 * scale), added: Nanos::from_us(1.4 * scale) },
            _ => Cost::NEVER,
        })
    };
    let queries: Vec<SimQuery> =
        (0..70).map(|i| SimQuery { id: QueryId(i), service: cost(i), estimate: cost(i) }).collect();
    let n = 200_000;
    Experiment {
        cluster: None,
        model: MachineModel {
            batches: PerClass::from_fn(|class| (class == Class::GPU).then(|| batches.clone())),
            ..Machine::default().with_cpus(cpus).with_gpus(1, 1, 2).into()
        },
        deadline: Nanos::from_ms(50.0),
        arrivals: vec![Arrivals::drawn(&tandem::traffic::ArrivalProcess::Poisson, 1, n, queries.len())],
        queries,
    }
}

/// The mean and the 99th percentile of the delay, in microseconds.
fn delays_us(experiment: &Experiment, kind: PolicyKind, rate_qps: f64) -> (f64, f64) {
    let log = play(experiment, &kind.with(PolicyOptions::default()), rate_qps);
    let mut delays: Vec<f64> = log.rows.iter().map(|row| row.delay().as_us()).collect();
    delays.sort_by(f64::total_cmp);
    (delays.iter().sum::<f64>() / delays.len() as f64, delays[delays.len() * 99 / 100])
}

#[test]
fn batches_serve_ten_times_and_cost_nothing_at_low_load() {
    for cpus in [1, 8] {
        let experiment = batching_gpu(cpus);
        let busy_qps = 400_000.0;
        let (_, late_us) = delays_us(&experiment, PolicyKind::Stealing, busy_qps);
        assert!(late_us > 50_000.0, "{late_us}");
        for kind in [PolicyKind::Greedy, PolicyKind::Combined] {
            let (_, p99_us) = delays_us(&experiment, kind, busy_qps);
            assert!(p99_us < 20_000.0, "{kind}: {p99_us}");
            let (_, alone_us) = delays_us(&experiment, PolicyKind::Mct, 2000.0);
            let (_, p99_us) = delays_us(&experiment, kind, 2000.0);
            assert!(p99_us < 1.2 * alone_us, "{kind}: {p99_us} against {alone_us}");
        }
    }
}

#[test]
fn overload_does_not_make_batches_smaller() {
    // Under overload all queries are late in the end: the service rate must stay at the capacity.
    let experiment = batching_gpu(1);
    let served_qps = |kind: PolicyKind, rate_qps: f64| {
        let log = play(&experiment, &kind.with(PolicyOptions::default()), rate_qps);
        let end = log.rows.iter().map(|row| row.finished).max().unwrap_or_default();
        log.rows.len() as f64 / end.as_secs()
    };
    for kind in [PolicyKind::Greedy, PolicyKind::Combined, PolicyKind::Adaptive, PolicyKind::Window] {
        let (most, overloaded) = (served_qps(kind, 600_000.0), served_qps(kind, 1_500_000.0));
        assert!(overloaded > 0.95 * most, "{kind}: {overloaded} of {most} queries per second");
    }
}
