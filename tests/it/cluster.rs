//! Simulated clusters against closed forms, and against single nodes.
//!
//! Times are exponential and arrivals Poisson, so that closed forms exist. Each test compares the mean of independent
//! replications, within four of its estimated standard errors.

use std::collections::BTreeMap;

use tandem::base::ids::QueryId;
use tandem::base::machine::{Class, Idle, Machine};
use tandem::base::time::Nanos;
use tandem::cost::machine_profile::{DispatcherProfile, LaneProfile, Slowdown, Spread};
use tandem::cost::{Cost, MachineModel, MachineProfile};
use tandem::sched::{PolicyKind, PolicyOptions, RunLog};
use tandem::sim::{Arrivals, Cluster, ClusterShape, Experiment, Routing, ShardCosts, SimQuery, simulate};
use tandem::traffic::{ArrivalProcess, unit_arrivals};

const REPLICATIONS: u64 = 16;
const QUERIES: usize = 40_000;
const SERVICE_MS: f64 = 5.0;

/// Plays a cluster of nodes with one CPU each, at this load of each node.
fn play(shape: Option<ClusterShape>, seed: u64, load: f64) -> RunLog {
    let gaps = unit_arrivals(&ArrivalProcess::Poisson, seed + 1_000_000, QUERIES);
    let scales = std::iter::once(gaps[0]).chain(gaps.windows(2).map(|pair| pair[1] - pair[0]));
    let query = |(id, scale): (u32, f64)| {
        let service = Cost::on_cpu_and_gpu(Nanos::from_ms(SERVICE_MS * scale), Nanos::MAX);
        SimQuery { id: QueryId(id), service, estimate: service }
    };
    let queries: Vec<SimQuery> = (0..).zip(scales).map(query).collect();
    let replicas = shape.map_or(1, |shape| shape.replicas);
    let experiment = Experiment {
        cluster: shape.map(|shape| Cluster::new(shape, &queries)),
        queries,
        model: Machine::new(1, 0).into(),
        deadline: Nanos::from_ms(500.0),
        arrivals: Vec::new(),
    };
    let unit = unit_arrivals(&ArrivalProcess::Poisson, seed, QUERIES);
    let arrivals = Arrivals::given(seed, unit, (0..QUERIES as u32).collect());
    let rate_qps = load * replicas as f64 * 1e3 / SERVICE_MS;
    let policy = PolicyKind::CpuOnly.with(PolicyOptions::default());
    simulate(experiment.run(&policy, rate_qps, &arrivals).unwrap()).unwrap()
}

fn shape(shards: usize, replicas: usize, routing: Routing, costs: ShardCosts) -> ClusterShape {
    ClusterShape { shards, replicas, routing, costs }
}

fn mean_services(log: &RunLog) -> f64 {
    log.rows.iter().map(|row| row.delay().as_ms()).sum::<f64>() / log.rows.len() as f64 / SERVICE_MS
}

