//! Reading CSV files with a column of arrival times: our own traces, and recordings from elsewhere.
//!
//! Columns of recordings are recognised by their names. Times ascend. They are numbers in the unit that the name of the column
//! ends in, or since 1970 in a unit that their size shows, or dates and times of ISO 8601, and are kept to the nanosecond. With
//! a second column of counts or rates, each row is an interval:
//!
//! ```text
//! arrival_s        timestamp                      time;qps
//! 0.012            2026-11-28T09:00:00.120Z       1796200800;3011.4
//! 0.019            2026-11-28T09:00:00.127Z       1796200860;3204.9
//! ```

use std::io::BufRead;
use std::path::Path;

use chrono::{DateTime, NaiveDateTime};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::base::ids::QueryId;
use crate::base::time::Nanos;
use crate::files::{CsvReader, InputError, Names, Provenance, Record, Row, TimeUnit, Us, normal, parsed};

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

/// The cells of a recording from elsewhere whose form does not depend on the file.
#[derive(Debug, Deserialize)]
struct Recorded {
    count: Option<f64>,
}

impl Record for Recorded {}

const COLUMNS: &Names = &[
    ("arrival", "arrival arrivaltime timestamp time ts datetime date starttime start"),
    ("count", "qps rps rate count queries requests queriesper requestsper"),
];

/// Names of rates whose unit is a second although they do not say so.
const RATES: [&str; 3] = ["qps", "rps", "rate"];
/// The largest count of an interval.
const MOST_COUNT: f64 = 1e12;

/// The arrivals of a recording.
pub(super) enum Arrived {
    /// The line and the time of each.
    Times(Vec<(u64, Nanos)>),
    /// The rate in each interval, in queries per second, and the length of each interval in seconds.
    Rates(Vec<f64>, f64),
}

/// A time of arrival in microseconds: any number, to the nanosecond.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalUs(pub(super) Nanos);

impl Serialize for ArrivalUs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Us(self.0).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ArrivalUs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, "a number from 0 to 9e15 (us)", |text| MICROS.time(text)).map(Self)
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
        order.check(&row, ("arrival_us", "arrival_us"), "us", arrival)?;
        rows.push((arrival, query_id));
        if has_priorities {
            let name = priority.clone().ok_or_else(|| row.unexpected("priority", "the name of a priority"))?;
            priorities.push(name);
        }
    }
    if rows.is_empty() { Err(no_arrivals(path)) } else { Ok((lines.into_provenance(), (rows, priorities))) }
}

/// Reads the arrivals of any file that has them, and describes its columns unless they are named as in this program's files.
pub(super) fn read_arrivals(path: &Path, reader: impl BufRead) -> Result<(Arrived, Option<String>), InputError> {
    let mut lines = CsvReader::<Recorded, _>::recognised(path, reader, COLUMNS)?;
    if !lines.has_header() {
        return Err(no_arrivals(path));
    }
    let Some((name, unit)) = lines.named("arrival").map(|(name, unit)| (name.to_owned(), unit)) else {
        return Err(lines.error(format!(
            "no times in {}: recorded arrivals need a column of them, such as arrival_s or timestamp, and counts per interval \
             one more, such as qps or count",
            lines.columns()
        )));
    };
    let counts = lines.named("count").filter(|_| !name.starts_with("arrival_"));
    let counts = counts.map(|(name, per)| (name.to_owned(), per.is_some() || RATES.contains(&&*normal(name))));
    let (mut order, mut rows, mut rates) = (Order::default(), Vec::new(), Vec::new());
    let mut form = unit.map(Form::Number);
    while let Some(row) = lines.next_row()? {
        let text = row.text("arrival");
        let form = *form.get_or_insert_with(|| Form::of(text));
        let arrival = form.time(text).ok_or_else(|| row.unexpected("arrival", &form.expected()))?;
        order.check(&row, ("arrival", &name), unit.map_or("", TimeUnit::symbol), arrival)?;
        rows.push((row.line(), arrival));
        if counts.is_some() {
            let rate = row.value.count.filter(|count| (0.0..=MOST_COUNT).contains(count));
            rates.push(rate.ok_or_else(|| row.unexpected("count", "a number from 0 to 1e12"))?);
        }
    }
    let form = form.ok_or_else(|| no_arrivals(path))?;
    let mut found: Vec<String> = lines.skipped().into_iter().collect();
    found.extend(unit.is_none().then(|| format!("`{name}` holds {}", form.in_words())));
    let mut arrived = Arrived::Times(rows);
    if let (Some((count, is_rate)), Arrived::Times(rows)) = (counts, &arrived) {
        let seconds = interval_s(path, rows)?;
        let kind = if is_rate { "rates" } else { "counts" };
        found.push(format!("`{count}` holds {kind} in intervals of {seconds} s"));
        if !is_rate {
            rates.iter_mut().for_each(|count| *count /= seconds);
        }
        arrived = Arrived::Rates(rates, seconds);
    }
    Ok((arrived, Some(found.join("; ")).filter(|found| !found.is_empty())))
}

