//! The rate of queries while other cores index, for several splits of the cores.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tandem_engine::corpus::{Collection, Tokenizer, Words};
use tandem_engine::index::{Bm25, Index};
use tandem_engine::indexing::{BuildOptions, build_from_text};
use tandem_engine::query::Query;
use tandem_engine::search::cpu::CpuExecutor;
use tandem_engine::search::{ExecError, Executor};
use tandem_model::traffic::Mode;

use super::{Arguments, Measurement, input};
use crate::{Failure, defaults, interrupts};
use tandem_report::table::Table;

const K: usize = 10;
const MODE: Mode = Mode::Or;
/// Length of the measurement of a split, which then waits for the end of its last build.
const TIME: Duration = Duration::from_secs(2);
/// Number of splits of the cores after the first one, in which all cores answer queries.
const SPLITS: usize = 8;

/// Rates of a split of the cores.
struct Split {
    ingest_threads: usize,
    query_threads: usize,
    ingest_mb_per_s: f64,
    queries_per_s: f64,
}

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    if arguments.ingest.is_empty() {
        return Err(Failure::input("--what ingest needs text to index: --ingest FILE"));
    }
    let (index, queries) = input(arguments)?;
    interrupts::catch();
    std::fs::create_dir_all(&arguments.out)?;
    let scratch = tempfile::tempdir_in(&arguments.out)?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut ingest_threads: Vec<usize> = (0..=SPLITS).map(|split| split * threads / SPLITS).collect();
    ingest_threads.dedup();
    let bar = defaults::progress("splits of the cores", ingest_threads.len() as u64);
    let mut splits = Vec::new();
    for ingest_threads in ingest_threads {
        let index_text = |end| index_until(arguments, scratch.path(), ingest_threads, end);
        splits.push(share_cores(&index, &queries, (threads - ingest_threads, ingest_threads), index_text)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    let text = format!("ingest: {MODE}, k={K}, {threads} threads, of which some index\n{}", table(&splits));
    let rows = splits.iter().flat_map(|split| {
        let name = format!("{} index, {} answer", split.ingest_threads, split.query_threads);
        let row = |metric, value| Measurement { part: "ingest", name: name.clone(), metric, value };
        [row("queries_per_s", split.queries_per_s), row("text_mb_per_s", split.ingest_mb_per_s)]
    });
    Ok((text, rows.collect()))
}

/// Answers queries on some threads without a pause, while `index_text` indexes on others until a given time and returns the
/// bytes of text.
fn share_cores(
    index: &Arc<Index>,
    queries: &[Query],
    (query_threads, ingest_threads): (usize, usize),
    index_text: impl FnOnce(Instant) -> Result<u64, Failure>,
) -> Result<Split, Failure> {
    let cpu = CpuExecutor::new(Arc::clone(index), index.built_with());
    let is_over = AtomicBool::new(false);
    let answer = |mut executor: CpuExecutor, first: usize| {
        let (mut answered, mut hits) = (0_u64, Vec::new());
        for query in queries.iter().cycle().skip(first).take_while(|_| !is_over.load(Ordering::Relaxed)) {
            executor.search(query, MODE, K, &mut hits)?;
            answered += 1;
        }
        Ok::<_, ExecError>(answered)
    };
    std::thread::scope(|scope| {
        let began = Instant::now();
        let threads: Vec<_> = (0..query_threads)
            .map(|thread| {
                // Every thread goes through all queries repeatedly, and starts at a different one.
                let (executor, first) = (cpu.clone_for_worker(), thread * queries.len() / query_threads);
                let answer = &answer;
                scope.spawn(move || answer(executor, first))
            })
            .collect();
        let indexed = index_text(began + TIME);
        is_over.store(true, Ordering::Relaxed);
        let seconds = began.elapsed().as_secs_f64();
        let mut answered = 0;
        for thread in threads {
            answered += thread.join().unwrap_or(Err(ExecError::Panicked))?;
        }
        let (ingest_mb_per_s, queries_per_s) = (indexed? as f64 / 1e6 / seconds, answered as f64 / seconds);
        Ok(Split { ingest_threads, query_threads, ingest_mb_per_s, queries_per_s })
    })
}

/// Indexes the text repeatedly until the first end of a build after `end`. Without a thread to index it sleeps until then.
fn index_until(arguments: &Arguments, scratch: &Path, threads: usize, end: Instant) -> Result<u64, Failure> {
    if threads == 0 {
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
        return Ok(0);
    }
    let tokenizer = Tokenizer::new(Words::Unicode);
    let options = BuildOptions { tokenizer, bm25: Bm25::default(), threads, memory_bytes: None };
    let mut bytes = 0;
    while Instant::now() < end {
        let collection = Collection::open_all(arguments.ingest.clone(), threads)?;
        bytes += build_from_text(collection, scratch, &options, &|_| ())?.bytes;
    }
    Ok(bytes)
}

/// The splits of cores, with their shares of the rates of all cores indexing and all cores answering.
fn table(splits: &[Split]) -> Table {
    let full = |threads: fn(&Split) -> usize, rate: fn(&Split) -> f64| {
        let all = splits.iter().max_by_key(|split| threads(split));
        all.map_or(0.0, |split| rate(split) / threads(split).max(1) as f64)
    };
    let mb_per_s = full(|split| split.ingest_threads, |split| split.ingest_mb_per_s);
    let qps = full(|split| split.query_threads, |split| split.queries_per_s);
    let mut table = Table::new(["index", "answer", "MB/s", "share", "q/s", "share", "off by"]).with_keys(2);
    for split in splits {
        let share_qps = qps * split.query_threads as f64;
        let off = 100.0 * (share_qps / split.queries_per_s - 1.0);
        table.row([
            split.ingest_threads.to_string(),
            split.query_threads.to_string(),
            format!("{:.1}", split.ingest_mb_per_s),
            format!("{:.1}", mb_per_s * split.ingest_threads as f64),
            format!("{:.0}", split.queries_per_s),
            format!("{share_qps:.0}"),
            if split.query_threads > 0 { format!("{off:+.1} %") } else { String::new() },
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_what_all_threads_do_alone() {
        let split = |ingest_threads, queries_per_s, ingest_mb_per_s| Split {
            query_threads: 4 - ingest_threads,
            ingest_threads,
            queries_per_s,
            ingest_mb_per_s,
        };
        let table = table(&[split(0, 800.0, 0.0), split(1, 500.0, 90.0), split(4, 0.0, 320.0)]).to_string();
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(rows.contains(&vec!["1", "3", "90.0", "80.0", "500", "600", "+20.0", "%"]), "{table}");
        assert!(rows.contains(&vec!["4", "0", "320.0", "320.0", "0", "0"]), "{table}");
    }
}
