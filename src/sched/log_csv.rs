//! The run log's file, `log.csv`.
//!
//! Times are in microseconds with three decimals: every nanosecond survives the round trip. `predicted_*_us` is empty
//! for a kind that the machine lacks.

use std::io::{self, Write};
use std::path::Path;

use super::{LogRow, RunLog};
use crate::files::{Cells, CsvLines, InputError, Provenance, open_text, write_atomically};
use crate::ids::{JobId, ProcessorId, QueryId};
use crate::machine::{Class, PerClass};
use crate::time::Nanos;

/// The columns, in the order in which they are written; readers accept any order.
const COLUMNS: [&str; 13] = [
    "query_id",
    "arrival_us",
    "started_us",
    "finished_us",
    "processor",
    "batch",
    "deadline_us",
    "predicted_cpu_us",
    "predicted_gpu_us",
    "job",
    "kind",
    "released_us",
    "stolen",
];

/// A last column that live runs have: whether the row's processor was `real` or a `replay` of recorded times. What
/// happened is told by the other columns, so readers pass over it.
const LANE: &str = "lane";

/// [`COLUMNS`], then [`LANE`]: all that a file may have.
const KNOWN: [&str; COLUMNS.len() + 1] = {
    let mut known = [LANE; COLUMNS.len() + 1];
    known.split_at_mut(COLUMNS.len()).0.copy_from_slice(&COLUMNS);
    known
};

impl RunLog {
    /// Writes `log.csv`, whole or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path, provenance: &Provenance) -> io::Result<()> {
        write_atomically(path, |out| {
            provenance.write_to(out)?;
            writeln!(out, "{}", COLUMNS.join(","))?;
            self.rows.iter().try_for_each(|row| writeln!(out, "{}", Line(row)))
        })
    }

    /// Writes the `log.csv` of a live run: with a last column that says for each row what its processor was.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write_with_lanes(
        &self,
        path: &Path,
        provenance: &Provenance,
        lane: impl Fn(&LogRow) -> &'static str,
    ) -> io::Result<()> {
        write_atomically(path, |out| {
            provenance.write_to(out)?;
            writeln!(out, "{},{LANE}", COLUMNS.join(","))?;
            self.rows.iter().try_for_each(|row| writeln!(out, "{},{}", Line(row), lane(row)))
        })
    }

    /// Reads a `log.csv` (also `.gz` or `.zst`) with its comment lines.
    ///
    /// # Errors
    /// With line and column: missing, repeated or unknown columns, and values that are not what the column holds.
    pub fn read(path: &Path) -> Result<(Self, Provenance), InputError> {
        let mut provenance = Provenance::default();
        let mut lines = CsvLines::new(path, open_text(path)?);
        let Some(cells) = lines.next(&mut provenance)? else {
            return Err(InputError::file(path, "is empty, expected a run log with a header line"));
        };
        let header = Header::parse(&cells)?;
        let mut rows = Vec::new();
        while let Some(cells) = lines.next(&mut provenance)? {
            cells.expect_values(header.fields)?;
            rows.push(read_row(&Fields { cells: &cells, positions: &header.positions })?);
        }
        Ok((Self { rows }, provenance))
    }
}

/// Prints a row as the fields of [`COLUMNS`].
struct Line<'a>(&'a LogRow);

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let row = self.0;
        write!(
            f,
            "{},{},{},{},{},{},{},{},{},{},{},{},{}",
            row.query,
            Us(row.arrival),
            Us(row.started),
            Us(row.finished),
            row.processor,
            row.batch,
            Us(row.deadline),
            Us(row.predicted[Class::CPU]),
            Us(row.predicted[Class::GPU]),
            row.job,
            row.class,
            Us(row.released),
            u8::from(row.stolen),
        )
    }
}

/// Prints a time as microseconds with three decimals, [`Nanos::MAX`] as nothing.
pub(super) struct Us(pub(super) Nanos);

impl std::fmt::Display for Us {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0 == Nanos::MAX {
            return Ok(());
        }
        write!(f, "{}.{:03}", self.0.0 / 1000, self.0.0 % 1000)
    }
}

/// Reads microseconds with at most three decimals, exactly.
pub(super) fn parse_us(text: &str) -> Option<Nanos> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.len() > 3 || !(whole.bytes().chain(decimals.bytes()).all(|b| b.is_ascii_digit())) {
        return None;
    }
    let thousandths: u64 = format!("{decimals:0<3}").parse().ok()?;
    Some(Nanos(whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(thousandths)?))
}

/// Which field of a line holds which column.
struct Header {
    fields: usize,
    /// For each of [`COLUMNS`].
    positions: Vec<usize>,
}

impl Header {
    fn parse(cells: &Cells<'_>) -> Result<Self, InputError> {
        let positions = cells.positions(&KNOWN)?;
        let missing: Vec<&str> = COLUMNS
            .into_iter()
            .zip(positions)
            .filter(|(_, position)| position.is_none())
            .map(|(name, _)| name)
            .collect();
        if !missing.is_empty() {
            return Err(cells.lacks(missing));
        }
        Ok(Self {
            fields: cells.num_values(),
            positions: positions.into_iter().take(COLUMNS.len()).flatten().collect(),
        })
    }
}

