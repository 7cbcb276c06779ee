//! What queries cost on the GPU: one at a time, from submission to results on the host, and many together.

use std::sync::Arc;
use std::time::Instant;

use super::{REPEATS, Row};
use crate::bench::Times;
use crate::cli::{Failure, defaults};
use crate::exec::gpu::{GpuExecutor, UploadReport};
use crate::exec::{Executor, Hit};
use crate::gpu::DeviceLimits;
use crate::index::Index;
use crate::quantile::median;
use crate::query::{Mode, Query};

/// Documents that a query asks for.
pub(super) const K: usize = 10;
/// Queries before anything is timed: clocks rise, and lists come into the caches that they may be in.
const WARM_UP: usize = 200;
/// Queries of a batch; the last size is the one that targets are for.
const BATCHES: [usize; 6] = [1, 16, 64, 256, 1024, 4096];

/// Queries of a batch that goes to the device in one piece, so that its scoring has an end.
const ONE_CHUNK: usize = 128;

/// What is to be reached in a mode: microseconds for one query, queries a second in batches.
struct Target {
    mode: Mode,
    one_us: (f64, f64),
    batch_qps: (f64, f64),
}

const TARGETS: [Target; 2] = [
    Target { mode: Mode::Or, one_us: (80.0, 30.0), batch_qps: (20_000.0, 90_000.0) },
    Target { mode: Mode::And, one_us: (40.0, 15.0), batch_qps: (60_000.0, 250_000.0) },
];

/// Adds the rows of both modes.
pub(super) fn measure(
    limits: &DeviceLimits,
    index: &Arc<Index>,
    queries: &[Query],
    rounds: usize,
    rows: &mut Vec<Row>,
) -> Result<(), Failure> {
    let mut gpu = defaults::gpu_executor(index, index.built_with())?;
    rows.extend(upload_rows(limits, gpu.upload_report()));
    for target in TARGETS {
        one_by_one(&mut gpu, limits, queries, rounds, &target, rows)?;
        batches(&mut gpu, queries, &target, rows)?;
    }
    topk_share(&mut gpu, queries, rows)
}

/// What the index takes on the device, and how it came there.
fn upload_rows(limits: &DeviceLimits, report: UploadReport) -> [Row; 3] {
    let rate = report.copied_bytes as f64 / report.seconds;
    [
        Row::new("device memory of the index", "GB", report.device_bytes as f64 / 1e9),
        Row::new("upload of the index", "s", report.seconds),
        Row::new("upload of the index, copied", "GB/s", rate / 1e9)
            .of(rate / limits.host_copy_rate(), "host to device, page-locked"),
    ]
}

/// Adds the share of a union's device time that goes by between the last score and the sorted results.
fn topk_share(gpu: &mut GpuExecutor, queries: &[Query], rows: &mut Vec<Row>) -> Result<(), Failure> {
    let mut hits = Vec::new();
    for size in [1, ONE_CHUNK] {
        let (mut topk_us, mut device_us) = (0.0, 0.0);
        for batch in queries.chunks(size) {
            device_us += gpu.search_batch(batch, Mode::Or, K, &mut hits)?.device_us.unwrap_or(0.0);
            topk_us += gpu.topk_us();
        }
        let what = format!("or top {K}: top-k's share of the device's time, batches of {size}");
        rows.push(Row::new(what, "%", 100.0 * topk_us / device_us).with_target(15.0, 5.0));
    }
    Ok(())
}

