//! Times of queries on the GPU: single queries, from submission to results on the host, and batches.

use std::sync::Arc;
use std::time::Instant;

use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_engine::search::device::DeviceLimits;
use tandem_engine::search::gpu::{GpuExecutor, GpuMemory, Pruning, UploadReport};
use tandem_engine::search::{Answers, ExecError, Execution, Executor, Hit, Request};
use tandem_model::base::quantile::{Times, median};
use tandem_model::traffic::Mode;

use super::{REPEATS, Row};
use crate::defaults;
use crate::failure::Failure;

/// Number of results of a query.
const K: usize = 10;
/// Number of queries before the first measurement: clocks rise, and caches fill.
const WARM_UP: usize = 200;
/// Size of the first batch.
const FIRST_BATCH: usize = 64;
/// Queries of a batch where less is passed over, batches of them, and what is to be reached where nothing is.
const UNPRUNED_BATCH: usize = 1024;
const UNPRUNED_REPEATS: usize = 3;
const UNPRUNED_QPS: (f64, f64) = (28_000.0, 34_000.0);
/// Sizes of batches; targets are for the last size.
const BATCHES: [usize; 7] = [1, 4, 16, 64, 256, 1024, 4096];

/// Targets of a mode: microseconds for one query and for batches of 16 and 64, and queries per second in the largest
/// batches.
struct Target {
    mode: Mode,
    one_us: (f64, f64),
    batch_us: [(usize, (f64, f64)); 2],
    batch_qps: (f64, f64),
}

const TARGETS: [Target; 2] = [
    Target {
        mode: Mode::Or,
        one_us: (22.0, 21.0),
        batch_us: [(16, (75.0, 60.0)), (64, (160.0, 140.0))],
        batch_qps: (800_000.0, 1_000_000.0),
    },
    Target {
        mode: Mode::And,
        one_us: (20.0, 19.0),
        batch_us: [(16, (65.0, 55.0)), (64, (120.0, 100.0))],
        batch_qps: (1_200_000.0, 1_400_000.0),
    },
];

/// Adds the rows of both modes.
pub(super) fn measure(
    limits: &DeviceLimits,
    index: &Arc<Index>,
    memory: Option<&GpuMemory>,
    queries: &[Query],
    rounds: usize,
    rows: &mut Vec<Row>,
) -> Result<(), Failure> {
    let mut gpu = defaults::gpu_executor(index, index.built_with(), memory)?;
    rows.extend(upload_rows(limits, gpu.upload_report()));
    first_batch(&mut gpu, queries, rows)?;
    for target in TARGETS {
        one_by_one(&mut gpu, limits, queries, rounds, &target, rows)?;
        batches(&mut gpu, queries, &target, rows)?;
        unpruned(&mut gpu, queries, target.mode, rows)?;
    }
    topk_share(&mut gpu, queries, rows)?;
    tiles(&mut gpu, queries, rows)
}

/// Adds the time of the first batch after the start, and of the same batch later.
fn first_batch(gpu: &mut GpuExecutor, queries: &[Query], rows: &mut Vec<Row>) -> Result<(), Failure> {
    let batch = requests(queries.iter().take(FIRST_BATCH), Mode::Or);
    let mut answers = Answers::default();
    let mut times_us = Vec::new();
    for _ in 0..=REPEATS {
        times_us.push(timed(|| gpu.search_batch(&batch, &mut answers))?.0);
    }
    let first_us = times_us.remove(0);
    let what = format!("or top {K}, the first batch of {} after start", batch.len());
    rows.push(Row::new(&what, "us", first_us));
    rows.push(Row::new(format!("{what}: times a warm one"), "x", first_us / median(times_us)).with_target(2.0, 1.2));
    Ok(())
}

