//! Several GPUs together against one: by queries, by documents.
//!
//! All of the machine's GPUs take part. Parts by documents hold the lists of the queries' terms alone, and so does the index
//! that their memory is compared with.

use std::collections::HashSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::queries::K;
use super::{Arguments, Measurement, REPEATS, Row, measurements, table};
use crate::cli::Failure;
use crate::cli::bench::input;
use crate::exec::cpu::multicore::PartitionedIndex;
use crate::exec::gpu::GpuExecutor;
use crate::exec::gpu::cluster::{GpuReplicas, GpuShards, Layout, QueryCost, choose};
use crate::exec::{Answers, Executor, Hit, Request};
use crate::gpu::{free_device_bytes, list_gpus};
use crate::ids::DeviceId;
use crate::quantile::median;
use crate::query::{Mode, Query};

/// Queries of a batch.
const BATCH: usize = 4096;
/// Batches that are dealt out.
const DEALT: usize = 96;
/// A query of more postings than this is long.
const LONG: u64 = 10_000_000;
/// Long queries that are measured alone at most.
const LONG_QUERIES: usize = 50;
/// What is to be reached: of one GPU's rate by queries and by documents, of its memory, of its time for a long query.
const BY_QUERIES: (f64, f64) = (1.9, 1.98);
const BY_DOCUMENTS: (f64, f64) = (1.5, 1.7);
const MEMORY: (f64, f64) = (0.53, 0.51);
const LONG_TIME: (f64, f64) = (0.7, 0.6);

/// Microseconds of an executor: a batch of each mode, and each long query alone.
struct Times {
    batch_us: [f64; MODES.len()],
    long_us: Vec<f64>,
}

const MODES: [Mode; 2] = [Mode::Or, Mode::And];

pub(in crate::cli::bench) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let ordinals: Vec<DeviceId> = list_gpus()?.iter().map(|gpu| gpu.ordinal).collect();
    if ordinals.len() < 2 {
        return Err(Failure::input("--what gpu-cluster compares several GPUs with one: this machine has one"));
    }
    let (index, queries) = input(arguments)?;
    let bm25 = index.built_with();
    let free_bytes = free_device_bytes(ordinals[0])?;
    let gpus = ordinals.len();

    let mut one = GpuExecutor::on_device(ordinals[0], &index, bm25, None, &|_, _| ())?;
    let index_bytes = one.upload_report().device_bytes;
    let mut expected = Vec::new();
    let alone = times(&mut one, &queries, &mut expected)?;
    let one_dealt = dealt(std::slice::from_mut(&mut one), &queries, &expected)?;
    let cost = QueryCost::fit(&lone_costs(&mut one, &queries)?);
    drop(one);
    let opened = ordinals.iter().map(|&gpu| GpuExecutor::on_device(gpu, &index, bm25, None, &|_, _| ()));
    let mut all: Vec<GpuExecutor> = opened.collect::<Result<_, _>>()?;
    let all_dealt = dealt(&mut all, &queries, &expected)?;
    drop(all);
    let mut replicas = GpuReplicas::new(&ordinals, &index, bm25)?;
    let by_queries = times(&mut replicas, &queries, &mut expected)?;
    drop(replicas);

    let asked: HashSet<_> = queries.iter().flat_map(|query| &query.terms).map(|term| term.term).collect();
    let part_of = |parts| PartitionedIndex::build(&index, parts, |term| asked.contains(&term));
    let whole = GpuShards::new(&ordinals[..1], &index, part_of(1)?, bm25)?.device_bytes();
    let mut shards = GpuShards::new(&ordinals, &index, part_of(gpus)?, bm25)?;
    let by_documents = times(&mut shards, &queries, &mut expected)?;

    let mut rows = Vec::new();
    for (place, mode) in MODES.into_iter().enumerate() {
        let dealt = (one_dealt[place], all_dealt[place]);
        rows.extend(rate_rows(
            mode,
            gpus,
            [&alone, &by_queries, &by_documents].map(|times| times.batch_us[place]),
            dealt,
        ));
    }
    let share = shards.device_bytes() as f64 / whole as f64;
    rows.push(Row::new("by documents: memory of a GPU, of the whole's", "x", share).with_target(MEMORY.0, MEMORY.1));
    rows.extend(long_rows(&alone.long_us, &by_documents.long_us));
    rows.push(Row::new("one GPU's time, fixed part", "us", cost.fixed_us));
    rows.push(Row::new("one GPU's time, a million postings", "us", 1e6 * cost.posting_us));
    let choice = |postings, together| match choose(&cost, gpus, postings, together, index_bytes, free_bytes) {
        Layout::ByQueries => "by queries",
        Layout::ByDocuments => "by documents",
    };
    let note = format!(
        "{gpus} GPUs. The cost model chooses: batches {}, one query of {LONG} postings {}, of 100,000 postings {}.\n",
        choice(LONG, true),
        choice(LONG, false),
        choice(100_000, false),
    );
    Ok((format!("{}\n{note}", table(&rows)), measurements(rows)))
}