fn one_by_one(
    gpu: &mut GpuExecutor,
    limits: &DeviceLimits,
    queries: &[Query],
    rounds: usize,
    &Target { mode, one_us, .. }: &Target,
    rows: &mut Vec<Row>,
) -> Result<(), Failure> {
    let mut hits = Vec::new();
    for query in queries.iter().cycle().take(WARM_UP) {
        gpu.search(query, mode, K, &mut hits)?;
    }
    let (mut host_us, mut device_us) = (vec![Vec::new(); queries.len()], vec![Vec::new(); queries.len()]);
    for _ in 0..rounds {
        for (number, query) in queries.iter().enumerate() {
            let began = Instant::now();
            let execution = gpu.search(query, mode, K, &mut hits)?;
            host_us[number].push(began.elapsed().as_secs_f64() * 1e6);
            device_us[number].extend(execution.device_us);
        }
    }
    let times = |us: Vec<Vec<f64>>| Times::of(us.into_iter().map(median).collect());
    let (host, device) = (times(host_us), times(device_us));
    let what = |part: &str| format!("{} top {K}, one query, submission to host: {part}", mode.name());
    let of_launch = |us: f64| limits.launch_and_wait_us / us;
    let row = |part: &str, us: f64| Row::new(what(part), "us", us).of(of_launch(us), "launch and wait");
    rows.push(row("mean", host.mean_us()).with_target(one_us.0, one_us.1));
    rows.push(row("p50", host.quantile_us(0.5)));
    rows.push(row("p95", host.quantile_us(0.95)));
    rows.push(row("p99", host.quantile_us(0.99)));
    rows.push(Row::new(what("mean on the device"), "us", device.mean_us()));
    Ok(())
}

/// Batches of several sizes, each time of other queries of the log.
fn batches(
    gpu: &mut GpuExecutor,
    queries: &[Query],
    &Target { mode, batch_qps, .. }: &Target,
    rows: &mut Vec<Row>,
) -> Result<(), Failure> {
    check(gpu, queries, mode)?;
    let mut hits = Vec::new();
    let mut start = 0;
    for size in BATCHES {
        let (mut host_us, mut device_us, mut postings) = (Vec::new(), Vec::new(), Vec::new());
        // Small batches are over soon: more of them, so that all of the log's queries have their turn.
        let repeats = REPEATS.max((queries.len() / size).min(200));
        for run in 0..=repeats {
            let batch: Vec<Query> = queries.iter().cycle().skip(start).take(size).cloned().collect();
            start = (start + size) % queries.len();
            let began = Instant::now();
            let execution = gpu.search_batch(&batch, mode, K, &mut hits)?;
            let took_us = began.elapsed().as_secs_f64() * 1e6;
            if run > 0 {
                host_us.push(took_us);
                device_us.extend(execution.device_us);
                postings.push(batch.iter().flat_map(|query| &query.terms).map(|term| f64::from(term.doc_freq)).sum());
            }
        }
        // Sizes below the log's differ from run to run in what they hold: their mean is what a
        // stream of them would take.
        let [host, device, postings] = [host_us, device_us, postings].map(|values: Vec<f64>| mean(&values));
        let what = format!("{} top {K}, batches of {size}", mode.name());
        let row = Row::new(&what, "queries/s", size as f64 / host * 1e6);
        let is_last = size == BATCHES[BATCHES.len() - 1];
        rows.push(if is_last { row.with_target(batch_qps.0, batch_qps.1) } else { row });
        rows.push(Row::new(format!("{what}: of the lists"), "G postings/s", postings / host / 1e3));
        // Chunks of a batch overlap, so that this is more than the host waits where there are several.
        rows.push(Row::new(format!("{what}: on the device, a query"), "us", device / size as f64));
    }
    Ok(())
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Checks that a batch finds what its queries find alone.
fn check(gpu: &mut GpuExecutor, queries: &[Query], mode: Mode) -> Result<(), Failure> {
    let mut together = Vec::new();
    gpu.search_batch(queries, mode, K, &mut together)?;
    let mut alone: Vec<Hit> = Vec::new();
    for (query, together) in queries.iter().zip(&together).take(WARM_UP) {
        gpu.search(query, mode, K, &mut alone)?;
        if *together != alone {
            let label = &query.label;
            return Err(Failure::failed(format!("query {label} finds other documents in a batch; this is a bug")));
        }
    }
    Ok(())
}