/// Adds the times of queries that go through all lists by tiles, alone and in a batch, if the log has any.
fn tiles(gpu: &mut GpuExecutor, queries: &[Query], rows: &mut Vec<Row>) -> Result<(), Failure> {
    let batch = requests(queries.iter().filter(|query| gpu.goes_by_tiles(query, Mode::Or, K)), Mode::Or);
    if batch.is_empty() {
        return Ok(());
    }
    let (mut hits, mut answers) = (Vec::new(), Answers::default());
    let (mut alone_us, mut together_us) = (Vec::new(), Vec::new());
    for run in 0..=REPEATS {
        let mut search =
            |request: &Request<'_>| gpu.search(request.query, request.mode, request.k, &mut hits).map(drop);
        let (alone, ()) = timed(|| batch.iter().try_for_each(&mut search))?;
        let (together, _) = timed(|| gpu.search_batch(&batch, &mut answers))?;
        if run > 0 {
            alone_us.push(alone);
            together_us.push(together);
        }
    }
    let each = 1.0 / batch.len() as f64;
    let (alone_us, together_us) = (median(alone_us) * each, median(together_us) * each);
    let what = format!("or top {K}, {} queries that go by tiles", batch.len());
    rows.push(Row::new(format!("{what}: each alone"), "us", alone_us));
    rows.push(Row::new(format!("{what}: each in a batch"), "us", together_us));
    rows.push(Row::new(format!("{what}: faster in a batch"), "x", alone_us / together_us).with_target(2.0, 4.0));
    Ok(())
}

/// Adds the device memory of the index, and the rate of its upload.
fn upload_rows(limits: &DeviceLimits, report: UploadReport) -> [Row; 3] {
    let rate = report.copied_bytes as f64 / report.seconds;
    [
        Row::new("device memory of the index", "GB", report.device_bytes as f64 / 1e9),
        Row::new("upload of the index", "s", report.seconds),
        Row::new("upload of the index, copied", "GB/s", rate / 1e9)
            .of(rate / limits.host_copy_rate(), "host to device, page-locked"),
    ]
}

/// Adds the share of a union's device time between the last score and the sorted results.
fn topk_share(gpu: &mut GpuExecutor, queries: &[Query], rows: &mut Vec<Row>) -> Result<(), Failure> {
    let mut hits = Vec::new();
    let (mut topk_us, mut device_us) = (0.0, 0.0);
    for query in queries {
        device_us += gpu.search(query, Mode::Or, K, &mut hits)?.device_us.unwrap_or(0.0);
        topk_us += gpu.topk_us();
    }
    let what = format!("or top {K}: top-k's share of the device's time, one query");
    rows.push(Row::new(what, "%", 100.0 * topk_us / device_us).with_target(15.0, 5.0));
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
            let (took_us, execution) = timed(|| gpu.search(query, mode, K, &mut hits))?;
            host_us[number].push(took_us);
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

/// Measures batches of several sizes. Each batch has other queries of the log.
fn batches(
    gpu: &mut GpuExecutor,
    queries: &[Query],
    Target { mode, batch_us, batch_qps, .. }: &Target,
    rows: &mut Vec<Row>,
) -> Result<(), Failure> {
    let mode = *mode;
    check(gpu, queries, mode)?;
    let mut answers = Answers::default();
    let mut start = 0;
    for size in BATCHES {
        let mut sums = Sums::default();
        // Small batches are repeated more often, so that all queries of the log are measured.
        let repeats = REPEATS.max((queries.len() / size).min(200));
        for run in 0..=repeats {
            let batch = requests(queries.iter().cycle().skip(start).take(size), mode);
            start = (start + size) % queries.len();
            let (took_us, execution) = timed(|| gpu.search_batch(&batch, &mut answers))?;
            if run > 0 {
                sums.add(took_us, execution, gpu.postings_scored(), &batch);
            }
        }
        // Batches have different queries in each run. Their mean is the time of a batch in a stream.
        let batches = repeats as f64;
        let what = format!("{} top {K}, batches of {size}", mode.name());
        let row = Row::new(format!("{what}: submission to host"), "us", sums.took_us / batches);
        let target = batch_us.iter().find(|(of_size, _)| *of_size == size).map(|(_, target)| *target);
        rows.push(Row { target, ..row });
        let row = Row::new(&what, "queries/s", (size * repeats) as f64 / sums.took_us * 1e6);
        rows.push(Row { target: (size == BATCHES[BATCHES.len() - 1]).then_some(*batch_qps), ..row });
        if size > 1 {
            rows.push(Row::new(format!("{what}: on the device"), "us", sums.device_us / batches));
            rows.push(Row::new(format!("{what}: on the host"), "us", sums.host_us / batches));
            let share = 100.0 * sums.scored / sums.postings;
            rows.push(Row::new(format!("{what}: of the lists' postings scored"), "%", share));
        }
        rows.push(Row::new(format!("{what}: of the lists"), "G postings/s", sums.postings / sums.took_us / 1e3));
    }
    Ok(())
}

/// Adds the times of batches with less pruning: without seeds, without bounds, and without both. Unpruned unions go through all
/// lists by tiles of documents. Unpruned intersections look up every document of the shortest list.
fn unpruned(gpu: &mut GpuExecutor, queries: &[Query], mode: Mode, rows: &mut Vec<Row>) -> Result<(), Failure> {
    let mut answers = Answers::default();
    let batch = requests(queries.iter().cycle().take(UNPRUNED_BATCH), mode);
    let settings = [
        ("as it is", Pruning::default()),
        ("seeds off", Pruning { seeds: false, bounds: true }),
        ("bounds off", Pruning { seeds: true, bounds: false }),
        ("both off", Pruning { seeds: false, bounds: false }),
    ];
    let mut expected = None;
    for (name, pruning) in settings {
        gpu.set_pruning(pruning);
        let mut sums = Sums::default();
        for run in 0..=UNPRUNED_REPEATS {
            let (took_us, execution) = timed(|| gpu.search_batch(&batch, &mut answers))?;
            if run > 0 {
                let by_tiles = batch.iter().filter(|request| gpu.goes_by_tiles(request.query, mode, K));
                let tiled: u64 = by_tiles.map(|request| postings(request.query)).sum();
                sums.add(took_us, execution, gpu.postings_scored() + tiled, &batch);
            }
        }
        if *expected.get_or_insert_with(|| answers.clone()) != answers {
            return Err(Failure::failed(format!("{mode} finds other documents with {name}; this is a bug")));
        }
        let what = format!("{} top {K}, batches of {UNPRUNED_BATCH}, {name}", mode.name());
        let row = Row::new(&what, "queries/s", (UNPRUNED_BATCH * UNPRUNED_REPEATS) as f64 / sums.took_us * 1e6);
        let is_target = mode == Mode::Or && pruning == Pruning { seeds: false, bounds: false };
        rows.push(Row { target: is_target.then_some(UNPRUNED_QPS), ..row });
        rows.push(Row::new(format!("{what}: postings scored"), "G postings/s", sums.scored / sums.took_us / 1e3));
        rows.push(Row::new(format!("{what}: postings named"), "G postings/s", sums.postings / sums.took_us / 1e3));
        rows.push(Row::new(format!("{what}: of those named, scored"), "%", 100.0 * sums.scored / sums.postings));
    }
    gpu.set_pruning(Pruning::default());
    Ok(())
}

/// These queries in a mode, as a batch.
fn requests<'q>(queries: impl Iterator<Item = &'q Query>, mode: Mode) -> Vec<Request<'q>> {
    queries.map(|query| Request { query, mode, k: K }).collect()
}

