//! What rates are left where a part of the index lies in the host's memory: measured under several budgets, and predicted from
//! the two ends, all lists near and all far.
//!
//! Every answer under a budget is compared with the one that the index whole in GPU memory gives. What lies near is learned from
//! queries that are not measured.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::queries::K;
use super::{Measurement, online};
use crate::cache::Reads;
use crate::cli::bench::{Arguments, input, learned_from};
use crate::cli::defaults::{self, Bars};
use crate::cli::output::result_file;
use crate::cli::{Failure, interrupts};
use crate::cost::batches::BatchOptions;
use crate::cost::{BatchLoad, MachineModel, MemoryBudget, ProfileOptions, Workload, profile};
use crate::exec::gpu::{GpuExecutor, GpuMemory};
use crate::exec::{Answers, Executor, Request};
use crate::files::{Digits, Provenance, Record, write_csv};
use crate::gpu::free_device_bytes;
use crate::ids::DeviceId;
use crate::index::Index;
use crate::lab::measure_far;
use crate::machine::{Class, Machine};
use crate::query::{Mode, Query};
use crate::report::plot::{LineChart, Point, Series, Stroke};
use crate::report::table::Table;

const MODES: [Mode; 2] = [Mode::Or, Mode::And];
/// Queries of a batch.
const SIZES: [usize; 4] = [1, 16, 256, 4096];
/// Batches of a size are repeated for so long, and so often at most.
const TIME: Duration = Duration::from_millis(200);
const REPEATS: usize = 5000;
/// The largest batches are those that a rate is told of.
const LARGEST: usize = SIZES[SIZES.len() - 1];

/// A line of `gpu-budgets.csv`.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct BudgetRow {
    mode: String,
    /// GPU memory for the index, and what of it is used.
    budget_mb: Digits<9>,
    gpu_mb: Digits<9>,
    /// What lies in the host's memory.
    host_mb: Digits<9>,
    /// Of the reads of all queries, those that are far.
    far_share: Digits<4>,
    /// Queries of a batch,
    batch: usize,
    /// their rate with all of the index in GPU memory, measured in turns with
    resident_qps: Digits<6>,
    /// the rate under the budget, measured,
    measured_qps: Digits<6>,
    /// and predicted from the two ends.
    predicted_qps: Digits<6>,
}

impl Record for BudgetRow {}

pub(in crate::cli::bench) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    // First of all, so that a machine without a GPU says so at once.
    free_device_bytes(DeviceId(0))?;
    let (index, mut queries) = input(arguments)?;
    let log = learned_from(arguments, &index, &mut queries)?;
    interrupts::catch();
    let mut resident = defaults::gpu_executor(&index, index.built_with(), None)?;
    let staying_bytes = resident.upload_report().staying_bytes;
    let memory = GpuMemory::new(staying_bytes, &index, &log);
    let mut workload = both_ends(&index, &queries, &resident, &memory)?;
    let Some(tiers) = workload.tiers.clone() else { return Err(Failure::failed("nothing was measured far")) };

    let mut rows = Vec::new();
    let mut notes = String::new();
    let least = MemoryBudget::Bytes(staying_bytes);
    for &budget in arguments.gpu_memory.iter().chain([&least]) {
        let under = match workload.clone().under(budget) {
            Ok(under) => under,
            Err(e) => {
                let _ = writeln!(notes, "{:.1} MB: {e}", tiers.bytes(budget) as f64 / 1e6);
                continue;
            }
        };
        let memory = memory.with_bytes(tiers.bytes(budget));
        let mut tiered = defaults::gpu_executor(&index, index.built_with(), Some(&memory))?;
        for mode in MODES {
            compare(&mut resident, &mut tiered, &queries, mode)?;
            for size in SIZES {
                rows.push(row(&mut resident, &mut tiered, &queries, mode, size, &under, tiers.bytes(budget))?);
            }
        }
    }
    let mut followed = Vec::new();
    for &budget in &arguments.gpu_memory {
        let memory = memory.with_bytes(tiers.bytes(budget));
        let (epoch, bytes) = (arguments.gpu_memory_epoch, tiers.bytes(budget));
        followed.extend(online::measure(&index, &queries, &memory, epoch, bytes, &mut notes)?);
    }
    let provenance = Provenance::new()
        .with_command_and_machine()
        .with("gpu", resident.device())
        .with("docs", index.num_docs())
        .with("queries", format!("{} measured, {} others learned from", queries.len(), log.len()));
    workload.provenance = provenance.clone().with("k", K).with("index", format!("{:016x}", index.fingerprint()));
    write(arguments, &provenance, &rows, &followed, &workload)?;
    draw(&rows, &arguments.out, &resident.device())?;
    let text = format!(
        "{}; {} queries measured, {} others tell what lies near; {:.1} of {:.1} MB stay in GPU memory\n{}{notes}\n\
         what lies near follows the queries, in epochs of {}, or stays as learned before; batches of {LARGEST}\n{}",
        resident.device(),
        queries.len(),
        log.len(),
        tiers.staying_bytes as f64 / 1e6,
        tiers.all_bytes() as f64 / 1e6,
        table(&rows),
        arguments.gpu_memory_epoch,
        online::table(&followed)
    );
    Ok((text, measurements(&rows)))
}

