//! Simulated queues against queueing theory.
//!
//! Each test compares the mean of independent replications with the formula, within four of its estimated standard
//! errors: one false alarm in sixteen thousand. Runs start empty, which at these lengths lowers the mean by far less than
//! a standard error.

use tandem::base::ids::QueryId;
use tandem::base::machine::{Class, Machine};
use tandem::base::time::Nanos;
use tandem::cost::Cost;
use tandem::sched::{LogRow, PolicyKind, PolicyOptions, RunLog, ShedJob, Sink};
use tandem::sim::{Arrivals, Experiment, SimQuery, simulate};
use tandem::traffic::{ArrivalProcess, draw_queries, unit_arrivals};

const REPLICATIONS: u64 = 20;
const QUERIES: usize = 40_000;
const SERVICE_MS: f64 = 5.0;

/// Service times of the queries, in units of their mean.
type Services = fn(u64) -> Vec<f64>;

fn exponential(seed: u64) -> Vec<f64> {
    let times = unit_arrivals(&ArrivalProcess::Poisson, seed + 1_000_000, QUERIES);
    std::iter::once(times[0]).chain(times.windows(2).map(|pair| pair[1] - pair[0])).collect()
}

fn constant(_: u64) -> Vec<f64> {
    vec![1.0; QUERIES]
}

/// Nine in ten queries take 0.5, one in ten 5.5: mean 1, second moment 3.25.
fn two_sizes(seed: u64) -> Vec<f64> {
    draw_queries(seed + 1_000_000, QUERIES, 10).into_iter().map(|i| if i == 0 { 5.5 } else { 0.5 }).collect()
}

/// Plays a log in which each query has its own service time, in order.
fn play(policy: PolicyKind, machine: Machine, seed: u64, services: Services, load: f64) -> RunLog {
    let service = |scale: f64| {
        let time = Nanos::from_ms(SERVICE_MS * scale);
        Cost::on_cpu_and_gpu(time, time)
    };
    let query = |(id, scale)| SimQuery { id: QueryId(id), service: service(scale), estimate: service(scale) };
    let rate_qps = load * machine.len() as f64 * 1e3 / SERVICE_MS;
    let experiment = Experiment {
        cluster: None,
        queries: (0..).zip(services(seed)).map(query).collect(),
        model: machine.into(),
        deadline: Nanos::from_ms(500.0),
        arrivals: Vec::new(),
    };
    let unit = unit_arrivals(&ArrivalProcess::Poisson, seed, QUERIES);
    let arrivals = Arrivals::given(seed, unit, (0..QUERIES as u32).collect());
    simulate(experiment.run(&policy.with(PolicyOptions::default()), rate_qps, &arrivals).unwrap()).unwrap()
}

/// Compares the mean of one number per replication with its theoretical value.
fn agree(what: &str, expected: f64, one: impl Fn(u64) -> f64) {
    let values: Vec<f64> = (1..=REPLICATIONS).map(one).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let standard_error = (variance / n).sqrt();
    assert!(
        (mean - expected).abs() < 4.0 * standard_error,
        "{what}: simulated {mean:.4} ± {standard_error:.4}, theory {expected:.4}"
    );
    // A simulation with a large error would agree with any value.
    assert!(standard_error < 0.05 * expected, "{what}: ± {standard_error:.4} is too loose around {expected:.4}");
}

fn mean_wait_ms(log: &RunLog) -> f64 {
    log.rows.iter().map(|row| row.started.since(row.arrival).as_ms()).sum::<f64>() / log.rows.len() as f64
}

/// Mean waiting time in an M/G/1 queue by Pollaczek and Khinchine, in mean service times.
fn pollaczek_khinchine(load: f64, second_moment: f64) -> f64 {
    load * second_moment / (2.0 * (1.0 - load))
}

/// Mean waiting time in an M/M/c queue by Erlang's C formula, in mean service times.
fn erlang_c(servers: u32, load: f64) -> f64 {
    let offered = load * f64::from(servers);
    let term = |k: u32| (1..=k).fold(1.0, |product, i| product * offered / f64::from(i));
    let all_busy = term(servers) / (1.0 - load);
    let wait_probability = all_busy / ((0..servers).map(term).sum::<f64>() + all_busy);
    wait_probability / (f64::from(servers) * (1.0 - load))
}

#[test]
fn one_server_agrees_with_pollaczek_and_khinchine() {
    let cases: [(&str, Services, f64); 3] =
        [("M/M/1", exponential, 2.0), ("M/D/1", constant, 1.0), ("M/G/1", two_sizes, 3.25)];
    for (name, services, second_moment) in cases {
        for load in [0.3, 0.7] {
            agree(&format!("{name} at load {load}"), SERVICE_MS * pollaczek_khinchine(load, second_moment), |seed| {
                mean_wait_ms(&play(PolicyKind::CpuOnly, Machine::new(1, 0), seed, services, load))
            });
        }
    }
}

