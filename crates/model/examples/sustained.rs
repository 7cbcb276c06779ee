//! Evidence for the meaning of "sustained", as tables: `cargo run --release -p tandem-model --example sustained -- WHAT`.
//!
//! | what | measures |
//! | --- | --- |
//! | `growth` | how often 200 runs at loads of 0.95 and 1.02 are called growing, by queue and policy |
//! | `rates WORKLOAD...` | capacities of all policies |
//! | `replays FILE WORKLOAD...` | the same, played with 20 M queries of 5 other seeds; a table |
//! | `intervals CASES` | how often intervals contain the closed form |
//! | `known` | capacities of queues with known answers |

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use tandem_model::base::ids::QueryId;
use tandem_model::base::machine::{Machine, PerClass};
use tandem_model::base::random::Random;
use tandem_model::base::time::Nanos;
use tandem_model::cost::{Cost, Workload};
use tandem_model::files::{Digits, Provenance, Record, set_commit, write_csv};
use tandem_model::sched::{BuiltIn, PolicyFactory, PolicyKind, PolicyOptions};
use tandem_model::sim::{Arrivals, Cluster, ClusterShape, Experiment, Routing, ShardCosts, SimError, SimQuery};
use tandem_model::study::{
    Capacity, CapacitySearch, ClosedForm, Estimates, Judge, Objective, QueryLengths, RunLength, SimulatedMachine,
    Unsteady, draw_all, named_workload_in, relaxation, sim_queries,
};
use tandem_model::traffic::{ArrivalProcess, Mode};

const LONG: usize = 20_000_000;

fn queue(cpus: usize, phases: &[(f64, f64)], mean_ms: f64, deadline_ms: f64, seeds: &[u64]) -> Experiment {
    let mut random = Random::new(1, 0);
    let rows = 40_000;
    let times = (0..rows).map(|i| {
        let mut at = f64::from(i) / f64::from(rows);
        let phase = phases.iter().find(|(share, _)| {
            let is_here = at < *share;
            at -= if is_here { 0.0 } else { *share };
            is_here
        });
        let rate = phase.map_or(1.0, |(_, rate)| *rate);
        -(1.0 - random.unit()).ln() * mean_ms / rate
    });
    let query = |(id, ms): (u32, f64)| {
        let service = Cost::on_cpu_and_gpu(Nanos::from_ms(ms), Nanos::MAX);
        SimQuery { id: QueryId(id), service, estimate: service }
    };
    let queries: Vec<SimQuery> = (0..).zip(times).map(query).collect();
    Experiment {
        model: Machine::new(cpus, 0).into(),
        deadline: Nanos::from_ms(deadline_ms),
        arrivals: draw_all(&ArrivalProcess::Poisson, seeds, 0, queries.len()),
        queries,
        cluster: None,
    }
}

const EXPONENTIAL: [(f64, f64); 1] = [(1.0, 1.0)];
const HYPER: [(f64, f64); 2] = [(0.887_298, 1.774_597), (0.112_702, 0.225_403)];

fn growth() -> Result<(), Box<dyn Error>> {
    let seeds: Vec<u64> = (1..=200).collect();
    println!("queue, policy, load, queries, growing of 200 (age, mean), not settled");
    for (name, cpus, phases) in [("M/M/1", 1, &EXPONENTIAL[..]), ("M/M/15", 15, &EXPONENTIAL), ("M/H2/1", 1, &HYPER)] {
        let experiment = queue(cpus, phases, 10.0, 100.0, &seeds);
        for kind in [PolicyKind::CpuOnly, PolicyKind::StealingAdaptive] {
            let policy = kind.with(PolicyOptions::default());
            let limit_qps = 1.0 / experiment.utilisation(&policy, 1.0).ok_or("no limit")?;
            for load in [0.95, 1.02] {
                let count = (100.0 * relaxation(load, experiment.variation(&policy))) as usize;
                let rate_qps = load * limit_qps;
                let criterion = Objective::from_text("no-miss")?.within(Nanos::MAX);
                let run = |arrivals: &Arrivals| {
                    let judge = Judge::new(criterion, count, rate_qps);
                    let judge = experiment.play(&policy, rate_qps, &arrivals.first(count), judge, |_| false);
                    judge.map(|judge| judge.verdict().unsteady)
                };
                let found = experiment.arrivals.par_iter().map(run).collect::<Result<Vec<_>, _>>()?;
                let of = |why| found.iter().filter(|found| **found == Some(why)).count();
                let (age, mean) = (of(Unsteady::AgeGrows), of(Unsteady::MeanGrows));
                println!("{name}, {kind}, {load}, {count}, {} ({age}, {mean})", age + mean);
            }
        }
    }
    Ok(())
}