/// Microseconds that `run` takes, and its result.
fn timed<T>(run: impl FnOnce() -> Result<T, ExecError>) -> Result<(f64, T), Failure> {
    let began = Instant::now();
    let result = run()?;
    Ok((began.elapsed().as_secs_f64() * 1e6, result))
}

/// Postings in a query's lists.
fn postings(query: &Query) -> u64 {
    query.terms.iter().map(|term| u64::from(term.doc_freq)).sum()
}

/// The time of some batches together, and their content.
#[derive(Default)]
struct Sums {
    took_us: f64,
    device_us: f64,
    host_us: f64,
    scored: f64,
    postings: f64,
}

impl Sums {
    fn add(&mut self, took_us: f64, execution: Execution, scored: u64, batch: &[Request<'_>]) {
        self.took_us += took_us;
        self.device_us += execution.device_us.unwrap_or(0.0);
        self.host_us += execution.host_us.unwrap_or(0.0);
        self.scored += scored as f64;
        let terms = batch.iter().flat_map(|request| &request.query.terms);
        self.postings += terms.map(|term| f64::from(term.doc_freq)).sum::<f64>();
    }
}

/// Checks that a batch finds what its queries find alone.
fn check(gpu: &mut GpuExecutor, queries: &[Query], mode: Mode) -> Result<(), Failure> {
    let mut together = Answers::default();
    gpu.search_batch(&requests(queries.iter(), mode), &mut together)?;
    let mut alone: Vec<Hit> = Vec::new();
    for (query, together) in queries.iter().zip(together.iter()).take(WARM_UP) {
        gpu.search(query, mode, K, &mut alone)?;
        if together != alone {
            let label = &query.label;
            return Err(Failure::failed(format!("query {label} finds other documents in a batch; this is a bug")));
        }
    }
    Ok(())
}