/// Rates of one mode: of one GPU, and of all by queries and by documents, by what a batch takes in microseconds; and with batches
/// dealt out to one and to all, in queries a second.
fn rate_rows(
    mode: Mode,
    gpus: usize,
    [alone_us, by_queries_us, by_documents_us]: [f64; 3],
    (one_qps, all_qps): (f64, f64),
) -> Vec<Row> {
    let rate = |batch_us: f64| BATCH as f64 / batch_us * 1e6;
    let name = |how: &str| format!("{mode} top {K}, batches of {BATCH}, {how}");
    let times_one = |how: &str, times: f64, (at_least, aim)| {
        Row::new(name(&format!("{how}, times one")), "x", times).with_target(at_least, aim)
    };
    let mut rows = vec![Row::new(name("one GPU"), "queries/s", rate(alone_us))];
    for (how, batch_us, target) in
        [("by queries", by_queries_us, BY_QUERIES), ("by documents", by_documents_us, BY_DOCUMENTS)]
    {
        let how = format!("{gpus} GPUs {how}");
        rows.push(Row::new(name(&how), "queries/s", rate(batch_us)));
        rows.push(times_one(&how, rate(batch_us) / rate(alone_us), target));
    }
    let how = format!("dealt out among {gpus} GPUs");
    rows.push(Row::new(name("dealt out one after another, one GPU"), "queries/s", one_qps));
    rows.push(Row::new(name(&how), "queries/s", all_qps));
    rows.push(times_one(&how, all_qps / one_qps, BY_QUERIES));
    rows
}

/// What long queries take alone, on one GPU and by documents on all; nothing if there are none.
fn long_rows(alone_us: &[f64], by_documents_us: &[f64]) -> Vec<Row> {
    if alone_us.is_empty() {
        return Vec::new();
    }
    let mean = |us: &[f64]| us.iter().sum::<f64>() / us.len() as f64;
    let (alone_us, by_documents_us) = (mean(alone_us), mean(by_documents_us));
    let name = |how: &str| format!("or top {K}, one query of over {LONG} postings, {how}");
    let of_one = by_documents_us / alone_us;
    vec![
        Row::new(name("one GPU"), "us", alone_us),
        Row::new(name("by documents"), "us", by_documents_us),
        Row::new(name("by documents, of one GPU's"), "x", of_one).with_target(LONG_TIME.0, LONG_TIME.1),
    ]
}

