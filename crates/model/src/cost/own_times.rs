//! Service times that another program measured, in any table with a header.
//!
//! ```text
//! Host;Took (ms);Status              query_id,cpu_us,predicted_us              elapsed,count
//! a1;12;200                          0,812.5,790                               5,1200
//! ```
//!
//! Columns are recognised by their names, and the unit of a time by the end of its column's name. Other columns are ignored.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use serde::Deserialize;

use super::workload::{FOUND, MOST_US, Measured, WorkloadRow};
use crate::base::ids::QueryId;
use crate::base::machine::{Class, PerClass};
use crate::files::{CsvReader, InputError, Names, Provenance, Record, Row, TimeUnit};
use crate::traffic::{Features, Mode};

/// Most rows that a column of counts is expanded to.
const MOST_ROWS: u64 = 200_000;

const COLUMNS: &Names = &[
    ("query_id", "queryid qid id"),
    ("mode", "mode"),
    (
        "cpu_us",
        "cpu cputime servicetime service took qtime querytime executiontime exectime processingtime duration elapsed elapsedtime \
         runtime timetaken latency responsetime requesttime",
    ),
    ("gpu_us", "gpu gputime"),
    ("predicted_us", "predicted"),
    ("count", "count"),
];

/// The cells whose form does not depend on the file.
#[derive(Debug, Deserialize)]
struct OwnTimes {
    mode: Option<Mode>,
    count: Option<u64>,
}

impl Record for OwnTimes {}

/// Reads the comment lines and all rows. If columns are not named as in this program's files, a comment line describes them.
/// Fails with line and column: no column of service times, values that are no times, repeated values of `query_id`.
pub(super) fn read(path: &Path, reader: impl BufRead) -> Result<(Provenance, Vec<WorkloadRow>), InputError> {
    let mut lines = CsvReader::<OwnTimes, _>::recognised(path, reader, COLUMNS)?;
    if lines.has_header() && !["cpu_us", "gpu_us"].iter().any(|time| lines.named(time).is_some()) {
        return Err(lines.error(format!(
            "no service times in {}: a file of your own needs one column of them, such as cpu_us, took or latency_ms",
            lines.columns()
        )));
    }
    let mut found: Vec<String> = lines.skipped().into_iter().collect();
    let [cpu, gpu, predicted] = ["cpu_us", "gpu_us", "predicted_us"].map(|field| {
        let (name, unit) = lines.named(field)?;
        match unit {
            None => found.push(format!("`{name}` in milliseconds, as its name has no unit")),
            Some(unit) if name != field => found.push(format!("`{name}` in {}", unit.name())),
            Some(_) => {}
        }
        Some(Times { field, unit: unit.unwrap_or(TimeUnit::Millis), is_foreign: name != field })
    });
    let is_own_id = lines.named("query_id").is_some_and(|(name, _)| name == "query_id");
    let measured = |median_us| Measured { median_us, spread_us: 0.0, device_us: None };
    let (mut rows, mut counts, mut ids) = (Vec::new(), Vec::new(), Some(HashMap::new()));
    while let Some(line) = lines.next_row()? {
        let id = line.text("query_id").parse().ok();
        if let (Some(known), Some(id)) = (&mut ids, id)
            && let Some(first) = known.insert(id, line.line())
            && is_own_id
        {
            return Err(line.error_at("query_id", format!("`query_id` {id} was given in line {first} already")));
        }
        ids = ids.filter(|known| known.len() == rows.len() + 1);
        let row = WorkloadRow {
            query_id: QueryId(id.unwrap_or(rows.len() as u32)),
            log_id: 0,
            mode: line.value.mode.unwrap_or(Mode::Or),
            features: Features { expected_matches: f64::NAN, ..Features::default() },
            index_features: None,
            measured: PerClass::two(time_us(&line, cpu)?.map(measured), time_us(&line, gpu)?.map(measured)),
            predicted_us: time_us(&line, predicted)?,
            results: 0,
        };
        if row.measured.iter().all(|(_, time)| time.is_none()) {
            return Err(line.error_at("cpu_us", format!("query {} has no service time", row.query_id)));
        }
        rows.push(row);
        counts.push(line.value.count.unwrap_or(1));
    }
    found.extend(zeros_raised(&mut rows));
    if let Some((name, _)) = lines.named("count") {
        found.push(format!("`{name}` is the number of such queries{}", repeat(&mut rows, counts)));
        ids = None;
    }
    if ids.is_none() {
        found.extend(lines.named("query_id").map(|(name, _)| format!("rows are numbered in place of `{name}`")));
        (0..).zip(&mut rows).for_each(|(number, row)| row.query_id = QueryId(number));
    }
    rows.iter_mut().for_each(|row| row.log_id = row.query_id.0);
    let provenance = lines.into_provenance();
    Ok((if found.is_empty() { provenance } else { provenance.with(FOUND, found.join("; ")) }, rows))
}

/// A column of times.
#[derive(Clone, Copy)]
struct Times {
    field: &'static str,
    unit: TimeUnit,
    /// Whether it is not named as in this program's files. Clocks of other programs are often coarse, so that 0 is allowed.
    is_foreign: bool,
}

fn time_us(line: &Row<'_, OwnTimes>, times: Option<Times>) -> Result<Option<f64>, InputError> {
    let Some(Times { field, unit, is_foreign }) = times.filter(|times| !line.text(times.field).is_empty()) else {
        return Ok(None);
    };
    let us = line.text(field).parse::<f64>().ok().map(|number| number * unit.us());
    match us.filter(|us| us.is_finite() && (*us > 0.0 || is_foreign && *us == 0.0)) {
        Some(us) if us <= MOST_US => Ok(Some(us)),
        Some(_) => Err(line.unexpected(field, &format!("{}, at most an hour", unit.name()))),
        None => Err(line.unexpected(field, &format!("{} above 0", unit.name()))),
    }
}

/// Replaces times of 0 by half of the least time above 0; says how many.
fn zeros_raised(rows: &mut [WorkloadRow]) -> Option<String> {
    let times = rows.iter().flat_map(|row| row.measured.iter()).filter_map(|(_, time)| Some((*time)?.median_us));
    let half = times.filter(|&us| us > 0.0).min_by(f64::total_cmp)? / 2.0;
    let mut zeros = 0;
    for class in [Class::CPU, Class::GPU] {
        for time in rows.iter_mut().filter_map(|row| row.measured[class].as_mut()).filter(|time| time.median_us == 0.0)
        {
            (time.median_us, zeros) = (half, zeros + 1);
        }
    }
    (zeros > 0).then(|| format!("{zeros} times of 0 count as {half} us, half of the least other"))
}

/// Repeats rows as often as their counts say, or in proportion if there are too many; says so then.
fn repeat(rows: &mut Vec<WorkloadRow>, counts: Vec<u64>) -> String {
    let all: f64 = counts.iter().map(|&count| count as f64).sum();
    let share = (MOST_ROWS as f64 / all).min(1.0);
    let times = |count: u64| if count == 0 { 0 } else { (count as f64 * share).round().max(1.0) as usize };
    *rows = std::mem::take(rows)
        .into_iter()
        .zip(counts)
        .flat_map(|(row, count)| std::iter::repeat_n(row, times(count)))
        .collect();
    if share < 1.0 { format!(", in proportion for {} rows", rows.len()) } else { String::new() }
}
