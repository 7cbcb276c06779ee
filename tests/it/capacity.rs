//! Capacities against queueing theory, and limits that no capacity may exceed.

use tandem::base::ids::QueryId;
use tandem::base::machine::{Class, Machine};
use tandem::base::random::Random;
use tandem::base::time::Nanos;
use tandem::cost::{BatchCost, Cost};
use tandem::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use tandem::sim::{Arrivals, Experiment, SimQuery};
use tandem::study::{Capacity, CapacitySearch, ClosedForm, Objective, RunLength, Tally};
use tandem::traffic::{ArrivalProcess, unit_arrivals};

/// Mean service time of the single servers; the deadline is a hundred services.
const SERVICE_MS: f64 = 5.0;
const DEADLINE_MS: f64 = 500.0;

/// Queries with these times on a CPU and on a GPU.
fn queries(costs_ms: impl IntoIterator<Item = (f64, f64)>) -> Vec<SimQuery> {
    let query = |(id, (cpu_ms, gpu_ms)): (u32, (f64, f64))| {
        let service = Cost::on_cpu_and_gpu(Nanos::from_ms(cpu_ms), Nanos::from_ms(gpu_ms));
        SimQuery { id: QueryId(id), service, estimate: service }
    };
    (0..).zip(costs_ms).map(query).collect()
}

fn experiment(queries: Vec<SimQuery>, machine: Machine, deadline_ms: f64, seeds: u64) -> Experiment {
    let draw = |seed| Arrivals::drawn(&ArrivalProcess::Poisson, seed, 0, queries.len());
    let arrivals = (1..=seeds).map(draw).collect();
    Experiment { model: machine.into(), queries, deadline: Nanos::from_ms(deadline_ms), arrivals, cluster: None }
}

fn capacity(experiment: &Experiment, policy: PolicyKind, objective: &str) -> Capacity {
    let objective = Objective::from_text(objective).unwrap();
    let search = CapacitySearch::new(experiment, objective, RunLength::default()).unwrap();
    search.of(&policy.with(PolicyOptions::default())).unwrap()
}

/// 4000 service times from the quantile function, whose mean and variance match the distribution's to a permille.
fn exponential_ms() -> impl Iterator<Item = (f64, f64)> {
    (0..4000).map(|i| (-SERVICE_MS * (1.0 - (f64::from(i) + 0.5) / 4000.0).ln(), 1.0))
}

/// The rate at which a share `late` of an M/D/1 queue's delays exceeds the deadline. Waiting times decay as C exp(−θ t)
/// with λ (exp(θ s) − 1) = θ (Cramér and Lundberg).
fn m_d_1_qps(late: f64) -> f64 {
    let (s, wait) = (SERVICE_MS / 1e3, (DEADLINE_MS - SERVICE_MS) / 1e3);
    let share_above = |rate: f64| {
        // Bisection finds θ, which exceeds its first-order value 2 (1 − ρ) / (ρ s) times a factor near 1.
        let (mut low, mut high) = (1e-9, 4.0 * (1.0 - rate * s) / (rate * s * s));
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if rate * ((middle * s).exp() - 1.0) > middle { high = middle } else { low = middle }
        }
        (1.0 - rate * s) / (rate * s * (low * s).exp() - 1.0) * (-low * wait).exp()
    };
    let (mut low, mut high) = (0.5 / s, (1.0 - 1e-6) / s);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if share_above(middle) > late { high = middle } else { low = middle }
    }
    low
}

#[test]
fn a_single_servers_capacity_is_what_queueing_theory_says() {
    let served_qps = 1e3 / SERVICE_MS;
    // An M/M/1 queue has P(delay > D) = exp(−(μ − λ) D).
    let m_m_1_qps = |late: f64| served_qps + late.ln() / (DEADLINE_MS / 1e3);
    let m_m_1 = experiment(queries(exponential_ms()), Machine::new(1, 0), DEADLINE_MS, 10);
    let m_d_1 = experiment(queries([(SERVICE_MS, 1.0)]), Machine::new(1, 0), DEADLINE_MS, 10);
    for (name, experiment, objective, expected) in [
        ("M/M/1", &m_m_1, "p99", m_m_1_qps(0.01)),
        ("M/M/1", &m_m_1, "miss-share=0.05", m_m_1_qps(0.05)),
        ("M/D/1", &m_d_1, "p99", m_d_1_qps(0.01)),
    ] {
        let found = capacity(experiment, PolicyKind::CpuOnly, objective);
        // Runs of a hundred deadlines distinguish rates that differ by a hundredth.
        assert!((found.qps / expected - 1.0).abs() < 0.015, "{name}, {objective}: {found:?}, theory {expected}");
        assert!(found.interval.low <= found.qps && found.qps <= found.interval.high, "{found:?}");
        assert!(found.interval.low < found.interval.high && found.failing_qps > Some(found.qps), "{found:?}");
        assert_eq!((found.seeds, found.interval.confidence), (10, 0.95));
        assert!(found.seeds * found.confirmed_queries >= 2_000_000 && found.queries >= 100_000, "{found:?}");
    }
}

