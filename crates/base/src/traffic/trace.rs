//! Trace files: the times and queries of arrivals.
//!
//! ```text
//! # tandem: 0.1.0
//! # seed: 1
//! arrival_us,query_id
//! 812.004,17
//! 1203.900,3
//! ```
//!
//! Times count from the start of the run, ascending, to the nanosecond. Columns may stand in any order. An optional column
//! `priority` names the [priority](super::Priorities) of each query.

use std::io::{self, BufRead};
use std::path::Path;

use super::arrival_csv::{Arrival, ArrivalUs, MOST_S, read_trace};
use super::{ArrivalProcess, Stretch, draw_queries, unit_arrivals};
use crate::base::ids::QueryId;
use crate::base::time::Nanos;
use crate::files::{InputError, Provenance, open_text, write_csv};

/// Arrivals of queries, with their provenance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The comment lines of its file.
    pub provenance: Provenance,
    /// The time and query of each arrival; ascending, equal times allowed.
    pub rows: Vec<(Nanos, QueryId)>,
    /// The name of each query's priority; empty if the trace has none.
    pub priorities: Vec<String>,
}

impl Trace {
    /// Draws `n` arrivals at `rate_qps` of queries chosen uniformly from `queries`.
    ///
    /// A simulation of this process, rate and seed plays equal arrivals. Panics if `queries` is empty, or the rate not
    /// finite and above 0.
    pub fn draw(queries: &[QueryId], process: &ArrivalProcess, rate_qps: f64, seed: u64, n: usize) -> Self {
        let unit = unit_arrivals(process, seed, n);
        let chosen = draw_queries(seed, n, queries.len());
        let mut stretch = Stretch::of(process, seed, rate_qps);
        let rows = unit.iter().zip(chosen).map(|(&at, row)| (stretch.time(at), queries[row as usize])).collect();
        Self { rows, ..Self::default() }
    }

    /// Reads a trace file (`.csv`, also `.gz` or `.zst`). Fails with line and column: missing or unknown columns, times
    /// that are negative, not numbers or go backwards, query ids that are not whole numbers; or no rows at all.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        Self::parse(path, open_text(path)?)
    }

    /// Reads a trace file of known queries: `refuse` returns an error message for any other query. Fails as
    /// [`Trace::read`]; also, with line and column, the first arrival of a refused query.
    pub fn read_checked(path: &Path, refuse: impl Fn(QueryId) -> Option<String>) -> Result<Self, InputError> {
        Self::parse_checked(path, open_text(path)?, refuse)
    }

    /// Reads a trace from any source, called `name` in errors. Fails as [`Trace::read`].
    pub fn parse(name: impl AsRef<Path>, reader: impl BufRead) -> Result<Self, InputError> {
        Self::parse_checked(name.as_ref(), reader, |_| None)
    }

    fn parse_checked(
        path: &Path,
        reader: impl BufRead,
        refuse: impl Fn(QueryId) -> Option<String>,
    ) -> Result<Self, InputError> {
        let (provenance, (rows, priorities)) = read_trace(path, reader, refuse)?;
        Ok(Self { provenance, rows, priorities })
    }

    /// Writes a trace file atomically. Reading it gives an equal trace. Fails with those of the file system, and
    /// arrivals later than [`read`](Self::read) takes.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some((last, _)) = self.rows.last().filter(|(last, _)| last.as_secs() > MOST_S) {
            let message =
                format!("its last query arrives after {:.3e} s, expected at most {MOST_S:e} s", last.as_secs());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let line = |(i, &(arrival, query_id)): (usize, &(Nanos, QueryId))| Arrival {
            arrival_us: ArrivalUs(arrival),
            query_id,
            priority: self.priorities.get(i).cloned(),
        };
        write_csv(path, &self.provenance, self.rows.iter().enumerate().map(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Trace::parse("x.trace.csv", text.as_bytes()).expect_err(text).to_string()
    }

    #[test]
    fn a_written_trace_reads_back_unchanged() {
        let queries = [QueryId(4), QueryId(9), QueryId(2)];
        let mut trace = Trace::draw(&queries, &ArrivalProcess::Poisson, 1234.5, 3, 500);
        trace.provenance = Provenance::new().with("seed", 3);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.trace.csv");
        trace.write(&path).unwrap();
        assert_eq!(Trace::read(&path).unwrap(), trace);
        // A double cannot represent times this long to the nanosecond.
        trace.rows.extend([1 << 54, (1 << 62) + 1].map(|time| (Nanos(time), QueryId(2))));
        trace.write(&path).unwrap();
        assert_eq!(Trace::read(&path).unwrap(), trace);
        trace.priorities = (0..trace.rows.len()).map(|i| ["a", "b"][i % 2].to_owned()).collect();
        trace.write(&path).unwrap();
        assert_eq!(Trace::read(&path).unwrap(), trace);
        trace.rows.push((Nanos(9_000_000_001_000_000_000), QueryId(2)));
        assert!(trace.write(&path).unwrap_err().to_string().contains("9.000e9 s, expected at most 9e9 s"));
    }

    #[test]
    fn columns_may_stand_in_any_order() {
        let trace = Trace::parse("x", "# seed: 5\nquery_id, arrival_us\n7, 1.5\n8, 1.5\r\n".as_bytes()).unwrap();
        assert_eq!(trace.rows, [(Nanos(1500), QueryId(7)), (Nanos(1500), QueryId(8))]);
        assert_eq!(trace.provenance.get("seed"), Some("5"));
    }

    #[test]
    fn refusals_name_the_place() {
        let head = "arrival_us,query_id\n";
        for (text, expected) in [
            (String::new(), "x.trace.csv: holds no arrivals"),
            (head.into(), "x.trace.csv: holds no arrivals"),
            ("arrival_us\n1\n".into(), "x.trace.csv:1:1: the header lacks `query_id`"),
            ("query_id\n1\n".into(), "x.trace.csv:1:1: the header lacks `arrival_us`"),
            ("arrival_us,query_id,mood\n1,2,3".into(), "x.trace.csv:1:21: unknown column `mood`"),
            ("query_id,arrival_us,query_id\n1,2,3".into(), "x.trace.csv:1:21: column `query_id` is given twice"),
            (format!("{head}12e,3"), "x.trace.csv:2:1: `arrival_us` is \"12e\", expected a number"),
            (format!("{head}NaN,3"), "x.trace.csv:2:1: `arrival_us` is \"NaN\""),
            (format!("{head}-1,3"), "x.trace.csv:2:1: `arrival_us` is \"-1\""),
            (format!("{head}1e300,3"), "x.trace.csv:2:1: `arrival_us` is \"1e300\""),
            (format!("{head}1, -3"), "x.trace.csv:2:4: `query_id` is \"-3\""),
            (
                "arrival_us,query_id,priority\n1,2,".into(),
                "x.trace.csv:2:5: `priority` is \"\", expected the name of a priority",
            ),
            (format!("{head}1"), "x.trace.csv:2: 1 values, expected 2"),
            (
                format!("{head}1203900,1\n1203400,2"),
                "x.trace.csv:3:1: arrivals go backwards: 1203400 us after 1203900 us (sort by arrival_us)",
            ),
        ] {
            let message = refusal(&text);
            assert!(message.starts_with(expected), "{message:?} for {text:?}");
        }
        let invalid = Trace::parse("x", &b"arrival_us,query_id\n\xff,1\n"[..]).unwrap_err();
        assert_eq!(invalid.line, Some(2));
    }
}