/// What queries cost with all lists near, and with all far.
fn both_ends(
    index: &Arc<Index>,
    queries: &[Query],
    resident: &GpuExecutor,
    memory: &GpuMemory,
) -> Result<Workload, Failure> {
    let options = ProfileOptions {
        modes: MODES.to_vec(),
        k: K,
        repeats: 3,
        batches: Some(BatchOptions::default()),
        ..ProfileOptions::default()
    };
    let mut one: [Box<dyn Executor>; 1] = [Box::new(resident.for_another_stream()?)];
    let mut workload = profile(&mut one, queries, index, &options, &mut |_| ())?;
    drop(one);
    let few = ProfileOptions { repeats: 1, ..options };
    let staying_bytes = resident.upload_report().staying_bytes;
    measure_far(index, queries, memory, staying_bytes, &mut workload, &few, &Bars::default())?;
    Ok(workload)
}

/// Writes the two tables, and the workload that predictions are made of.
fn write(
    arguments: &Arguments,
    provenance: &Provenance,
    rows: &[BudgetRow],
    followed: &[online::OnlineRow],
    workload: &Workload,
) -> Result<(), Failure> {
    let csv = arguments.out.join("gpu-budgets.csv");
    let tiers = serde_json::to_string(&workload.tiers).unwrap_or_default();
    write_csv(&csv, &provenance.clone().with("tiers", tiers), rows.iter().cloned())?;
    workload.write(&arguments.out.join("gpu-budgets.workload.csv.zst"))?;
    result_file("gpu-budgets", &csv);
    let csv = arguments.out.join("gpu-budgets-online.csv");
    let epoch = provenance.clone().with("epoch", arguments.gpu_memory_epoch);
    write_csv(&csv, &epoch, followed.iter().cloned())?;
    result_file("gpu-budgets-online", &csv);
    Ok(())
}

/// An error if any query has another answer under a budget.
fn compare(resident: &mut GpuExecutor, tiered: &mut GpuExecutor, queries: &[Query], mode: Mode) -> Result<(), Failure> {
    let (mut expected, mut found) = (Answers::default(), Answers::default());
    for queries in queries.chunks(LARGEST) {
        let batch: Vec<Request<'_>> = queries.iter().map(|query| Request { query, mode, k: K }).collect();
        resident.search_batch(&batch, &mut expected)?;
        tiered.search_batch(&batch, &mut found)?;
        if let Some((query, _)) = queries.iter().zip(expected.iter().zip(found.iter())).find(|(_, (a, b))| a != b) {
            let message = format!("query {}, {mode}: other documents under a budget; this is a bug", query.label);
            return Err(Failure::failed(message));
        }
    }
    Ok(())
}