/// The number of searches for each queue, with runs of full length, which take minutes.
const CASES: &str = "TANDEM_COVERAGE_CASES";

#[test]
fn intervals_contain_the_capacity_that_queueing_theory_says() {
    let asked: Option<usize> = std::env::var(CASES).ok().map(|cases| cases.parse().unwrap());
    // By default runs are short: intervals are wider, and cover as often.
    let (cases, length) = match asked {
        Some(cases) => (cases, RunLength::default()),
        None => (12, RunLength::Exactly(20_000)),
    };
    // Nearly saturated queues are left out: short runs still show their empty start.
    let forms = ClosedForm::ALL.into_iter().filter(|form| asked.is_some() || form.load() < 0.9);
    let (mut covered, mut all, mut widths) = (0, 0, 0.0);
    for form in forms {
        let found = form.coverage(cases, 10, length).unwrap();
        println!("{}: {found:?}", form.name());
        covered += found.covered;
        all += cases;
        widths += found.mean_width * cases as f64;
    }
    let (share, width) = (covered as f64 / all as f64, widths / all as f64);
    // The standard error of a coverage of 95 % is 2.8 % for 60 cases, and 1.1 % for 400.
    let (least, most_wide) = if asked.is_some() { (0.92, 0.03) } else { (0.87, 0.08) };
    assert!(share >= least && width <= most_wide, "{covered} of {all} intervals, {width} wide");
}

#[test]
fn few_measured_queries_widen_the_interval_and_many_do_not() {
    // The mean of n exponential costs has an error of ± 1.96 / sqrt(n), and the capacity a little more. Eight short runs
    // of as many samples estimate it to a quarter.
    let error = |n: u32| {
        let costs = (0..n).map(|i| (-SERVICE_MS * (1.0 - (f64::from(i) + 0.5) / f64::from(n)).ln(), 1.0));
        let experiment = experiment(queries(costs), Machine::new(1, 0), DEADLINE_MS, 8);
        let search = CapacitySearch::new(&experiment, Objective::default(), RunLength::Exactly(80_000)).unwrap();
        let policy = PolicyKind::CpuOnly.with(PolicyOptions::default());
        let found = search.of_sampled_queries().of(&policy).unwrap();
        let error = found.query_error.unwrap();
        let total = found.total_interval();
        assert_eq!(error.queries, n as usize);
        assert!(total.low < found.interval.low && total.high > found.interval.high, "{found:?}");
        assert!(total.high - total.low >= 2.0 * error.share * found.qps, "{found:?}");
        error.share * f64::from(n).sqrt()
    };
    for n in [500, 8000] {
        let error = error(n);
        assert!((1.5..3.0).contains(&error), "{n} queries: {error} / sqrt(n)");
    }
}

#[test]
fn capacities_are_stable_and_misses_reach_the_objective() {
    for seed in 0..2 {
        let mut random = Random::new(seed, 5);
        let mut ms = || (0.2 + 3.0 * random.unit()).powi(2);
        let costs: Vec<(f64, f64)> = (0..50).map(|_| (ms(), ms())).collect();
        // A deadline of hundreds of services permits a long backlog: a run of ten thousand queries would end before any
        // query is late.
        let experiment = experiment(queries(costs), Machine::new(1, 1), 2000.0, 3);
        let region_qps = experiment.region().unwrap().rate_qps;
        for policy in [PolicyKind::Stealing, PolicyKind::Mct, PolicyKind::BestOf] {
            let objective = capacity(&experiment, policy, "p99");
            let no_miss = capacity(&experiment, policy, "no-miss");
            assert!(objective.qps > 0.0 && objective.qps <= region_qps, "{objective:?}");
            // Runs of both fail by growth, and the median over seeds may be a few rates above the limit of all together.
            assert!(no_miss.qps <= 1.02 * objective.qps, "{no_miss:?}, {objective:?}");
            assert!(no_miss.qps <= no_miss.bound_qps, "{no_miss:?}");
            assert!(objective.interval.high <= region_qps, "{objective:?}");
            assert!(!objective.is_short(), "{objective:?}");
        }
    }
}