/// Plays a rate with 20 M queries of five other seeds; the number that hold.
fn holds(
    search: &CapacitySearch<'_>,
    experiment: &Experiment,
    policy: &dyn PolicyFactory,
    qps: f64,
) -> Result<usize, Box<dyn Error>> {
    let arrivals = draw_all(&ArrivalProcess::Poisson, &[1001, 1002, 1003, 1004, 1005], LONG, experiment.queries.len());
    let criterion = search.criterion_of(policy, qps)?;
    let utilisation = experiment.utilisation(policy, qps).ok_or("no limit")?;
    let run = |arrivals: &Arrivals| {
        let judge = Judge::new(criterion, LONG, qps).with_utilisation(utilisation);
        let judge = experiment.play(policy, qps, arrivals, judge, |judge| judge.is_lost(0))?;
        Ok::<_, SimError>(!judge.is_lost(0) && judge.verdict().holds())
    };
    let held = arrivals.par_iter().map(run).collect::<Result<Vec<_>, _>>()?;
    Ok(held.into_iter().filter(|&held| held).count())
}

fn shown(found: &Capacity, seconds: f64) {
    let Capacity { qps, interval, failing_qps, stable_qps, seeds, confirmed_queries, .. } = found;
    println!(
        "{}: {qps:.1} ({:.1} to {:.1}, {:.2} %), fails at {failing_qps:.1?}, limit {stable_qps:.1}, load {:.4}; {seeds} x {confirmed_queries}; {seconds:.2} s",
        found.policy,
        interval.low,
        interval.high,
        100.0 * (interval.high - interval.low) / qps,
        qps / stable_qps,
    );
    if let Some(verdict) = found.verdict {
        println!(
            "    p99 {} p99.9 {} longest {} late {}",
            verdict.p99.as_ms(),
            verdict.p999.as_ms(),
            verdict.longest.as_ms(),
            verdict.late_share()
        );
    }
}

/// One machine with a shipped workload, or several of them, and its policies.
fn machines(workload: &Workload, shards: usize, replicas: usize) -> Result<(Experiment, Vec<BuiltIn>), Box<dyn Error>> {
    let estimates = Estimates::default();
    let machine = SimulatedMachine { cpus: 1, gpus: 1, streams: 1, profile: None, is_gpu_replayed: false };
    let model = machine.model(workload, &estimates);
    let queries = sim_queries(workload, &estimates, &model.machine)?;
    let estimated: Vec<PerClass<Cost>> = queries.iter().map(|query| query.estimate).collect();
    let lengths = QueryLengths::of(workload, &estimated, &model);
    let options = PolicyOptions { length_threshold: lengths.best_threshold, ..PolicyOptions::default() };
    let is_asked = |kind: &PolicyKind| shards * replicas == 1 || *kind == PolicyKind::CpuOnly;
    let policies = POLICIES.into_iter().filter(is_asked);
    let policies = policies.map(|kind| kind.with(options).with_lengths(lengths.blocks.clone())).collect();
    let shape = ClusterShape { shards, replicas, routing: Routing::LeastOutstanding, costs: ShardCosts::Alike(0.1) };
    let experiment = Experiment {
        model,
        deadline: Nanos::from_ms(50.0),
        arrivals: draw_all(&ArrivalProcess::Poisson, &(1..=10).collect::<Vec<u64>>(), 0, queries.len()),
        cluster: Cluster::of(shape, &queries),
        queries,
    };
    Ok((experiment, policies))
}

const POLICIES: [PolicyKind; 12] = [
    PolicyKind::GpuOnly,
    PolicyKind::CpuOnly,
    PolicyKind::BestOf,
    PolicyKind::Stealing,
    PolicyKind::Combined,
    PolicyKind::Mct,
    PolicyKind::StealingAdaptive,
    PolicyKind::CachedFirst,
    PolicyKind::Greedy,
    PolicyKind::Window,
    PolicyKind::Adaptive,
    PolicyKind::LengthBased,
];