/// Batches of one size, the two executors in turns.
fn row(
    resident: &mut GpuExecutor,
    tiered: &mut GpuExecutor,
    queries: &[Query],
    mode: Mode,
    size: usize,
    under: &Workload,
    budget_bytes: u64,
) -> Result<BudgetRow, Failure> {
    let model = MachineModel { batches: under.batches.batch_costs(), ..Machine::new(0, 1).into() };
    // Rows of a mode are in the order of the queries.
    let costs: Vec<_> = under.only(mode).costs().into_iter().map(|costs| costs[Class::GPU]).collect();
    let mut answers = Answers::default();
    let (mut resident_us, mut tiered_us, mut predicted_us) = (0.0, 0.0, 0.0);
    let (mut start, mut asked, began) = (0, 0, Instant::now());
    for run in 0..=REPEATS {
        let places: Vec<usize> = (start..start + size).map(|place| place % queries.len()).collect();
        let batch: Vec<Request<'_>> =
            places.iter().map(|&place| Request { query: &queries[place], mode, k: K }).collect();
        start = (start + size) % queries.len();
        let mut took_us = |executor: &mut GpuExecutor| {
            let began = Instant::now();
            executor.search_batch(&batch, &mut answers)?;
            Ok::<_, Failure>(began.elapsed().as_secs_f64() * 1e6)
        };
        let took = (took_us(resident)?, took_us(tiered)?);
        // The first batch of a size warms up, unless it takes so long that warmth is nothing to it.
        if run == 0 && began.elapsed() < TIME {
            continue;
        }
        resident_us += took.0;
        tiered_us += took.1;
        let load = places.iter().fold(BatchLoad::default(), |load, &place| load.with(costs[place]));
        predicted_us += model.batch_time(Class::GPU, &load).total().as_us();
        asked += size;
        if began.elapsed() > TIME {
            break;
        }
    }
    let mut reads = Reads::default();
    for far in under.rows.iter().filter(|row| row.mode == mode).filter_map(|row| row.far.as_ref()) {
        let all = far.bus_us.unwrap_or_default();
        reads += Reads { far: all * under.far_share(&far.curve), all };
    }
    let report = tiered.upload_report();
    let qps = |us: f64| Digits(asked as f64 / us * 1e6);
    Ok(BudgetRow {
        mode: mode.to_string(),
        budget_mb: Digits(budget_bytes as f64 / 1e6),
        gpu_mb: Digits(report.device_bytes as f64 / 1e6),
        host_mb: Digits(report.far_bytes as f64 / 1e6),
        far_share: Digits(reads.far_share()),
        batch: size,
        resident_qps: qps(resident_us),
        measured_qps: qps(tiered_us),
        predicted_qps: qps(predicted_us),
    })
}

fn table(rows: &[BudgetRow]) -> Table {
    let mut table = Table::new([
        "mode",
        "GPU MB",
        "host MB",
        "far reads",
        "batch",
        "resident q/s",
        "q/s",
        "of it",
        "predicted",
        "error",
    ])
    .with_keys(1);
    for row in rows {
        let (resident, measured, predicted) = (row.resident_qps.0, row.measured_qps.0, row.predicted_qps.0);
        table.row([
            row.mode.clone(),
            format!("{:.1}", row.gpu_mb.0),
            format!("{:.1}", row.host_mb.0),
            format!("{:.2} %", 100.0 * row.far_share.0),
            row.batch.to_string(),
            format!("{resident:.0}"),
            format!("{measured:.0}"),
            format!("{:.1} %", 100.0 * measured / resident),
            format!("{predicted:.0}"),
            format!("{:+.1} %", 100.0 * (predicted / measured - 1.0)),
        ]);
    }
    table
}

/// Rates of the largest batches over the budget.
fn draw(rows: &[BudgetRow], out: &Path, device: &str) -> Result<(), Failure> {
    let line = |(colour, mode): (usize, Mode), name: &str, stroke, qps: fn(&BudgetRow) -> f64| {
        let of_mode = rows.iter().filter(|row| row.mode == mode.name() && row.batch == LARGEST);
        let mut points: Vec<Point> =
            of_mode.map(|row| Point { x: row.budget_mb.0, y: qps(row), ..Point::default() }).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series { name: format!("{mode}, {name}"), points, stroke, colour: Some(colour) }
    };
    let lines = MODES.into_iter().enumerate().flat_map(|mode| {
        [
            line(mode, "measured", Stroke::Solid, |row| row.measured_qps.0),
            line(mode, "predicted", Stroke::Dashed, |row| row.predicted_qps.0),
        ]
    });
    let chart = LineChart {
        title: String::from("What is answered with a part of the index in the host's memory"),
        subtitle: format!("{device}, batches of {LARGEST}"),
        x_label: String::from("GPU memory for the index (MB)"),
        y_label: String::from("queries per second"),
        is_y_log: true,
        series: lines.collect(),
        note: Some(String::from("predicted from the two ends: all lists in GPU memory, and all in the host's")),
        ..LineChart::default()
    };
    Ok(chart.write(&out.join("gpu-budgets"))?)
}

fn measurements(rows: &[BudgetRow]) -> Vec<Measurement> {
    let of_row = |row: &BudgetRow| {
        let name = format!("{}, {:.1} MB, batches of {}", row.mode, row.budget_mb.0, row.batch);
        let values =
            [("measured", row.measured_qps), ("predicted", row.predicted_qps), ("all in GPU memory", row.resident_qps)];
        values.map(|(what, qps)| Measurement {
            part: "gpu-budgets",
            name: format!("{name}, {what}"),
            metric: "queries/s",
            value: qps.0,
        })
    };
    rows.iter().flat_map(of_row).collect()
}
