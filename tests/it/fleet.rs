//! Numbers of machines: one answer of plan, sweep and simulate; pairs of policies; peaks over time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use tandem::base::ids::{JobId, QueryId};
use tandem::base::machine::{Class, Machine, PerClass};
use tandem::base::random::{Random, exp};
use tandem::base::time::Nanos;
use tandem::cost::{Cost, MachineModel, Measured, Workload, WorkloadRow};
use tandem::sched::{
    Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyError, PolicyFactory, PolicyKind, PolicyOptions,
};
use tandem::sim::{Cluster, ClusterShape, Experiment, Routing, ShardCosts, SimQuery};
use tandem::study::plan::{Candidate, Demand, MachineType, Plan, Plans, Question, plan, plan_by};
use tandem::study::sweep::{Axes, Sweep, SweepOptions, SweepWorkload};
use tandem::study::{
    Comparison, DELAY_QUERIES, Estimates, Fleet, Objective, PolicyResults, RunLength, Silent, SimulatedMachine,
    avoids_peak, draw_all, paired, peak, sim_queries,
};
use tandem::traffic::{ArrivalProcess, Features, Mode, Recording, Replay};

/// Service times of these microseconds.
fn workload(times_us: &[f64]) -> Workload {
    let row = |(id, &us): (u32, &f64)| WorkloadRow {
        query_id: QueryId(id),
        log_id: id,
        mode: Mode::Or,
        features: Features::default(),
        index_features: None,
        predicted_us: None,
        measured: PerClass::two(Some(Measured { median_us: us, spread_us: 0.0, device_us: None }), None),
        results: 10,
    };
    Workload { rows: (0..).zip(times_us).map(row).collect(), ..Workload::default() }
}

/// Queries of 1 or 3 ms on a CPU, and a tenth of that on a GPU.
fn two_lengths(has_gpu: bool) -> Workload {
    let mut workload = workload(&[1000.0, 3000.0].repeat(200));
    for row in workload.rows.iter_mut().filter(|_| has_gpu) {
        let gpu = row.measured[Class::CPU].map(|time| Measured { median_us: time.median_us / 10.0, ..time });
        row.measured = PerClass::two(row.measured[Class::CPU], gpu);
    }
    workload
}

fn machine(name: &str, cores: usize, gpus: usize, price_per_hour: f64) -> MachineType {
    MachineType {
        name: name.to_owned(),
        cores,
        workers: None,
        gpus,
        memory_gb: 10.0,
        price_per_hour,
        idle_watts: Some(100.0),
        busy_watts: Some(300.0),
        profile: None,
        workload: None,
        scale: 1.0,
    }
}

fn question(demand: Demand) -> Question {
    Question {
        demand,
        growth: 1.0,
        deadline: Nanos::from_ms(50.0),
        objective: Objective::default(),
        spare: 0,
        index_gb: None,
        policies: [PolicyKind::CpuOnly, PolicyKind::StealingAdaptive]
            .map(|kind| kind.with(PolicyOptions::default()))
            .to_vec(),
        routing: Routing::default(),
        estimates: Estimates::Oracle,
        speed_spread: 0.0,
        shortage: 10.0,
        seed: 1,
    }
}

fn plans(question: &Question, machines: Vec<MachineType>, has_gpu: bool) -> Plans {
    let workload = Arc::new(two_lengths(has_gpu));
    let of = |machine| Candidate { machine, workload: Arc::clone(&workload), profile: None };
    plan(question, &machines.into_iter().map(of).collect::<Vec<_>>(), &|| ()).unwrap()
}

#[test]
fn a_known_rate_takes_the_fewest_machines_that_carry_it() {
    let found =
        plans(&question(Demand::Rate(4000.0)), vec![machine("small", 2, 0, 1.0), machine("large", 8, 0, 5.0)], false);
    let best = &found.ranking[0];
    // Two workers at 2 ms per query sustain at most 1,000 q/s, and the sample leaves some percent open.
    assert!((900.0..=1000.0).contains(&best.group_qps), "{best:?}");
    assert!(best.groups == 5 && best.workers == 2 && best.machine.name == "small", "{best:?}");
    assert_eq!((best.groups_without_margin, best.row.served_share), (5, 1.0));
    let shown: Vec<(usize, f64)> = best.rows.iter().map(|row| (row.machines, row.served_share)).collect();
    assert_eq!(shown, [(3, 0.0), (4, 0.0), (5, 1.0), (6, 1.0)]);
    // 4000 queries of 2 ms on average are the work of eight workers.
    assert!((best.row.utilisation - 0.8).abs() < 0.001 && best.rows[1].p99_ms.is_none(), "{best:?}");
    let watts = 5.0 * (100.0 + best.row.utilisation * 200.0);
    assert!((best.watts.unwrap() / watts - 1.0).abs() < 1e-9, "{best:?}");
    assert!(found.gpu_pays_from_qps.is_none());
}