#[test]
fn no_policy_exceeds_its_region_and_one_class_fills_it() {
    for seed in 0..3 {
        let mut random = Random::new(seed, 6);
        // A few queries are much faster on the CPUs.
        let costs: Vec<(f64, f64)> = (0..400)
            .map(|i| {
                if i % 20 == 0 {
                    (0.1 + random.unit(), 30.0)
                } else {
                    (40.0 * random.unit() + 5.0, 0.2 + random.unit())
                }
            })
            .collect();
        let experiment = experiment(queries(costs), Machine::new(2, 1), 1e6, 1);
        for kind in
            [PolicyKind::GpuOnly, PolicyKind::CpuOnly, PolicyKind::BestOf, PolicyKind::Mct, PolicyKind::Stealing]
        {
            let policy = kind.with(PolicyOptions::default());
            let region_qps = experiment.region_of(&policy, 0.0).unwrap().rate_qps;
            // All queries wait, so the service rate does not depend on the arrival rate.
            let arrivals = experiment.arrivals[0].first(40_000);
            let tally = Tally::new(&experiment.model.machine, 40_000);
            let served = experiment.play(&policy, 20.0 * region_qps, &arrivals, tally, |_| false).unwrap();
            let served_qps = served.summary().unwrap().throughput_qps;
            // The mean cost of this many queries is known to some permille.
            assert!(served_qps <= 1.02 * region_qps, "{kind}: {served_qps} of {region_qps}");
            if matches!(kind, PolicyKind::GpuOnly | PolicyKind::CpuOnly) {
                assert!(served_qps >= 0.98 * region_qps, "{kind}: {served_qps} of {region_qps}");
            }
        }
    }
}

#[test]
fn policies_without_batches_stop_where_only_batches_hold() {
    // With a GPU that batches and a lenient deadline, one query in a hundred may wait as long as the load lasts.
    let batches = BatchCost {
        host_fixed_us: 5.0,
        host_each_us: 0.2,
        device_fixed_us: 2.0,
        longest: 0.5,
        crowding: vec![(1, 6.0), (64, 2.0), (1024, 1.0)],
        most_queries: 1024,
        ..BatchCost::default()
    };
    let costs: Vec<(f64, f64)> =
        (0..60).map(|i| (0.02 + 0.01 * f64::from(i % 9), 0.02 + 0.004 * f64::from(i % 7))).collect();
    let queries: Vec<SimQuery> = queries(costs)
        .into_iter()
        .map(|mut query| {
            query.service[Class::GPU].added = query.service[Class::GPU].alone.scaled(0.05);
            SimQuery { estimate: query.service, ..query }
        })
        .collect();
    let plain = experiment(queries, Machine::new(1, 1), 20.0, 3);
    let mut batching = plain.clone();
    batching.model.batches[Class::GPU] = Some(batches);
    // A policy without batches is stable up to the region of a machine without batches.
    let limit_qps = plain.region().unwrap().rate_qps;
    let region_qps = batching.region().unwrap().rate_qps;
    assert!(region_qps > 2.0 * limit_qps, "{region_qps} q/s with batches, {limit_qps} without");
    for kind in PolicyKind::ALL.into_iter().filter(|kind| !kind.batches()) {
        let found = capacity(&batching, kind, "p99");
        assert!(found.stable_qps <= limit_qps && found.region_qps == region_qps, "{found:?}");
        assert!(found.qps <= found.stable_qps && found.interval.high <= found.stable_qps, "{found:?}");
    }
    // A policy with batches is tried beyond that, and so is a user's own policy.
    assert!(capacity(&batching, PolicyKind::Greedy, "p99").qps > limit_qps);
    assert!(plain.region_of(&PolicyKind::Greedy.with(PolicyOptions::default()), 0.0).unwrap().rate_qps < limit_qps);
}