fn rates(names: &[String]) -> Result<(), Box<dyn Error>> {
    for name in names {
        let (name, workload) = named_workload_in(Some(name), Mode::Or)?;
        let (experiment, policies) = machines(&workload, 1, 1)?;
        let search = CapacitySearch::new(&experiment, Objective::default(), RunLength::default())?;
        println!("{name}");
        for policy in &policies {
            let begun = Instant::now();
            let found = search.of(policy)?;
            shown(&found, begun.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

/// A capacity, and rates around it in long runs.
#[derive(Serialize, Deserialize)]
struct Replay {
    workload: String,
    /// Shards times replicas.
    machines: String,
    policy: String,
    max_rate_qps: Digits<6>,
    /// Number of the five runs that hold at 0.99 of the rate.
    held_below: usize,
    /// The lowest rate above it, in steps of 1 %, that fails for three of five.
    failing_qps: Digits<6>,
    share_of_failing: Digits<4>,
}

impl Record for Replay {}

fn replays(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let (path, names) = arguments.split_first().ok_or("expected a file and workloads")?;
    let mut rows = Vec::new();
    for name in names {
        let (name, workload) = named_workload_in(Some(name), Mode::Or)?;
        for (shards, replicas) in [(1, 1), (1, 2), (2, 1)] {
            let (experiment, policies) = machines(&workload, shards, replicas)?;
            let search = CapacitySearch::new(&experiment, Objective::default(), RunLength::default())?;
            for policy in &policies {
                let found = search.of(policy)?;
                let held_below = holds(&search, &experiment, policy, 0.99 * found.qps)?;
                let mut failing_qps = found.qps;
                loop {
                    failing_qps += 0.01 * found.qps;
                    if failing_qps >= found.stable_qps || holds(&search, &experiment, policy, failing_qps)? <= 2 {
                        break;
                    }
                }
                let of = &found.policy;
                println!("{name} {shards} x {replicas} {of}: {}, 0.99: {held_below}, {failing_qps} fails", found.qps);
                rows.push(Replay {
                    workload: name.clone(),
                    machines: format!("{shards} x {replicas}"),
                    policy: found.policy.clone(),
                    max_rate_qps: Digits(found.qps),
                    held_below,
                    failing_qps: Digits(failing_qps),
                    share_of_failing: Digits(found.qps / failing_qps),
                });
            }
        }
    }
    let commit = std::process::Command::new("git").args(["rev-parse", "--short=8", "HEAD"]).output()?.stdout;
    set_commit(String::from_utf8(commit)?.trim().to_owned().leak());
    let command = "cargo run --release -p tandem-model --example sustained -- replays";
    let provenance = Provenance::new().with_command_and_machine().without("command");
    let provenance = provenance.with("command", format!("{command} {}", arguments.join(" ")));
    Ok(write_csv(Path::new(path), &provenance, rows)?)
}

fn known() -> Result<(), Box<dyn Error>> {
    let seeds: Vec<u64> = (1..=10).collect();
    let queues = [
        ("M/M/1 20 us 50 ms", queue(1, &EXPONENTIAL, 0.02, 50.0, &seeds)),
        ("M/M/15 10 ms 100 ms", queue(15, &EXPONENTIAL, 10.0, 100.0, &seeds)),
    ];
    for (name, experiment) in &queues {
        let search = CapacitySearch::new(experiment, Objective::default(), RunLength::default())?;
        println!("{name}");
        for kind in [PolicyKind::CpuOnly, PolicyKind::StealingAdaptive] {
            let begun = Instant::now();
            let found = search.of(&kind.with(PolicyOptions::default()))?;
            shown(&found, begun.elapsed().as_secs_f64());
        }
    }
    Ok(())
}

fn intervals(cases: usize) -> Result<(), Box<dyn Error>> {
    let (mut all, mut covered) = (0, 0);
    for form in ClosedForm::ALL {
        let begun = Instant::now();
        let found = form.coverage(cases, 10, RunLength::default())?;
        println!("{}: {:.3}, {found:?}, {:.1} s", form.name(), form.capacity_qps(), begun.elapsed().as_secs_f64());
        (all, covered) = (all + cases, covered + found.covered);
    }
    println!("{covered} of {all}");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first().map(|(what, rest)| (what.as_str(), rest)) {
        Some(("growth", _)) => growth(),
        Some(("rates", names)) => rates(names),
        Some(("replays", arguments)) => replays(arguments),
        Some(("known", _)) => known(),
        Some(("intervals", rest)) => intervals(rest.first().map_or(Ok(5), |cases| cases.parse())?),
        _ => Err("expected growth, rates, replays, known or intervals".into()),
    }
}