#[test]
fn more_spare_machines_and_larger_indexes_cost_more() {
    let machines = || vec![machine("small", 2, 0, 1.0)];
    let price = |question: &Question| plans(question, machines(), false).ranking[0].row.price_per_hour;
    let plain = question(Demand::Rate(4000.0));
    let spare = Question { spare: 2, ..plain.clone() };
    assert!((price(&spare) - price(&plain) - 2.0).abs() < 1e-9);
    let sharded = Question { index_gb: Some(20.0), ..plain };
    let found = plans(&sharded, machines(), false);
    assert_eq!(found.ranking[0].shards, 3);
    // Waiting for the slowest of three shards makes them slower than three separate machines.
    assert!(found.ranking[0].group_qps < 3.0 * 1000.0, "{:?}", found.ranking[0]);
}

#[test]
fn the_margin_serves_nine_of_ten_draws_exactly() {
    let question = Question { speed_spread: 0.2, ..question(Demand::Between(2000.0, 8000.0)) };
    let found = plans(&question, vec![machine("a", 2, 0, 1.0)], false);
    let best = &found.ranking[0];
    let less = best.rows.iter().find(|row| row.machines + 1 == best.groups).unwrap();
    assert!(best.row.served_share >= 0.9 && less.served_share < 0.9, "{best:?}");
    assert!(best.groups_without_margin < best.groups, "{best:?}");
}

#[test]
fn own_lanes_need_a_core_for_the_dispatcher() {
    let workers = |cores, gpus, own| tandem::study::workers(cores, gpus, own).ok();
    assert_eq!([1, 2, 16].map(|cores| workers(cores, 0, false)), [Some(1), Some(2), Some(16)]);
    assert_eq!([1, 2, 16].map(|cores| workers(cores, 0, true)), [None, Some(1), Some(15)]);
    assert_eq!([1, 2, 3, 16].map(|cores| workers(cores, 1, true)), [None, Some(0), Some(1), Some(14)]);
    let why = tandem::study::workers(4, 4, true).unwrap_err();
    assert!(why.starts_with("its number of cores is 4, expected at least 5: the dispatcher"), "{why}");
}

#[test]
fn a_gpu_pays_from_some_rate_on() {
    let machines = vec![machine("cpu", 2, 0, 1.0), machine("gpu", 2, 1, 3.0)];
    let found = plans(&question(Demand::Rate(500.0)), machines, true);
    assert_eq!(found.ranking[0].machine.name, "cpu");
    let pays = found.gpu_pays_from_qps.unwrap();
    assert!((1000.0..10_000.0).contains(&pays), "{pays}");
}

#[test]
fn an_impossible_deadline_names_the_nearest_possible_one() {
    let question = Question { deadline: Nanos::from_ms(1.5), ..question(Demand::Rate(100.0)) };
    let found = plans(&question, vec![machine("cpu", 3, 0, 1.0), machine("gpu", 3, 1, 6.0)], false);
    assert!(found.ranking.is_empty());
    assert_eq!(found.left_out.len(), 2, "{:?}", found.left_out);
    let (deadline, nearest) = found.nearest.unwrap();
    assert!(deadline >= Nanos::from_ms(3.0) && nearest.machine.name == "cpu", "{deadline:?}");
}