#[test]
fn capacities_do_not_depend_on_the_number_of_queries() {
    let costs: Vec<(f64, f64)> = (0..40).map(|i| (1.0 + f64::from(i % 8), 3.0)).collect();
    let experiment = experiment(queries(costs), Machine::new(1, 1), 500.0, 5);
    let found = |at_least| {
        let search = CapacitySearch::new(&experiment, Objective::default(), RunLength::Enough { at_least }).unwrap();
        search.of(&PolicyKind::Mct.with(PolicyOptions::default())).unwrap().qps
    };
    assert_eq!(found(0), found(1000));
    let longer = found(300_000);
    assert!((found(0) / longer - 1.0).abs() < 0.011, "{} and {longer}", found(0));
}

#[test]
fn a_trace_tells_of_rates_up_to_its_length_only() {
    let costs = [(1.0, 1.0); 4];
    let trace = |n: usize| {
        let queries = (0..n).map(|i| i as u32 % 4).collect();
        let arrivals = vec![Arrivals::given(1, unit_arrivals(&ArrivalProcess::Poisson, 1, n), queries)];
        Experiment { arrivals, ..experiment(self::queries(costs), Machine::new(1, 1), 500.0, 0) }
    };
    // The policy is stable up to 2000 q/s; ten thousand arrivals are a hundred deadlines at 200 q/s.
    let found = capacity(&trace(10_000), PolicyKind::Mct, "p99");
    assert!(found.is_cut_off && found.qps == 200.0 && !found.is_short(), "{found:?}");
    let refused = CapacitySearch::new(&trace(9_000), Objective::default(), RunLength::default()).unwrap_err();
    assert!(refused.to_string().starts_with("9000 arrivals are too few to tell"), "{refused}");
}

#[test]
fn a_query_that_is_late_by_itself_leaves_no_rate_without_a_miss() {
    // One query in two hundred exceeds the deadline: p99 may ignore it, a limit of no misses may not.
    let costs = (0..200).map(|i| (if i == 0 { 60.0 } else { 1.0 }, 1e3));
    let experiment = experiment(queries(costs), Machine::new(1, 0), 50.0, 3);
    let objective = capacity(&experiment, PolicyKind::CpuOnly, "p99");
    let no_miss = capacity(&experiment, PolicyKind::CpuOnly, "no-miss");
    assert!(objective.qps > 0.0 && no_miss.qps == 0.0, "{objective:?}, {no_miss:?}");
    let all_late = self::experiment(queries([(60.0, 1e3)]), Machine::new(1, 0), 50.0, 3);
    assert_eq!(capacity(&all_late, PolicyKind::CpuOnly, "p99").qps, 0.0);
}

#[test]
fn a_policy_that_idles_most_lanes_has_a_capacity() {
    // The GPU does the work of five hundred CPUs.
    let experiment = experiment(queries([(500.0, 1.0)]), Machine::new(1, 1), 5_000.0, 2);
    let policies = [PolicyKind::CpuOnly, PolicyKind::GpuOnly].map(|kind| kind.with(PolicyOptions::default()));
    let factories: Vec<&dyn PolicyFactory> = policies.iter().map(|policy| policy as &dyn PolicyFactory).collect();
    let search = CapacitySearch::new(&experiment, Objective::default(), RunLength::default()).unwrap();
    let found = search.of_all(&factories, &|| ()).unwrap();
    let qps: Vec<f64> = found.iter().map(|found| found.qps).collect();
    assert!((1.0..2.0).contains(&qps[0]) && (900.0..1000.001).contains(&qps[1]), "{qps:?}");
    assert_eq!(found[0], search.of(factories[0]).unwrap());
}

#[test]
fn a_rate_that_fails_is_never_shown_below_the_capacity() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("w.csv"), "query_id,cpu_us\n0,2000\n1,9000\n2,700\n3,50000\n").unwrap();
    let shown = |deadline_ms: u32| {
        let run = "simulate --workload w.csv --cpus 4 --gpu none --policy cpu-only --what capacity --seeds 1:2";
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tandem"));
        command.current_dir(dir.path()).args(run.split_whitespace()).arg(format!("--deadline-ms={deadline_ms}"));
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    // Four measured queries leave a wide interval, so that the capacity is rounded to its first digit.
    let table = shown(100);
    let row = table.lines().find(|line| line.starts_with("cpu-only")).expect(&table);
    let cells: Vec<&str> = row.split_whitespace().collect();
    let [qps, failing] = [1, 5].map(|at| cells[at].parse::<f64>().expect(row));
    assert!(qps > 0.0 && failing >= qps, "{table}");
    assert!(table.contains("fails at: the next higher rate that was tested"), "{table}");
    // A query takes longer than this deadline.
    let table = shown(20);
    assert!(table.contains("interval: no tested rate held"), "{table}");
}
