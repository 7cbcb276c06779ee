//! What queries cost, by operator and processor.

use std::sync::Arc;

use super::{Arguments, Measurement, input, metrics};
use crate::cli::{Failure, defaults};
use crate::exec::Executor;
use crate::exec::cpu::{Algorithm, CpuExecutor};
use crate::index::Index;
use crate::lab::GpuChoice;
use crate::measure::{Contender, OperatorTimes, Search, time_operators};
use crate::query::Mode;
use crate::report::number::counted;

/// A way to answer queries on one of the machine's processors.
struct Operator {
    name: String,
    on: &'static str,
    mode: Mode,
    executor: Box<dyn Executor>,
}

/// AND and AND+OR, then OR by every algorithm on the CPU; all modes on the GPU, if there is one.
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

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let (index, queries) = input(arguments)?;
    let mut operators = operators(&index)?;
    let mut devices: Vec<String> = operators.iter().map(|operator| operator.executor.device()).collect();
    devices.dedup();
    let names: Vec<(String, &str)> = operators.iter().map(|operator| (operator.name.clone(), operator.on)).collect();

    let mut rows = Vec::new();
    let postings: u64 = queries.iter().flat_map(|query| &query.terms).map(|term| u64::from(term.doc_freq)).sum();
    let rounds = arguments.rounds as usize;
    let bar = defaults::progress("operators", (rounds * queries.len() * arguments.k.len()) as u64);
    for &k in &arguments.k {
        let mut contenders: Vec<Contender<'_>> = operators
            .iter_mut()
            .map(|Operator { name, mode, executor, .. }| {
                let search: Search<'_> = Box::new(move |query, hits| executor.search(query, *mode, k, hits).map(drop));
                Contender { name: name.clone(), search }
            })
            .collect();
        let timed = time_operators(&mut contenders, &queries, rounds, &mut || bar.inc(1))?;
        for (OperatorTimes { times, .. }, (operator, on)) in timed.into_iter().zip(&names) {
            let name = format!("{operator} k={k} {on}");
            let rate = postings as f64 / times.sum_us();
            let times = metrics(&times);
            rows.extend(times.map(|(metric, value)| Measurement {
                part: "operators",
                name: name.clone(),
                metric,
                value,
            }));
            rows.push(Measurement { part: "operators", name, metric: "postings_per_us", value: rate });
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