/// The mean of one number per replication, with its standard error.
fn replicated(one: impl Fn(u64) -> f64) -> (f64, f64) {
    let values: Vec<f64> = (1..=REPLICATIONS).map(one).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

fn agree(what: &str, expected: f64, one: impl Fn(u64) -> f64) {
    let (mean, error) = replicated(one);
    assert!((mean - expected).abs() < 4.0 * error, "{what}: simulated {mean:.4} ± {error:.4}, theory {expected:.4}");
    assert!(error < 0.05 * expected, "{what}: ± {error:.4} is too loose around {expected:.4}");
}

fn harmonic(n: u32) -> f64 {
    (1..=n).map(|i| 1.0 / f64::from(i)).sum()
}

#[test]
fn rules_of_routing_have_names() {
    assert_eq!(Routing::ALL.map(Routing::name), ["least-outstanding", "round-robin", "random"]);
}

#[test]
fn a_cluster_of_one_node_is_that_node() {
    for routing in Routing::ALL {
        for costs in [ShardCosts::Alike(0.0), ShardCosts::Independent] {
            assert_eq!(play(Some(shape(1, 1, routing, costs)), 3, 0.9), play(None, 3, 0.9));
        }
    }
}

/// A CPU worker that takes 1 ms for 99 % of queries, and 30 ms for the others.
fn noisy() -> MachineModel {
    let spread = Spread::Factors([vec![1.0; 99], vec![30.0]].concat());
    let slowdown = vec![Slowdown { work: 1.29, spread, ..Slowdown::default() }];
    let classes = BTreeMap::from([(Class::CPU, LaneProfile { slowdown, ..LaneProfile::default() })]);
    let profile = MachineProfile::new(BTreeMap::new(), Idle::Spin, classes, DispatcherProfile::default());
    profile.model(&Machine::new(1, 0).into(), |_| false)
}

/// Mean delay in milliseconds of queries of 1 ms at 300 q/s on noisy nodes.
fn mean_on_noisy_nodes(shape: Option<ClusterShape>, process: &ArrivalProcess, seed: u64, queries: usize) -> f64 {
    let service = Cost::on_cpu_and_gpu(Nanos::from_ms(1.0), Nanos::MAX);
    let query = SimQuery { id: QueryId(0), service, estimate: service };
    let experiment = Experiment {
        cluster: shape.map(|shape| Cluster::new(shape, &[query])),
        queries: vec![query],
        model: noisy(),
        deadline: Nanos::from_ms(500.0),
        arrivals: Vec::new(),
    };
    let arrivals = Arrivals::drawn(process, seed, queries, 1);
    let policy = PolicyKind::CpuOnly.with(PolicyOptions::default());
    experiment.total_delay(&policy, 300.0, &arrivals).unwrap().as_ms() / queries as f64
}

#[test]
fn shards_have_independent_noise_and_the_slowest_answers() {
    // The expected maximum of independent M/G/1 queues with common arrivals comes from an independent simulation, the
    // first value from Pollaczek and Khinchine.
    for (shards, expected_ms) in [(1, 3.72), (2, 5.98), (4, 9.82), (8, 15.7), (16, 22.8)] {
        let shape = shape(shards, 1, Routing::RoundRobin, ShardCosts::Alike(0.0));
        let queries = 200_000 / shards;
        let means = [1, 2].map(|seed| mean_on_noisy_nodes(Some(shape), &ArrivalProcess::Poisson, seed, queries));
        let mean = (means[0] + means[1]) / 2.0;
        assert!((mean / expected_ms - 1.0).abs() < 0.1, "{shards} shards: {mean} ms, expected {expected_ms}");
    }
}

#[test]
fn seeds_differ_by_noise_alone() {
    let of = |shape| [1, 2, 3].map(|seed| mean_on_noisy_nodes(shape, &ArrivalProcess::Uniform, seed, 5000));
    let two = shape(2, 1, Routing::RoundRobin, ShardCosts::Alike(0.0));
    for means in [of(None), of(Some(two))] {
        assert!(means[0] != means[1] && means[1] != means[2] && means[0] != means[2], "{means:?}");
    }
}

#[test]
fn shards_that_take_the_same_answer_together() {
    let alone = play(None, 5, 0.8);
    let sharded = play(Some(shape(7, 1, Routing::RoundRobin, ShardCosts::Alike(0.0))), 5, 0.8);
    assert_eq!(sharded, alone);
}

#[test]
fn replicas_chosen_at_random_are_queues_by_themselves() {
    for load in [0.4, 0.7] {
        agree(&format!("4 x M/M/1 at load {load}"), 1.0 / (1.0 - load), |seed| {
            mean_services(&play(Some(shape(1, 4, Routing::Random, ShardCosts::Alike(0.0))), seed, load))
        });
    }
}

#[test]
fn two_independent_shards_agree_with_flatto_and_hahn() {
    for load in [0.3, 0.7] {
        agree(&format!("fork and join of two at load {load}"), (12.0 - load) / 8.0 / (1.0 - load), |seed| {
            mean_services(&play(Some(shape(2, 1, Routing::RoundRobin, ShardCosts::Independent)), seed, load))
        });
    }
}

#[test]
fn many_independent_shards_agree_with_nelson_and_tantawi() {
    // Nelson and Tantawi's approximation is accurate to 5 % up to 32 shards.
    for (shards, load) in [(4_u32, 0.5), (12, 0.7)] {
        let two = (12.0 - load) / 8.0 / (1.0 - load);
        let ratio = harmonic(shards) / harmonic(2);
        let expected = (ratio + 4.0 / 11.0 * (1.0 - ratio) * load) * two;
        let costs = ShardCosts::Independent;
        let (mean, error) = replicated(|seed| {
            mean_services(&play(Some(shape(shards as usize, 1, Routing::RoundRobin, costs)), seed, load))
        });
        assert!(
            (mean / expected - 1.0).abs() < 0.05 && error < 0.03 * mean,
            "{shards}: {mean:.3} ± {error:.3}, {expected:.3}"
        );
    }
}

#[test]
fn an_idle_cluster_takes_as_long_as_the_longest_of_its_shards() {
    agree("the longest of eight", harmonic(8), |seed| {
        mean_services(&play(Some(shape(8, 1, Routing::RoundRobin, ShardCosts::Independent)), seed, 1e-4))
    });
}

#[test]
fn least_outstanding_lies_between_one_queue_and_chance() {
    let load = 0.8;
    // One queue before both servers, M/M/2, is the best that two can do without known costs; random routing gives M/M/1
    // twice.
    let (one_queue, chance) = (1.0 / (1.0 - load * load), 1.0 / (1.0 - load));
    let mean = |routing| {
        replicated(|seed| mean_services(&play(Some(shape(1, 2, routing, ShardCosts::Alike(0.0))), seed, load))).0
    };
    let (fewest, in_turn) = (mean(Routing::LeastOutstanding), mean(Routing::RoundRobin));
    assert!(one_queue < fewest && fewest < in_turn && in_turn < chance, "{one_queue} {fewest} {in_turn} {chance}");
}

#[test]
fn unequal_shards_cost_one_on_average_and_wait() {
    let spread = 0.3;
    let costs = ShardCosts::Alike(spread);
    let alone = replicated(|seed| mean_services(&play(None, seed, 1e-4))).0;
    let one = replicated(|seed| mean_services(&play(Some(shape(1, 1, Routing::RoundRobin, costs)), seed, 1e-4))).0;
    assert_eq!(one, alone, "one shard is the measured one");
    // The expected maximum of two lognormal times with the measured mean is a multiple of it: 2 Φ(σ / √2) = 1 + erf(σ /
    // 2).
    let two = replicated(|seed| mean_services(&play(Some(shape(2, 1, Routing::RoundRobin, costs)), seed, 1e-4))).0;
    let expected = 1.0 + statrs::function::erf::erf(spread / 2.0);
    assert!((two / alone / expected - 1.0).abs() < 0.01, "{} against {expected}", two / alone);
}
