//! Reading CSV files that have a column of arrival times: our own traces, and recordings from elsewhere.
//!
//! The time is in `arrival_us` (microseconds) or `arrival_s` (seconds), one of them, ascending from the start of the
//! recording; both are kept to the nanosecond.

use std::io::BufRead;
use std::path::Path;

use crate::files::{InputError, Provenance, read_line};
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
    pub(super) query_id: Option<u32>,
}

/// Which field holds what.
struct Header {
    fields: usize,
    arrival: usize,
    in_seconds: bool,
    query_id: Option<usize>,
}

/// Reads the comment lines and all rows; at least one, and none earlier than the one before.
pub(super) fn read_rows(
    path: &Path,
    mut reader: impl BufRead,
    purpose: Purpose,
) -> Result<(Provenance, Vec<Row>), InputError> {
    let mut provenance = Provenance::default();
    let mut header = None;
    let mut rows: Vec<Row> = Vec::new();
    let mut previous = String::new();
    let mut text = String::new();
    for line in 1.. {
        if !read_line(path, &mut reader, line, &mut text)? {
            break;
        }
        let line_text = text.trim_end_matches(['\n', '\r']);
        if line_text.starts_with('#') {
            provenance.parse_line(line_text);
            continue;
        }
        if line_text.trim().is_empty() {
            continue;
        }
        let cells = Cells::cut(path, line, line_text);
        let Some(header) = &header else {
            header = Some(Header::parse(&cells, purpose)?);
            continue;
        };
        let row = header.row(&cells)?;
        let (_, time) = cells.values[header.arrival];
        if rows.last().is_some_and(|last| row.arrival < last.arrival) {
            let (name, unit) = header.time_column();
            let message = format!("arrivals go backwards: {time} {unit} after {previous} {unit} (sort by {name})");
            return Err(cells.error(header.arrival, message));
        }
        previous.clear();
        previous.push_str(time);
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(InputError::file(path, "holds no arrivals, expected a header and at least one row"));
    }
    Ok((provenance, rows))
}

/// One line, cut at its commas; each value trimmed, with the byte at which it begins.
struct Cells<'a> {
    path: &'a Path,
    line: u64,
    text: &'a str,
    values: Vec<(usize, &'a str)>,
}

impl<'a> Cells<'a> {
    fn cut(path: &'a Path, line: u64, text: &'a str) -> Self {
        let mut begin = 0;
        let values = text
            .split(',')
            .map(|field| {
                let at = begin + (field.len() - field.trim_start().len());
                begin += field.len() + 1;
                (at, field.trim())
            })
            .collect();
        Self { path, line, text, values }
    }

    /// An error about value number `field`.
    fn error(&self, field: usize, message: impl Into<String>) -> InputError {
        let before = self.text.get(..self.values[field].0).unwrap_or_default();
        InputError::at(self.path, self.line, before.chars().count() as u64 + 1, message)
    }
}

impl Header {
    fn parse(cells: &Cells<'_>, purpose: Purpose) -> Result<Self, InputError> {
        let (mut arrival_us, mut arrival_s, mut query_id) = (None, None, None);
        for (field, &(_, name)) in cells.values.iter().enumerate() {
            let column = match (name, purpose) {
                ("arrival_us", _) => &mut arrival_us,
                ("arrival_s", Purpose::Arrivals) => &mut arrival_s,
                ("query_id", Purpose::Trace) => &mut query_id,
                (_, Purpose::Arrivals) => continue,
                (_, Purpose::Trace) => {
                    let message = format!("unknown column `{name}`, expected `arrival_us` and `query_id`");
                    return Err(cells.error(field, message));
                }
            };
            if column.replace(field).is_some() {
                return Err(cells.error(field, format!("column `{name}` is given twice")));
            }
        }
        let missing = |names: &str| cells.error(0, format!("the header lacks {names}"));
        let (arrival, in_seconds) = match (arrival_us, arrival_s, purpose) {
            (Some(_), Some(seconds), _) => {
                return Err(cells.error(seconds, "both `arrival_us` and `arrival_s` are given, expected one of them"));
            }
            (Some(us), None, _) => (us, false),
            (None, Some(seconds), _) => (seconds, true),
            (None, None, Purpose::Arrivals) => return Err(missing("`arrival_us` or `arrival_s`")),
            (None, None, Purpose::Trace) => return Err(missing("`arrival_us`")),
        };
        if purpose == Purpose::Trace && query_id.is_none() {
            return Err(missing("`query_id`"));
        }
        Ok(Self { fields: cells.values.len(), arrival, in_seconds, query_id })
    }

    /// The name and unit of the time column.
    fn time_column(&self) -> (&'static str, &'static str) {
        if self.in_seconds { ("arrival_s", "s") } else { ("arrival_us", "us") }
    }

    fn row(&self, cells: &Cells<'_>) -> Result<Row, InputError> {
        if cells.values.len() != self.fields {
            let message = format!("{} values, expected {} as in the header", cells.values.len(), self.fields);
            return Err(InputError::line(cells.path, cells.line, message));
        }
        let (_, text) = cells.values[self.arrival];
        let (name, unit) = self.time_column();
        // Beyond 2^53 ns (104 days) a double no longer tells nanoseconds apart, and a time is a mistake.
        let most = if self.in_seconds { 9.0e6 } else { 9.0e12 };
        let time: f64 = text.parse().unwrap_or(f64::NAN);
        if !(0.0..=most).contains(&time) {
            let message = format!("`{name}` is \"{text}\", expected a number from 0 to {most:e} ({unit})");
            return Err(cells.error(self.arrival, message));
        }
        let arrival = if self.in_seconds { Nanos::from_secs(time) } else { Nanos::from_us(time) };
        let query_id = match self.query_id {
            None => None,
            Some(field) => {
                let (_, text) = cells.values[field];
                let parsed = text.parse();
                Some(parsed.map_err(|_| {
                    cells.error(field, format!("`query_id` is \"{text}\", expected a whole number from 0"))
                })?)
            }
        };
        Ok(Row { line: cells.line, arrival, query_id })
    }
}
