//! Reading CSV files that have a column of arrival times: our own traces, and recordings from elsewhere.
//!
//! The time is in `arrival_us` (microseconds) or `arrival_s` (seconds), one of them, ascending from the start of the
//! recording; both are kept to the nanosecond.

use std::io::BufRead;
use std::path::Path;

use crate::files::{Cells, CsvLines, InputError, Provenance};
use crate::ids::QueryId;
use crate::time::Nanos;

/// What a file is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// As a trace: `arrival_us` and `query_id`, nothing else.
    Trace,
    /// For its arrivals only: other columns are passed over.
    Arrivals,
}

/// One line's arrival, and its query where the file was read as a trace.
pub(super) struct Row {
    pub(super) line: u64,
    pub(super) arrival: Nanos,
    pub(super) query_id: Option<QueryId>,
}

/// Which field holds what.
struct Header {
    fields: usize,
    arrival: usize,
    in_seconds: bool,
    query_id: Option<usize>,
}

/// Reads the comment lines and all rows; at least one, and none earlier than the one before.
///
/// `refuse` says of a query what is wrong with it, if anything is.
pub(super) fn read_rows(
    path: &Path,
    reader: impl BufRead,
    purpose: Purpose,
    refuse: impl Fn(QueryId) -> Option<String>,
) -> Result<(Provenance, Vec<Row>), InputError> {
    let mut provenance = Provenance::default();
    let mut lines = CsvLines::new(path, reader);
    let mut rows: Vec<Row> = Vec::new();
    if let Some(cells) = lines.next(&mut provenance)? {
        let header = Header::parse(&cells, purpose)?;
        let mut previous = String::new();
        while let Some(cells) = lines.next(&mut provenance)? {
            let row = header.row(&cells, &refuse)?;
            let time = cells.value(header.arrival);
            if rows.last().is_some_and(|last| row.arrival < last.arrival) {
                let (name, unit) = header.time_column();
                let message = format!("arrivals go backwards: {time} {unit} after {previous} {unit} (sort by {name})");
                return Err(cells.error_at(header.arrival, message));
            }
            previous.clear();
            previous.push_str(time);
            rows.push(row);
        }
    }
    if rows.is_empty() {
        return Err(InputError::file(path, "holds no arrivals, expected a header and at least one row"));
    }
    Ok((provenance, rows))
}

impl Header {
    fn parse(cells: &Cells<'_>, purpose: Purpose) -> Result<Self, InputError> {
        let header = |arrival, in_seconds, query_id| Self { fields: cells.num_values(), arrival, in_seconds, query_id };
        match purpose {
            Purpose::Trace => match cells.positions(&["arrival_us", "query_id"])? {
                [Some(arrival), Some(query_id)] => Ok(header(arrival, false, Some(query_id))),
                [None, _] => Err(cells.lacks(["arrival_us"])),
                [_, None] => Err(cells.lacks(["query_id"])),
            },
            Purpose::Arrivals => match cells.positions_among_others(&["arrival_us", "arrival_s"])? {
                [Some(us), None] => Ok(header(us, false, None)),
                [None, Some(seconds)] => Ok(header(seconds, true, None)),
                [Some(_), Some(seconds)] => {
                    let message = "both `arrival_us` and `arrival_s` are given, expected one of them";
                    Err(cells.error_at(seconds, message))
                }
                [None, None] => Err(cells.error_at(0, "the header lacks `arrival_us` or `arrival_s`")),
            },
        }
    }

    /// The name and unit of the time column.
    fn time_column(&self) -> (&'static str, &'static str) {
        if self.in_seconds { ("arrival_s", "s") } else { ("arrival_us", "us") }
    }

    fn row(&self, cells: &Cells<'_>, refuse: impl Fn(QueryId) -> Option<String>) -> Result<Row, InputError> {
        cells.expect_values(self.fields)?;
        let text = cells.value(self.arrival);
        let (name, unit) = self.time_column();
        // Beyond 2^53 ns (104 days) a double no longer tells nanoseconds apart, and a time is a mistake.
        let most = if self.in_seconds { 9.0e6 } else { 9.0e12 };
        let time: f64 = text.parse().unwrap_or(f64::NAN);
        if !(0.0..=most).contains(&time) {
            let message = format!("`{name}` is \"{text}\", expected a number from 0 to {most:e} ({unit})");
            return Err(cells.error_at(self.arrival, message));
        }
        let arrival = if self.in_seconds { Nanos::from_secs(time) } else { Nanos::from_us(time) };
        let query_id = match self.query_id {
            None => None,
            Some(field) => {
                let text = cells.value(field);
                let message = || format!("`query_id` is \"{text}\", expected a whole number from 0");
                let query_id = QueryId(text.parse().map_err(|_| cells.error_at(field, message()))?);
                if let Some(message) = refuse(query_id) {
                    return Err(cells.error_at(field, message));
                }
                Some(query_id)
            }
        };
        Ok(Row { line: cells.line(), arrival, query_id })
    }
}