/// Queries a second, by mode, where whole batches are dealt out among GPUs with an index and a thread each: who is done
/// takes the next, as under policies that batch.
fn dealt(gpus: &mut [GpuExecutor], queries: &[Query], expected: &[Answers]) -> Result<[f64; MODES.len()], Failure> {
    let mut rates_qps = [0.0; MODES.len()];
    for (place, mode) in MODES.into_iter().enumerate() {
        let asked = queries.iter().cycle().take(BATCH);
        let batch: Vec<Request<'_>> = asked.map(|query| Request { query, mode, k: K }).collect();
        let next = AtomicUsize::new(0);
        // All begin together, after a batch each that does not count.
        let start = Barrier::new(gpus.len() + 1);
        let serve = |gpu: &mut GpuExecutor| -> Result<(), Failure> {
            let mut answers = Answers::default();
            let warm = gpu.search_batch(&batch, &mut answers);
            start.wait();
            warm?;
            while next.fetch_add(1, Ordering::Relaxed) < DEALT {
                gpu.search_batch(&batch, &mut answers)?;
            }
            if answers != expected[place] {
                return Err(Failure::failed(format!("{}: {mode} finds other documents; this is a bug", gpu.device())));
            }
            Ok(())
        };
        let seconds = std::thread::scope(|scope| -> Result<f64, Failure> {
            let threads: Vec<_> = gpus.iter_mut().map(|gpu| scope.spawn(|| serve(gpu))).collect();
            start.wait();
            let began = Instant::now();
            for thread in threads {
                thread.join().map_err(|_| Failure::failed("a GPU's thread panicked; this is a bug"))??;
            }
            Ok(began.elapsed().as_secs_f64())
        })?;
        rates_qps[place] = (DEALT * BATCH) as f64 / seconds;
    }
    Ok(rates_qps)
}

/// Measures an executor, whose answers must be those that were found before.
fn times(gpu: &mut dyn Executor, queries: &[Query], expected: &mut Vec<Answers>) -> Result<Times, Failure> {
    let mut batch_us = [0.0; MODES.len()];
    for (place, mode) in MODES.into_iter().enumerate() {
        let asked = queries.iter().cycle().take(BATCH);
        let batch: Vec<Request<'_>> = asked.map(|query| Request { query, mode, k: K }).collect();
        let mut answers = Answers::default();
        let mut times_us = Vec::new();
        for _ in 0..=REPEATS {
            let began = Instant::now();
            gpu.search_batch(&batch, &mut answers)?;
            times_us.push(began.elapsed().as_secs_f64() * 1e6);
        }
        batch_us[place] = median(times_us.split_off(1));
        match expected.get(place) {
            Some(expected) if *expected != answers => {
                return Err(Failure::failed(format!("{}: {mode} finds other documents; this is a bug", gpu.device())));
            }
            Some(_) => {}
            None => expected.push(answers),
        }
    }
    let postings = |query: &Query| query.terms.iter().map(|term| u64::from(term.doc_freq)).sum::<u64>();
    let long = queries.iter().filter(|query| postings(query) > LONG).take(LONG_QUERIES);
    Ok(Times { batch_us, long_us: lone_us(gpu, long)? })
}

/// What queries take alone, by their postings.
fn lone_costs(gpu: &mut GpuExecutor, queries: &[Query]) -> Result<Vec<(u64, f64)>, Failure> {
    let postings = |query: &Query| query.terms.iter().map(|term| u64::from(term.doc_freq)).sum::<u64>();
    let us = lone_us(gpu, queries.iter())?;
    Ok(queries.iter().map(postings).zip(us).collect())
}

/// Each query's median of some runs alone.
fn lone_us<'q>(gpu: &mut dyn Executor, queries: impl Iterator<Item = &'q Query>) -> Result<Vec<f64>, Failure> {
    const RUNS: usize = 3;
    let mut hits: Vec<Hit> = Vec::new();
    queries
        .map(|query| {
            let mut times_us = Vec::new();
            for _ in 0..=RUNS {
                let began = Instant::now();
                gpu.search(query, Mode::Or, K, &mut hits)?;
                times_us.push(began.elapsed().as_secs_f64() * 1e6);
            }
            Ok(median(times_us.split_off(1)))
        })
        .collect()
}