/// Thirty questions about lognormal service times on a few cores, by three ways to the number of machines.
#[test]
fn plan_sweep_and_simulate_name_the_same_number_of_machines() {
    let mut random = Random::new(7, 53);
    let runs: (&[u64], RunLength) = (&[1, 2, 3], RunLength::Exactly(10_000));
    for number in 0..30 {
        let spread = 0.4 + random.unit();
        let times: Vec<f64> = (0..400).map(|_| 2000.0 * exp(spread * random.normal())).collect();
        let workload = workload(&times);
        let (cores, routing) = (1 + random.below(4) as usize, Routing::ALL[random.below(3) as usize]);
        let mean_s = times.iter().sum::<f64>() / 4e8;
        let rate_qps = (0.2 + 4.0 * random.unit()) * cores as f64 / mean_s;
        let policy = PolicyKind::CpuOnly.with(PolicyOptions::default());
        let question = Question {
            deadline: Nanos::from_ms(1e3 * mean_s * (20.0 + 30.0 * random.unit())),
            policies: vec![policy.clone()],
            routing,
            ..question(Demand::Rate(rate_qps))
        };
        let shared = Arc::new(workload.clone());
        let candidates = [Candidate { machine: machine("own", cores, 0, 1.0), workload: shared, profile: None }];
        let plans = plan_by(&question, &candidates, runs, &|| ()).unwrap();
        let planned = plans.ranking.first().map(Plan::machines);
        let near: Vec<usize> = (planned.unwrap_or(1).saturating_sub(2).max(1)..=planned.unwrap_or(1) + 1).collect();
        let axes = Axes {
            modes: vec![Mode::Or],
            policies: vec![policy.clone()],
            cpus: vec![cores],
            gpus: vec![0],
            streams: vec![1],
            deadlines_ms: vec![question.deadline.as_ms()],
            noises: vec![0.0],
            shards: vec![1],
            replicas: near.clone(),
            rates_qps: vec![rate_qps],
        };
        let options = SweepOptions {
            workloads: [(Mode::Or, SweepWorkload { name: String::from("own"), workload: workload.clone() })].into(),
            estimates: Estimates::Oracle,
            objective: question.objective,
            process: ArrivalProcess::Poisson,
            seeds: runs.0.to_vec(),
            length: runs.1,
            routing,
            shard_costs: ShardCosts::Alike(0.1),
            length_threshold: None,
            profile: None,
            is_gpu_replayed: false,
        };
        let sweep = Sweep::new(&axes, options).unwrap();
        let rows = axes.points().iter().map(|point| sweep.play(point).unwrap()).collect::<Vec<_>>();
        let swept = rows.iter().find(|row| row.sustained == Some(true)).map(|row| row.replicas);
        let capacity = |groups: usize| {
            let model = SimulatedMachine::new(cores, 0).model(&workload, &Estimates::Oracle);
            let queries = sim_queries(&workload, &Estimates::Oracle, &model.machine).unwrap();
            let shape = ClusterShape { shards: 1, replicas: groups, routing, costs: ShardCosts::Alike(0.1) };
            let experiment = Experiment {
                cluster: Cluster::of(shape, &queries),
                arrivals: draw_all(&ArrivalProcess::Poisson, runs.0, DELAY_QUERIES, queries.len()),
                deadline: question.deadline,
                queries,
                model,
            };
            let length = runs.1;
            let comparison =
                Comparison { length, has_delays: false, ..Comparison::new(experiment, vec![Box::new(policy.clone())]) };
            let mut results = PolicyResults::default();
            comparison.play(&mut results, &Silent).unwrap();
            results.capacities[0].qps
        };
        let simulated = near.into_iter().find(|&groups| capacity(groups) >= rate_qps);
        assert!(
            planned.is_some() && planned == swept && planned == simulated,
            "{number}: {planned:?} {swept:?} {simulated:?}"
        );
    }
}

/// An idle worker takes the shortest waiting query.
struct ShortestFirst;

#[derive(Default)]
struct Waiting(BinaryHeap<Reverse<(Nanos, JobId)>>);

impl Policy for Waiting {
    fn name(&self) -> &str {
        "shortest-first"
    }

    fn arrive(&mut self, job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        self.0.push(Reverse((job.predicted[Class::CPU].alone, job.id)));
        LanesToPoll::Class(Class::CPU)
    }

    fn next(&mut self, _lane: Lane, _jobs: &Jobs, _now: Nanos, batch: &mut Vec<JobId>) -> Next {
        let Some(Reverse((_, id))) = self.0.pop() else { return Next::Wait };
        batch.push(id);
        Next::Run
    }
}

impl PolicyFactory for ShortestFirst {
    fn name(&self) -> &str {
        "shortest-first"
    }

    fn build(&self, _model: &MachineModel) -> Result<Box<dyn Policy>, PolicyError> {
        Ok(Box::<Waiting>::default())
    }

    fn makes_batches(&self) -> bool {
        false
    }
}

