//! Times of queries, by operator and processor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tandem_drive::lab::GpuChoice;
use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_engine::search::Executor;
use tandem_engine::search::cpu::{Algorithm, CpuExecutor};
use tandem_model::base::quantile::Times;
use tandem_model::traffic::Mode;

use super::{Arguments, Measurement, input};
use crate::defaults;
use crate::failure::Failure;
use tandem_report::number::counted;

/// A way to answer queries on one of the machine's processors.
struct Operator {
    name: String,
    on: &'static str,
    mode: Mode,
    executor: Box<dyn Executor>,
}

/// The CPU's operators: AND, AND+OR, and OR by every algorithm; and all modes on the GPU, if there is one.
fn operators(index: &Arc<Index>) -> Result<Vec<Operator>, Failure> {
    let cpu = CpuExecutor::new(Arc::clone(index), index.built_with());
    let on_cpu = |name: String, mode, algorithm| {
        let executor = Box::new(cpu.clone_for_worker().with_algorithm(algorithm));
        Operator { name, on: "cpu", mode, executor: executor as Box<dyn Executor> }
    };
    let mut operators: Vec<Operator> = [Mode::And, Mode::AndOr]
        .into_iter()
        .map(|mode| on_cpu(mode.name().to_owned(), mode, Algorithm::Auto))
        .chain(Algorithm::ALL.map(|algorithm| on_cpu(format!("or {algorithm}"), Mode::Or, algorithm)))
        .collect();
    if let Some(gpu) = GpuChoice::Auto.executor(index, None, &defaults::Bars::default())? {
        for mode in Mode::ALL {
            let executor = Box::new(gpu.for_another_stream()?);
            operators.push(Operator { name: mode.name().to_owned(), on: "gpu", mode, executor });
        }
    }
    Ok(operators)
}

/// Lets all operators answer all queries in turn, `rounds` times. Calls `done` after every query. The least time of each query
/// counts, by operator.
///
/// The first operator finds the lists of a query in colder caches than the others. Another operator is first in each round, so
/// that with at least as many rounds as operators all least times are those of a warm cache.
fn time_in_turns(
    operators: &mut [Operator],
    queries: &[Query],
    k: usize,
    rounds: usize,
    done: impl Fn(),
) -> Result<Vec<Times>, Failure> {
    let mut least = vec![vec![Duration::MAX; queries.len()]; operators.len()];
    let mut hits = Vec::new();
    for round in 0..rounds {
        for (position, query) in queries.iter().enumerate() {
            for turn in 0..operators.len() {
                let place = (turn + round) % operators.len();
                let Operator { mode, executor, .. } = &mut operators[place];
                let began = Instant::now();
                executor.search(query, *mode, k, &mut hits)?;
                let took = began.elapsed();
                least[place][position] = took.min(least[place][position]);
            }
            done();
        }
    }
    let us = |times: Vec<Duration>| Times::of(times.iter().map(|time| time.as_secs_f64() * 1e6).collect());
    Ok(least.into_iter().map(us).collect())
}

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let (index, queries) = input(arguments)?;
    let mut operators = operators(&index)?;
    let mut devices: Vec<String> = operators.iter().map(|operator| operator.executor.device()).collect();
    devices.dedup();

    let mut rows = Vec::new();
    let postings: u64 = queries.iter().flat_map(|query| &query.terms).map(|term| u64::from(term.doc_freq)).sum();
    let rounds = arguments.rounds as usize;
    let bar = defaults::progress("operators", (rounds * queries.len() * arguments.k.len()) as u64);
    for &k in &arguments.k {
        let timed = time_in_turns(&mut operators, &queries, k, rounds, || bar.inc(1))?;
        for (times, Operator { name, on, .. }) in timed.into_iter().zip(&operators) {
            let name = format!("{name} k={k} {on}");
            let metrics = [
                ("mean_us", times.mean_us()),
                ("p50_us", times.quantile_us(0.5)),
                ("p95_us", times.quantile_us(0.95)),
                ("p99_us", times.quantile_us(0.99)),
                ("postings_per_us", postings as f64 / times.sum_us()),
            ];
            let row = |(metric, value)| Measurement { part: "operators", name: name.clone(), metric, value };
            rows.extend(metrics.map(row));
        }
    }
    bar.finish_and_clear();
    let note = format!(
        "operators: {} queries of {} postings on average, on {}; {}, each query's least time; M/s are \
         postings of the lists\n",
        queries.len(),
        postings / queries.len() as u64,
        devices.join(" and "),
        counted(rounds, "round", "rounds"),
    );
    Ok((note, rows))
}