#[test]
fn many_servers_with_one_queue_agree_with_erlang_c() {
    for servers in [2, 4, 16] {
        let expected = SERVICE_MS * erlang_c(servers, 0.8);
        agree(&format!("M/M/{servers} on CPUs"), expected, |seed| {
            mean_wait_ms(&play(PolicyKind::CpuOnly, Machine::new(servers as usize, 0), seed, exponential, 0.8))
        });
        agree(&format!("M/M/{servers} on GPUs"), expected, |seed| {
            mean_wait_ms(&play(PolicyKind::GpuOnly, Machine::new(0, servers as usize), seed, exponential, 0.8))
        });
    }
    // With equal costs on both classes every query waits in the third queue, in order of arrival.
    agree("M/M/4 on CPUs and GPUs", SERVICE_MS * erlang_c(4, 0.8), |seed| {
        mean_wait_ms(&play(PolicyKind::Stealing, Machine::new(2, 2), seed, exponential, 0.8))
    });
}

#[test]
fn delays_of_mm1_are_exponential() {
    let load = 0.7;
    // The queue has P(delay > t) = exp(−(1 − load) t) with t in mean service times.
    for t in [2.0_f64, 8.0] {
        agree(&format!("share of delays above {t} services"), (-(1.0 - load) * t).exp(), |seed| {
            let log = play(PolicyKind::CpuOnly, Machine::new(1, 0), seed, exponential, load);
            let longer = log.rows.iter().filter(|row| row.delay() > Nanos::from_ms(t * SERVICE_MS)).count();
            longer as f64 / log.rows.len() as f64
        });
    }
}

#[test]
fn one_server_equals_lindleys_recursion_to_the_nanosecond() {
    for seed in 1..=5 {
        let log = play(PolicyKind::CpuOnly, Machine::new(1, 0), seed, exponential, 0.9);
        let services = exponential(seed);
        let mut free_at = Nanos::ZERO;
        for (row, scale) in log.rows.iter().zip(services) {
            let started = free_at.max(row.arrival);
            free_at = started + Nanos::from_ms(SERVICE_MS * scale);
            assert_eq!((row.started, row.finished), (started, free_at), "job {}", row.job);
        }
    }
}

/// Compares waits with expected ones as queries finish, in order of arrival.
struct Waits {
    expected: Vec<Nanos>,
    ended: usize,
}

impl Sink for Waits {
    fn record(&mut self, row: &LogRow) {
        let wait = row.started.since(row.arrival);
        assert_eq!((row.job.index(), wait), (self.ended, self.expected[self.ended]));
        self.ended += 1;
    }

    fn shed(&mut self, job: &ShedJob) {
        panic!("{job:?} was dropped");
    }
}

/// Lindley, "The theory of queues with a single server", 1952: W' = max(0, W + S - A) with wait W, service time S and
/// time A to the next arrival.
#[test]
fn one_server_equals_lindleys_recursion() {
    const QUERIES: usize = 4000;
    for (machine, kind, class) in
        [(Machine::new(1, 0), PolicyKind::CpuOnly, Class::CPU), (Machine::new(0, 1), PolicyKind::GpuOnly, Class::GPU)]
    {
        let query = |us: u64| {
            let service = Cost::on_cpu_and_gpu(Nanos(us * 1000), Nanos(us * 500));
            SimQuery { id: QueryId(us as u32), service, estimate: service }
        };
        let experiment = Experiment {
            cluster: None,
            queries: [10, 20, 90].map(query).to_vec(),
            model: machine.into(),
            deadline: Nanos::from_ms(1.0),
            arrivals: Vec::new(),
        };
        let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, 3, QUERIES, experiment.queries.len());
        let rate_qps = 15_000.0;
        // The unfinished work of the server at the last arrival, and that arrival's time.
        let (mut work, mut last) = (Nanos::ZERO, Nanos::ZERO);
        let waits = arrivals.at_rate(rate_qps).map(|(arrival, query)| {
            let wait = work.since(arrival.since(last));
            (work, last) = (wait + experiment.queries[query as usize].service[class].alone, arrival);
            wait
        });
        let expected: Vec<Nanos> = waits.collect();
        let mean_ms = expected.iter().map(|wait| wait.as_ms()).sum::<f64>() / QUERIES as f64;
        assert!(mean_ms > 0.005, "hardly a query waits: {mean_ms} ms on average");
        let policy = kind.with(PolicyOptions::default());
        let waits = Waits { expected, ended: 0 };
        let waits = experiment.play(&policy, rate_qps, &arrivals, waits, |_| false).unwrap();
        assert_eq!(waits.ended, QUERIES);
    }
}

#[test]
fn littles_law_holds_on_runs_that_begin_and_end_empty() {
    for policy in PolicyKind::ALL {
        let log = play(policy, Machine::new(2, 1), 3, two_sizes, 0.6);
        let mut changes: Vec<(Nanos, i64)> =
            log.rows.iter().flat_map(|row| [(row.arrival, 1), (row.finished, -1)]).collect();
        changes.sort_unstable();
        let (mut number, mut since, mut area) = (0_i64, Nanos::ZERO, 0_u128);
        for (at, change) in changes {
            area += number as u128 * u128::from(at.since(since).0);
            number += change;
            since = at;
        }
        let delays: u128 = log.rows.iter().map(|row| u128::from(row.delay().0)).sum();
        assert_eq!(area, delays, "{policy}: integral of the number in the system against the sum of delays");
    }
}
