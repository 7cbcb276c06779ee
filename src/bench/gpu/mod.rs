//! The GPU compared with its limits, in one table: targets, measurements, and their share of the limit.
//!
//! Kernels are timed by device events, single queries from submission to results on the host. The median of many runs counts.
//! Inputs are many times larger than the GPU's caches, or change: the queries of a log follow each other. The limits (copy
//! rate, launch latency) are measured in the same run.

#[cfg(feature = "papers")]
mod published;
mod queries;

use std::sync::Arc;

use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_engine::search::device::DeviceLimits;
use tandem_engine::search::gpu::GpuMemory;
use tandem_model::base::ids::DeviceId;

use super::{Arguments, Measurement, input_and_others};
use crate::failure::Failure;
use tandem_report::table::Table;

/// Number of runs behind a median.
const REPEATS: usize = 15;

/// A line of the table.
#[derive(Debug)]
struct Row {
    what: String,
    unit: &'static str,
    value: f64,
    /// The target that must be met, and the one that we aim at. For times, targets are upper bounds.
    target: Option<(f64, f64)>,
    /// The share of the limit that is reached, and the name of the limit.
    of_limit: Option<(f64, &'static str)>,
}

impl Row {
    fn new(what: impl Into<String>, unit: &'static str, value: f64) -> Self {
        Self { what: what.into(), unit, value, target: None, of_limit: None }
    }

    fn with_target(self, at_least: f64, aim: f64) -> Self {
        Self { target: Some((at_least, aim)), ..self }
    }

    fn of(self, share: f64, limit: &'static str) -> Self {
        Self { of_limit: Some((share, limit)), ..self }
    }
}

/// The share of the copy rate at which `bytes` are moved in `us`.
#[cfg(feature = "papers")]
fn share_of_copy_rate(limits: &DeviceLimits, bytes: usize, us: f64) -> f64 {
    bytes as f64 / us * 1e6 / limits.copy_rate
}

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    // The device is opened first, so that a machine without a GPU fails at once.
    let limits = DeviceLimits::measure(DeviceId(0), REPEATS)?;
    let (index, [queries, others]) = input_and_others(arguments)?;
    let memory = memory(arguments, &index, &others)?;
    let mut rows = limit_rows(&limits);
    #[cfg(feature = "papers")]
    published::measure(&limits, &index, &queries, &mut rows)?;
    queries::measure(&limits, &index, memory.as_ref(), &queries, arguments.rounds as usize, &mut rows)?;

    let postings: u64 = queries.iter().flat_map(|query| &query.terms).map(|term| u64::from(term.doc_freq)).sum();
    let title = format!(
        "{}; {} queries of {} postings on average, {} documents",
        limits.device,
        queries.len(),
        postings / queries.len() as u64,
        index.num_docs()
    );
    let text = format!("{title}\n{}\n", table(&rows));
    Ok((text, measurements(rows)))
}

/// Only the times of queries: quick enough for a profiler.
pub(super) fn measure_queries(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let limits = DeviceLimits::measure(DeviceId(0), REPEATS)?;
    let (index, [queries, others]) = input_and_others(arguments)?;
    let memory = memory(arguments, &index, &others)?;
    let mut rows = limit_rows(&limits);
    queries::measure(&limits, &index, memory.as_ref(), &queries, arguments.rounds as usize, &mut rows)?;
    Ok((format!("{}\n", table(&rows)), measurements(rows)))
}

/// The budget of GPU memory, with reads that are learned from other queries than those that are measured.
fn memory(arguments: &Arguments, index: &Arc<Index>, others: &[Query]) -> Result<Option<GpuMemory>, Failure> {
    if others.is_empty() {
        let why = "all queries of the log are measured, and none is left to learn from which lists are read most: lower --limit";
        arguments.gpu_memory.refuse(why)?;
    }
    Ok(arguments.gpu_memory.learned(index, others))
}

fn measurements(rows: Vec<Row>) -> Vec<Measurement> {
    let measurements = rows.into_iter().flat_map(|row| {
        let share = row.of_limit.map(|(share, limit)| (format!("{}, share of {limit}", row.what), "share", share));
        let value = (row.what, row.unit, row.value);
        std::iter::once(value).chain(share).map(|(name, metric, value)| Measurement {
            part: "gpu",
            name,
            metric,
            value,
        })
    });
    measurements.collect()
}

fn limit_rows(limits: &DeviceLimits) -> Vec<Row> {
    let mut rows = vec![
        Row::new("device copy, read and written", "TB/s", limits.copy_rate / 1e12),
        Row::new("launch and wait", "us", limits.launch_and_wait_us),
        Row::new("launch after launch", "us", limits.launch_us),
        Row::new("host to device, page-locked", "GB/s", limits.host_copy_rate() / 1e9),
    ];
    let copies = limits.host_copies.iter();
    rows.extend(copies.map(|&(bytes, us)| Row::new(format!("host to device, {} KB", bytes / 1000), "us", us)));
    let pages = if limits.host_reads.has_large_pages { "large pages" } else { "small pages" };
    rows.extend(limits.host_reads.pieces.iter().map(|&(bytes, rate)| {
        Row::new(format!("scattered reads of the host's memory, {bytes} bytes, {pages}"), "M reads/s", rate / 1e6)
    }));
    rows
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(["what", "unit", "measured", "at least", "aim", "of its limit", "limit"]);
    let shown = |value: f64| match value {
        value if value >= 1000.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    };
    for row in rows {
        let [at_least, aim] =
            row.target.map_or([const { String::new() }; 2], |(at_least, aim)| [shown(at_least), shown(aim)]);
        let (share, limit) =
            row.of_limit.map_or((String::new(), ""), |(share, limit)| (format!("{:.0} %", 100.0 * share), limit));
        table.row([row.what.clone(), row.unit.to_owned(), shown(row.value), at_least, aim, share, limit.to_owned()]);
    }
    table.without_empty_columns()
}