/// One line's values, by column.
struct Fields<'a> {
    cells: &'a Cells<'a>,
    positions: &'a [usize],
}

impl Fields<'_> {
    fn text(&self, column: usize) -> &str {
        self.cells.value(self.positions[column])
    }

    fn get<T>(&self, column: usize, expected: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, InputError> {
        let text = self.text(column);
        let fault = || format!("`{}` is \"{text}\", expected {expected}", COLUMNS[column]);
        parse(text).ok_or_else(|| self.cells.error_at(self.positions[column], fault()))
    }

    fn number(&self, column: usize) -> Result<u32, InputError> {
        self.get(column, "a whole number", |text| text.parse().ok())
    }

    fn time(&self, column: usize) -> Result<Nanos, InputError> {
        self.get(column, "microseconds with at most three decimals", parse_us)
    }

    fn time_or_none(&self, column: usize) -> Result<Nanos, InputError> {
        if self.text(column).is_empty() { Ok(Nanos::MAX) } else { self.time(column) }
    }
}

fn read_row(fields: &Fields<'_>) -> Result<LogRow, InputError> {
    Ok(LogRow {
        query: QueryId(fields.number(0)?),
        arrival: fields.time(1)?,
        started: fields.time(2)?,
        finished: fields.time(3)?,
        processor: ProcessorId(fields.number(4)?),
        batch: fields.number(5)?,
        deadline: fields.time_or_none(6)?,
        predicted: {
            let mut predicted = PerClass::from_fn(|_| Nanos::MAX);
            predicted[Class::CPU] = fields.time_or_none(7)?;
            predicted[Class::GPU] = fields.time_or_none(8)?;
            predicted
        },
        job: JobId(fields.number(9)?),
        class: fields.get(10, "the class of a processor", Class::from_name)?,
        released: fields.time(11)?,
        stolen: fields.get(12, "0 or 1", |text| ["0", "1"].iter().position(|&known| known == text))? == 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(job: u32) -> LogRow {
        LogRow {
            job: JobId(job),
            query: QueryId(7),
            arrival: Nanos(1_000_001),
            released: Nanos(1_000_002),
            started: Nanos(1_000_999),
            finished: Nanos(u64::MAX - 1),
            processor: ProcessorId(1),
            class: Class::GPU,
            batch: 3,
            deadline: Nanos(5),
            predicted: PerClass::from_fn(|class| if class == Class::GPU { Nanos(12) } else { Nanos::MAX }),
            stolen: job == 1,
        }
    }

    #[test]
    fn every_nanosecond_survives_the_round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.csv");
        let log = RunLog { rows: vec![row(0), row(1)] };
        log.write(&path, &Provenance::new().with("seed", 7)).unwrap();
        let (read, provenance) = RunLog::read(&path).unwrap();
        assert_eq!(read, log);
        assert_eq!(provenance.get("seed"), Some("7"));
    }

    #[test]
    fn the_log_of_a_live_run_reads_like_any_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.csv");
        let log = RunLog { rows: vec![row(0)] };
        log.write_with_lanes(&path, &Provenance::new(), |_| "replay").unwrap();
        assert!(std::fs::read_to_string(&path).unwrap().ends_with(",replay\n"));
        assert_eq!(RunLog::read(&path).unwrap().0, log);
    }

    #[test]
    fn faults_are_reported_with_line_and_column() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.csv");
        let header = COLUMNS.join(",");
        let cases = [
            (String::new(), "log.csv: is empty"),
            (String::from("query_id,arrival_us\n"), "log.csv:1:1: the header lacks `started_us`, `finished_us`"),
            (String::from("query_id,wat\n"), "log.csv:1:10: unknown column `wat`"),
            (String::from("job,job\n"), "log.csv:1:5: column `job` is given twice"),
            (format!("{header}\n1,2\n"), "log.csv:2: 2 values, expected 13 as in the header"),
            (format!("{header}\n1,-2,3,4,0,0,5,6,7,0,cpu,2,0\n"), "log.csv:2:3: `arrival_us` is \"-2\""),
            (format!("{header}\n1,NaN,3,4,0,0,5,6,7,0,cpu,2,0\n"), "log.csv:2:3: `arrival_us` is \"NaN\""),
            (format!("{header}\n1,2.0001,3,4,0,0,5,6,7,0,cpu,2,0\n"), "at most three decimals"),
            (
                format!("{header}\n1,2,3,4,0,0,5,6,7,0,tpu,2,0\n"),
                "`kind` is \"tpu\", expected the class of a processor",
            ),
        ];
        for (text, expected) in cases {
            std::fs::write(&path, text).unwrap();
            let message = RunLog::read(&path).unwrap_err().to_string();
            assert!(message.contains(expected), "{message:?} should contain {expected:?}");
        }
    }
}