/// Lognormal service times with a heavy tail, on four workers.
fn experiment() -> Experiment {
    let mut random = Random::new(1, 2);
    let query = |id| {
        let cost = Cost::on_cpu_and_gpu(Nanos::from_ms(3.0 * exp(1.2 * random.normal())), Nanos::MAX);
        SimQuery { id: QueryId(id), service: cost, estimate: cost }
    };
    let queries: Vec<SimQuery> = (0..2000).map(query).collect();
    Experiment {
        arrivals: draw_all(&ArrivalProcess::Poisson, &[1, 2, 3, 4, 5, 6], 20_000, queries.len()),
        model: Machine::new(4, 0).into(),
        queries,
        deadline: Nanos::from_ms(300.0),
        cluster: None,
    }
}

#[test]
fn equal_policies_are_equal_and_short_first_is_quicker() {
    let experiment = experiment();
    let policy = |kind: PolicyKind| kind.with(PolicyOptions::default());
    let (fifo, shorter) = (policy(PolicyKind::CpuOnly), ShortestFirst);
    let of = |a: &dyn PolicyFactory, b: &dyn PolicyFactory| {
        let asked = (Objective::default(), RunLength::default());
        let stable_qps = experiment.region().unwrap().rate_qps;
        paired(&experiment, asked, [a, b], Some(0.9 * stable_qps), &|| ()).unwrap()
    };
    let equal = of(&fifo, &fifo);
    assert_eq!(
        equal.iter().map(|of| of.what).collect::<Vec<_>>(),
        ["capacity q/s", "mean ms", "p99 ms", "p99.9 ms", "longest ms"]
    );
    for of in &equal {
        let (low, high) = of.interval.unwrap();
        assert!(low <= 0.0 && high >= 0.0 && !of.is_decided(), "{of:?}");
    }
    let differ = of(&fifo, &shorter);
    let mean = differ.iter().find(|of| of.what == "mean ms").unwrap();
    assert!(mean.is_decided() && mean.share < -0.05 && mean.seeds == 6, "{differ:?}");
}

/// 80 q/s, and 190 q/s from 1100 to 1150 s of the clock, which begins at 1000 s. A worker serves 100 q/s.
#[test]
fn a_peak_agrees_with_the_fluid_computation_by_hand() {
    let stage = |from: f64, to: f64, qps: f64| (0..((to - from) * qps) as usize).map(move |i| from + i as f64 / qps);
    let times = stage(1000.0, 1100.0, 80.0).chain(stage(1100.0, 1150.0, 190.0)).chain(stage(1150.0, 1450.0, 80.0));
    let text = times.fold(String::from("arrival_s\n"), |text, at| format!("{text}{at:.6}\n"));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("peak.csv");
    std::fs::write(&path, text).unwrap();
    let recording = Recording::read(&path, Replay::Repeat).unwrap();
    let cost = Cost::on_cpu_and_gpu(Nanos::from_ms(10.0), Nanos::MAX);
    let machine = Experiment {
        arrivals: Vec::new(),
        model: Machine::new(1, 0).into(),
        queries: vec![SimQuery { id: QueryId(0), service: cost, estimate: cost }],
        deadline: Nanos::from_ms(1000.0),
        cluster: None,
    };
    let costs = ShardCosts::Alike(0.0);
    let shape = ClusterShape { shards: 1, replicas: 1, routing: Routing::default(), costs };
    let fleet = Fleet { machine, shape, objective: Objective::default(), length: RunLength::default(), scale: 1.0 };
    let policy = PolicyKind::CpuOnly.with(PolicyOptions::default());
    let asked = (&recording, recording.rate_qps());
    let found = peak(&fleet, &policy, asked, 1).unwrap();
    // The backlog grows by 90 a second for 50 s, and shrinks by 20 a second. A query is late while more than 99 wait.
    let (first, last) = found.late.unwrap();
    for (found, expected) in [
        (first, 1100.0 + 99.0 / 90.0),
        (found.longest_at_s, 1150.0),
        (found.longest_s, 4500.0 / 100.0),
        (last, 1150.0 + (4500.0 - 99.0) / 20.0),
        (found.clear_s.unwrap(), 4500.0 / 20.0),
        (100.0 * found.worst_share, 100.0),
    ] {
        assert!((found - expected).abs() < 0.5, "{found}, expected {expected}");
    }
    assert_eq!(avoids_peak(&fleet, &policy, asked, 1).unwrap(), Some(2));
    assert_eq!(peak(&fleet, &policy, asked, 2).unwrap().late, None);
}
