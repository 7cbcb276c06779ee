//! Evidence for the meaning of "sustained", as tables: `cargo run --release -p tandem-model --example sustained -- WHAT`.
//!
//! | what | measures |
//! | --- | --- |
//! | `growth` | how often 200 runs at loads of 0.95 and 1.02 are called growing, by queue and policy |
//! | `rates WORKLOAD...` | capacities of the usual policies, played with 20 M queries of 5 other seeds |
//! | `intervals CASES` | how often intervals contain the closed form |
//! | `known` | capacities of queues with known answers |

use std::error::Error;
use std::time::Instant;

use rayon::prelude::*;
use tandem_model::base::ids::QueryId;
use tandem_model::base::machine::Machine;
use tandem_model::base::random::Random;
use tandem_model::base::time::Nanos;
use tandem_model::cost::Cost;
use tandem_model::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use tandem_model::sim::{Arrivals, Experiment, SimQuery};
use tandem_model::study::{
    Capacity, CapacitySearch, ClosedForm, Estimates, Judge, Objective, RunLength, SimulatedMachine, Unsteady, draw_all,
    named_workload_in, relaxation, sim_queries,
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
        experiment
            .play(policy, qps, arrivals, judge, |judge| judge.is_lost(0))
            .map(|judge| (judge.is_lost(0), judge.verdict()))
    };
    let found = arrivals.par_iter().map(run).collect::<Result<Vec<_>, _>>()?;
    for (is_lost, verdict) in &found {
        print!(
            " [{}{} {} {}]",
            if *is_lost { "lost " } else { "" },
            verdict.words(),
            verdict.p99.as_ms(),
            verdict.p999.as_ms()
        );
    }
    println!();
    Ok(found.iter().filter(|(is_lost, verdict)| !is_lost && verdict.holds()).count())
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

fn rates(names: &[String]) -> Result<(), Box<dyn Error>> {
    for name in names {
        let (name, workload) = named_workload_in(Some(name), Mode::Or)?;
        let estimates = Estimates::default();
        let machine = SimulatedMachine { cpus: 1, gpus: 1, streams: 1, profile: None, is_gpu_replayed: false };
        let model = machine.model(&workload, &estimates);
        let queries = sim_queries(&workload, &estimates, &model.machine)?;
        let seeds: Vec<u64> = (1..=10).collect();
        let experiment = Experiment {
            model,
            deadline: Nanos::from_ms(50.0),
            arrivals: draw_all(&ArrivalProcess::Poisson, &seeds, 0, queries.len()),
            queries,
            cluster: None,
        };
        let search = CapacitySearch::new(&experiment, Objective::default(), RunLength::default())?;
        println!("{name}");
        for kind in [
            PolicyKind::GpuOnly,
            PolicyKind::CpuOnly,
            PolicyKind::BestOf,
            PolicyKind::Stealing,
            PolicyKind::Combined,
            PolicyKind::Mct,
            PolicyKind::StealingAdaptive,
        ] {
            let policy = kind.with(PolicyOptions::default());
            let begun = Instant::now();
            let found = search.of(&policy)?;
            shown(&found, begun.elapsed().as_secs_f64());
            if std::env::var("LONG").is_err() {
                continue;
            }
            for step in [-1, 1, 2, 3] {
                let qps = found.qps * (1.0 + 0.01 * f64::from(step));
                print!("    {:+} % {qps:.1}:", step);
                if qps >= found.stable_qps {
                    println!(" load {:.4}", qps / found.stable_qps);
                    break;
                }
                let held = holds(&search, &experiment, &policy, qps)?;
                if step > 0 && held <= 2 {
                    break;
                }
            }
        }
    }
    Ok(())
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
        Some(("known", _)) => known(),
        Some(("intervals", rest)) => intervals(rest.first().map_or(Ok(5), |cases| cases.parse())?),
        _ => Err("expected growth, rates, known or intervals".into()),
    }
}
