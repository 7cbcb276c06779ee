//! What queries cost, by operator and processor.

use std::sync::Arc;

use super::{Arguments, Measurement, input, metrics};
use crate::bench::{Contender, time_operators};
use crate::cli::choices::GpuChoice;
use crate::cli::{Failure, defaults};
use crate::exec::Executor;
use crate::exec::cpu::CpuExecutor;
use crate::query::Mode;
use crate::report::table::Table;

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let (index, queries) = input(arguments)?;
    let mut executors: Vec<(&str, Box<dyn Executor>)> =
        vec![("cpu", Box::new(CpuExecutor::new(Arc::clone(&index), index.built_with())))];
    executors.extend(GpuChoice::Auto.executor(&index)?.map(|gpu| ("gpu", gpu)));
    let devices: Vec<String> = executors.iter().map(|(_, executor)| executor.device()).collect();

    let mut rows = Vec::new();
    let postings: u64 = queries.iter().flat_map(|query| &query.terms).map(|term| u64::from(term.doc_freq)).sum();
    let mut table =
        Table::new(["operator", "on", "k", "mean us", "p50 us", "p95 us", "p99 us", "M postings/s of the lists"]);
    let bar = defaults::progress(
        "operators",
        u64::from(arguments.rounds) * queries.len() as u64 * (arguments.k.len() * executors.len()) as u64,
    );
    for &k in &arguments.k {
        for (kind, executor) in &mut executors {
            let executor = std::cell::RefCell::new(executor);
            let mut contenders: Vec<Contender<'_>> = Mode::ALL
                .iter()
                .map(|&mode| {
                    let executor = &executor;
                    Contender {
                        name: mode.name().to_owned(),
                        search: Box::new(move |query, hits| {
                            executor.borrow_mut().search(query, mode, k, hits).map(drop)
                        }),
                    }
                })
                .collect();
            let timed = time_operators(&mut contenders, &queries, arguments.rounds as usize, &mut || bar.inc(1))?;
            for operator in timed {
                let name = format!("{} k={k} {kind}", operator.name);
                let times = operator.times;
                let rate = postings as f64 / times.sum_us();
                let mut cells = vec![operator.name, (*kind).to_owned(), k.to_string()];
                for (metric, value) in metrics(&times) {
                    cells.push(format!("{value:.1}"));
                    rows.push(Measurement { part: "operators", name: name.clone(), metric, value });
                }
                cells.push(format!("{rate:.0}"));
                table.row(cells);
                rows.push(Measurement { part: "operators", name, metric: "postings_per_us", value: rate });
            }
        }
    }
    bar.finish_and_clear();
    let title = format!(
        "{} queries of {} postings on average, on {}; {} rounds, each query's least time",
        queries.len(),
        postings / queries.len() as u64,
        devices.join(" and "),
        arguments.rounds
    );
    Ok((format!("{title}\n{table}\n"), rows))
}
