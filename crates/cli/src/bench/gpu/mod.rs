//! The GPU against its own limits: one table of what was to be reached, what was, and what share of the limit that is.
//!
//! Kernels are timed by device events, single queries from their submission to their results on the host; what counts
//! is the median of many runs. Inputs are many times larger than the GPU's caches, or rotate: a log's queries follow
//! each other. The limits (copy rate, launch latency) are measured in the same run.

mod published;
mod queries;

use super::{Arguments, Measurement, input};
use crate::Failure;
use tandem_core::base::ids::DeviceId;
use tandem_core::search::device::DeviceLimits;
use tandem_report::table::Table;

/// Runs that a median is of.
const REPEATS: usize = 15;

/// A line of the table.
#[derive(Debug)]
struct Row {
    what: String,
    unit: &'static str,
    value: f64,
    /// What it should be at least (for times: at most), and what we aim at.
    target: Option<(f64, f64)>,
    /// Its share of what the limit would allow, and which limit.
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

/// The share of the copy rate that moving `bytes` in `us` makes.
fn share_of_copy_rate(limits: &DeviceLimits, bytes: usize, us: f64) -> f64 {
    bytes as f64 / us * 1e6 / limits.copy_rate
}

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    // First of all, so that a machine without a GPU says so at once.
    let limits = DeviceLimits::measure(DeviceId(0), REPEATS)?;
    let (index, queries) = input(arguments)?;
    let mut rows = limit_rows(&limits);
    published::measure(&limits, &index, &queries, &mut rows)?;
    queries::measure(&limits, &index, &queries, arguments.rounds as usize, &mut rows)?;

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

/// What queries cost, alone: quick enough to be run under a profiler.
pub(super) fn measure_queries(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let limits = DeviceLimits::measure(DeviceId(0), REPEATS)?;
    let (index, queries) = input(arguments)?;
    let mut rows = limit_rows(&limits);
    queries::measure(&limits, &index, &queries, arguments.rounds as usize, &mut rows)?;
    Ok((format!("{}\n", table(&rows)), measurements(rows)))
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
