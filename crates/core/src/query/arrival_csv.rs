//! Reading CSV files with a column of arrival times: our own traces, and recordings from elsewhere.
//!
//! Times ascend from the start of the recording, either in `arrival_us` (microseconds) or in `arrival_s` (seconds); both
//! are kept to the nanosecond.

use std::io::BufRead;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::base::ids::QueryId;
use crate::base::time::Nanos;
use crate::files::{CsvReader, InputError, Provenance, Record, Row, Us, parsed};

/// The latest arrival: half of the range of simulated time, so that queries can be served afterwards.
pub(super) const MOST_S: f64 = 9.0e9;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Arrival {
    pub(super) arrival_us: ArrivalUs,
    pub(super) query_id: QueryId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<String>,
}

impl Record for Arrival {
    const OPTIONAL: &'static [&'static str] = &["priority"];
}

/// The rows of a trace, and the priority of each if the trace has any.
pub(super) type TraceRows = (Vec<(Nanos, QueryId)>, Vec<String>);

/// A line of a recording from elsewhere, with one of the two columns.
#[derive(Debug, Deserialize)]
struct Recorded {
    arrival_us: Option<ArrivalUs>,
    arrival_s: Option<ArrivalS>,
}

impl Record for Recorded {
    const OPTIONAL: &'static [&'static str] = &["arrival_us", "arrival_s"];
}

/// A time of arrival in microseconds: any number, to the nanosecond.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalUs(pub(super) Nanos);

#[derive(Clone, Copy, Debug)]
struct ArrivalS(Nanos);

impl Serialize for ArrivalUs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Us(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ArrivalUs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let time = |text: &str| exact(text, 3).or_else(|| number(text, MOST_S * 1e6).map(Nanos::from_us));
        parsed(deserializer, "a number from 0 to 9e15 (us)", time).map(Self)
    }
}

impl<'de> Deserialize<'de> for ArrivalS {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let time = |text: &str| exact(text, 9).or_else(|| number(text, MOST_S).map(Nanos::from_secs));
        parsed(deserializer, "a number from 0 to 9e9 (s)", time).map(Self)
    }
}

/// Reads digits with at most `decimals` more after the point, exactly; a double keeps nanoseconds for 104 days only.
fn exact(text: &str, decimals: usize) -> Option<Nanos> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > decimals || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let nanos = Nanos(format!("{whole}{fraction:0<decimals$}").parse().ok()?);
    (nanos.as_secs() <= MOST_S).then_some(nanos)
}

fn number(text: &str, most: f64) -> Option<f64> {
    text.parse().ok().filter(|number| (0.0..=most).contains(number))
}

/// Reads the comment lines and all rows of a trace: at least one row, in ascending order.
///
/// `refuse` returns an error message for a query that is not allowed.
pub(super) fn read_trace(
    path: &Path,
    reader: impl BufRead,
    refuse: impl Fn(QueryId) -> Option<String>,
) -> Result<(Provenance, TraceRows), InputError> {
    let mut lines = CsvReader::<Arrival, _>::new(path, reader)?;
    let mut order = Order::default();
    let has_priorities = lines.column("priority");
    let (mut rows, mut priorities) = (Vec::new(), Vec::new());
    while let Some(row) = lines.next_row()? {
        let Arrival { arrival_us: ArrivalUs(arrival), query_id, ref priority } = row.value;
        if let Some(message) = refuse(query_id) {
            return Err(row.error_at("query_id", message));
        }
        order.check(&row, "arrival_us", "us", arrival)?;
        rows.push((arrival, query_id));
        if has_priorities {
            let name = priority.clone().ok_or_else(|| row.unexpected("priority", "the name of a priority"))?;
            priorities.push(name);
        }
    }
    if rows.is_empty() { Err(no_arrivals(path)) } else { Ok((lines.into_provenance(), (rows, priorities))) }
}

/// Reads the arrivals of any file that has them, each with its line; other columns are ignored.
pub(super) fn read_arrivals(path: &Path, reader: impl BufRead) -> Result<Vec<(u64, Nanos)>, InputError> {
    let mut lines = CsvReader::<Recorded, _>::among_others(path, reader)?;
    if !lines.has_header() {
        return Err(no_arrivals(path));
    }
    let (name, unit) = match (lines.column("arrival_us"), lines.column("arrival_s")) {
        (true, false) => ("arrival_us", "us"),
        (false, true) => ("arrival_s", "s"),
        (true, true) => return Err(lines.error("both `arrival_us` and `arrival_s` are given, expected one of them")),
        (false, false) => return Err(lines.error("the header lacks `arrival_us` or `arrival_s`")),
    };
    let mut order = Order::default();
    let mut rows = Vec::new();
    while let Some(row) = lines.next_row()? {
        let time = row.value.arrival_us.map(|us| us.0).or(row.value.arrival_s.map(|s| s.0));
        let arrival = time.ok_or_else(|| row.unexpected(name, "a time"))?;
        order.check(&row, name, unit, arrival)?;
        rows.push((row.line(), arrival));
    }
    if rows.is_empty() { Err(no_arrivals(path)) } else { Ok(rows) }
}

fn no_arrivals(path: &Path) -> InputError {
    InputError::file(path, "holds no arrivals, expected a header and at least one row")
}

#[derive(Default)]
struct Order {
    last: Nanos,
    /// Its time as written.
    text: String,
}

impl Order {
    /// Refuses an arrival that is earlier than the one before.
    fn check<T>(&mut self, row: &Row<'_, T>, name: &str, unit: &str, arrival: Nanos) -> Result<(), InputError> {
        let (time, previous) = (row.text(name), &self.text);
        if arrival < self.last {
            let message = format!("arrivals go backwards: {time} {unit} after {previous} {unit} (sort by {name})");
            return Err(row.error_at(name, message));
        }
        self.last = arrival;
        self.text.clear();
        self.text.push_str(time);
        Ok(())
    }
}