/// The length in seconds of the intervals that begin at these times, which must be equal.
fn interval_s(path: &Path, rows: &[(u64, Nanos)]) -> Result<f64, InputError> {
    let [(first_line, first), (_, second), ..] = *rows else {
        return Err(InputError::line(path, rows[0].0, "holds one interval, expected at least two: no length"));
    };
    let seconds = second.since(first).as_secs();
    let odd = rows.windows(2).find(|pair| (pair[1].1.since(pair[0].1).as_secs() / seconds - 1.0).abs() >= 0.01);
    match odd {
        _ if second == first => Err(InputError::line(path, first_line + 1, "begins when the interval before it does")),
        Some(pair) => {
            let message = format!(
                "begins {} s after the interval before it, expected {seconds} s as in the first lines (a missing interval needs a \
                 line, perhaps with 0)",
                pair[1].1.since(pair[0].1).as_secs()
            );
            Err(InputError::line(path, pair[1].0, message))
        }
        None => Ok(seconds),
    }
}

/// The notation of the times in a file.
#[derive(Clone, Copy)]
enum Form {
    Number(TimeUnit),
    Date,
}

const MICROS: Form = Form::Number(TimeUnit::Micros);

impl Form {
    /// The notation of this time, under a name without a unit. Numbers are seconds from a start, or units since 1970: until
    /// the year 2286, seconds have 10 digits, milliseconds 13, microseconds 16 and nanoseconds 19.
    fn of(text: &str) -> Self {
        match text.parse::<f64>() {
            Ok(number) if number < 1e11 => Self::Number(TimeUnit::Seconds),
            Ok(number) if number < 1e14 => Self::Number(TimeUnit::Millis),
            Ok(number) if number < 1e17 => Self::Number(TimeUnit::Micros),
            Ok(_) => Self::Number(TimeUnit::Nanos),
            Err(_) => Self::Date,
        }
    }

    fn time(self, text: &str) -> Option<Nanos> {
        let Self::Number(unit) = self else { return iso8601(text) };
        let rounded = || number(text, MOST_S * 1e6 / unit.us()).map(|number| Nanos::from_us(number * unit.us()));
        exact(text, unit.decimals()).or_else(rounded)
    }

    fn expected(self) -> String {
        match self {
            Self::Number(unit) => format!("a number from 0 to {:e} ({})", MOST_S * 1e6 / unit.us(), unit.symbol()),
            Self::Date => String::from("a date and time such as 2026-11-28T09:00:00Z"),
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Number(unit) => unit.name(),
            Self::Date => "dates and times",
        }
    }
}

/// Time since 1970 of `2026-11-28T09:00:00.5+01:00`. A blank may separate the date from the time; the zone is UTC if it is missing.
fn iso8601(text: &str) -> Option<Nanos> {
    let text = text.trim_end_matches(" UTC").replacen(' ', "T", 1);
    let local = |form| NaiveDateTime::parse_from_str(&text, form).ok().map(|time| time.and_utc().fixed_offset());
    let zoned = |form| DateTime::parse_from_str(&text, form).ok();
    let zoned = zoned("%Y-%m-%dT%H:%M:%S%.f%#z").or_else(|| zoned("%Y-%m-%dT%H:%M%#z"));
    let time = zoned.or_else(|| local("%Y-%m-%dT%H:%M:%S%.f")).or_else(|| local("%Y-%m-%dT%H:%M"))?;
    u64::try_from(time.timestamp_nanos_opt()?).ok().map(Nanos).filter(|at| at.as_secs() <= MOST_S)
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
    /// Refuses an arrival that is earlier than the one before, with the name of its column in the file.
    fn check<T>(
        &mut self,
        row: &Row<'_, T>,
        (field, name): (&str, &str),
        unit: &str,
        at: Nanos,
    ) -> Result<(), InputError> {
        let (time, previous) = (row.text(field), &self.text);
        if at < self.last {
            let with_unit = |time: &str| format!("{time} {unit}").trim_end().to_owned();
            let (time, previous) = (with_unit(time), with_unit(previous));
            return Err(row.error_at(field, format!("arrivals go backwards: {time} after {previous} (sort by {name})")));
        }
        self.last = at;
        self.text.clear();
        self.text.push_str(time);
        Ok(())
    }
}
