//! The run log's file, `log.csv`.
//!
//! Times are in microseconds with three decimals, so every nanosecond survives the round trip. `predicted_*_us` is empty for a
//! class that the machine lacks.
//!
//! | `outcome` | the query | the row |
//! | --- | --- | --- |
//! | `answered` | ran, and was answered | |
//! | `again` | ran twice: its lane failed, the lane's fallback executor answered | |
//! | `shed` | was dropped when its deadline could not be met any more | `finished_us`: when; `processor`: where it would have run; no `started_us`, no `batch` |

use std::io;
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{LogRow, RunLog, ShedJob};
use crate::base::ids::{JobId, ProcessorId, QueryId};
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::files::{CsvReader, InputError, Provenance, Record, Us, open_text, parsed, write_csv};

#[derive(Debug, Serialize, Deserialize)]
struct LogLine {
    query_id: QueryId,
    arrival_us: Us,
    started_us: Option<Us>,
    finished_us: Us,
    processor: ProcessorId,
    batch: Option<u32>,
    deadline_us: Option<Us>,
    predicted_cpu_us: Option<Us>,
    predicted_gpu_us: Option<Us>,
    job: JobId,
    #[serde(with = "class")]
    kind: Class,
    released_us: Us,
    #[serde(default)]
    stolen: Flag,
    #[serde(default)]
    outcome: Outcome,
    /// The importance of the query, 0 for the most important; the column is missing in runs without priorities.
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    /// The lanes that the query occupied at its end, and the time of those that helped; missing if each had one lane.
    #[serde(skip_serializing_if = "Option::is_none")]
    lanes: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    helped_us: Option<Us>,
    /// Whether the row's processor was `real` or a `replay` of recorded times, in live runs. Readers ignore it, since the
    /// other columns hold the outcome.
    #[serde(skip_serializing_if = "Option::is_none")]
    lane: Option<String>,
}

/// The optional columns that a log has.
#[derive(Clone, Copy)]
struct Optional {
    has_priorities: bool,
    shares_jobs: bool,
}

impl Record for LogLine {
    const OPTIONAL: &'static [&'static str] = &["stolen", "outcome", "priority", "lanes", "helped_us", "lane"];
}

impl LogLine {
    fn of(row: &LogRow, optional: Optional, lane: Option<&str>) -> Self {
        Self {
            query_id: row.query,
            arrival_us: Us(row.arrival),
            started_us: Some(Us(row.started)),
            finished_us: Us(row.finished),
            processor: row.processor,
            batch: Some(row.batch),
            deadline_us: some(row.deadline),
            predicted_cpu_us: some(row.predicted[Class::CPU]),
            predicted_gpu_us: some(row.predicted[Class::GPU]),
            job: row.job,
            kind: row.class,
            released_us: Us(row.released),
            stolen: Flag(row.stolen),
            outcome: if row.again { Outcome::Again } else { Outcome::Answered },
            priority: optional.has_priorities.then_some(row.priority),
            lanes: optional.shares_jobs.then_some(row.lanes),
            helped_us: optional.shares_jobs.then_some(Us(row.helped)),
            lane: lane.map(str::to_owned),
        }
    }

    fn of_shed(shed: &ShedJob, optional: Optional, lane: Option<&str>) -> Self {
        Self {
            query_id: shed.query,
            arrival_us: Us(shed.arrival),
            started_us: None,
            finished_us: Us(shed.dropped),
            processor: shed.processor,
            batch: None,
            deadline_us: some(shed.deadline),
            predicted_cpu_us: some(shed.predicted[Class::CPU]),
            predicted_gpu_us: some(shed.predicted[Class::GPU]),
            job: shed.job,
            kind: shed.class,
            released_us: Us(shed.released),
            stolen: Flag(false),
            outcome: Outcome::Shed,
            priority: optional.has_priorities.then_some(shed.priority),
            lanes: optional.shares_jobs.then_some(0),
            helped_us: optional.shares_jobs.then_some(Us(Nanos::ZERO)),
            lane: lane.map(str::to_owned),
        }
    }

    fn predicted(&self) -> PerClass<Nanos> {
        let mut predicted = PerClass::from_fn(|_| Nanos::MAX);
        predicted[Class::CPU] = or_never(self.predicted_cpu_us);
        predicted[Class::GPU] = or_never(self.predicted_gpu_us);
        predicted
    }

    /// The row of an answered job; `None` if a required value is missing.
    fn row(&self) -> Option<LogRow> {
        Some(LogRow {
            query: self.query_id,
            arrival: self.arrival_us.0,
            started: self.started_us?.0,
            finished: self.finished_us.0,
            processor: self.processor,
            batch: self.batch?,
            deadline: or_never(self.deadline_us),
            priority: self.priority.unwrap_or_default(),
            predicted: self.predicted(),
            job: self.job,
            class: self.kind,
            released: self.released_us.0,
            stolen: self.stolen.0,
            again: self.outcome == Outcome::Again,
            lanes: self.lanes.unwrap_or(1),
            helped: self.helped_us.map_or(Nanos::ZERO, |us| us.0),
        })
    }

    fn shed(&self) -> ShedJob {
        ShedJob {
            job: self.job,
            query: self.query_id,
            arrival: self.arrival_us.0,
            released: self.released_us.0,
            dropped: self.finished_us.0,
            processor: self.processor,
            class: self.kind,
            deadline: or_never(self.deadline_us),
            priority: self.priority.unwrap_or_default(),
            predicted: self.predicted(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Outcome {
    #[default]
    Answered,
    Again,
    Shed,
}

impl Outcome {
    const ALL: [(&'static str, Self); 3] = [("answered", Self::Answered), ("again", Self::Again), ("shed", Self::Shed)];
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = Self::ALL.iter().find(|(_, outcome)| outcome == self).map_or("", |(name, _)| name);
        serializer.serialize_str(name)
    }
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let outcome = |text: &str| Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, outcome)| *outcome);
        parsed(deserializer, "answered, again or shed", outcome)
    }
}

/// [`Nanos::MAX`] becomes an empty cell.
fn some(time: Nanos) -> Option<Us> {
    (time != Nanos::MAX).then_some(Us(time))
}

fn or_never(time: Option<Us>) -> Nanos {
    time.map_or(Nanos::MAX, |us| us.0)
}

/// `1` for true, an empty cell for false.
#[derive(Clone, Copy, Debug, Default)]
struct Flag(bool);

impl Serialize for Flag {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.0.into())
    }
}

impl<'de> Deserialize<'de> for Flag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let flag = |text: &str| ["0", "1"].iter().position(|&known| known == text);
        parsed(deserializer, "0 or 1", flag).map(|at| Self(at == 1))
    }
}

mod class {
    use super::*;

    pub(super) fn serialize<S: Serializer>(class: &Class, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(class.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Class, D::Error> {
        parsed(deserializer, "the class of a processor", Class::from_name)
    }
}

impl RunLog {
    /// Writes `log.csv` atomically. Fails as the file system does.
    pub fn write(&self, path: &Path, provenance: &Provenance) -> io::Result<()> {
        write_csv(path, provenance, self.lines(|_, _| None))
    }

    /// The lines of the file, in order of arrival; `lane` gives the kind of a row's processor.
    fn lines<'a>(
        &'a self,
        lane: impl Fn(ProcessorId, Class) -> Option<&'static str> + 'a,
    ) -> impl Iterator<Item = LogLine> + 'a {
        let (mut rows, mut shed) = (self.rows.iter().peekable(), self.shed.iter().peekable());
        let mut levels = self.rows.iter().map(|row| row.priority).chain(self.shed.iter().map(|shed| shed.priority));
        let has_priorities = levels.any(|level| level > 0);
        let optional = Optional { has_priorities, shares_jobs: self.rows.iter().any(|row| row.lanes > 1) };
        std::iter::from_fn(move || {
            let is_row = match (rows.peek(), shed.peek()) {
                (Some(row), Some(shed)) => row.job <= shed.job,
                (row, _) => row.is_some(),
            };
            if is_row {
                rows.next().map(|row| LogLine::of(row, optional, lane(row.processor, row.class)))
            } else {
                shed.next().map(|shed| LogLine::of_shed(shed, optional, lane(shed.processor, shed.class)))
            }
        })
    }

    /// Writes the `log.csv` of a live run, with a last column for the kind of each row's processor. Fails as the file
    /// system does.
    pub fn write_with_lanes(
        &self,
        path: &Path,
        provenance: &Provenance,
        lane: impl Fn(ProcessorId, Class) -> &'static str,
    ) -> io::Result<()> {
        write_csv(path, provenance, self.lines(|processor, class| Some(lane(processor, class))))
    }

    /// Reads a `log.csv` (also `.gz` or `.zst`) with its comment lines. Failed lanes are not in it, only the rows that were
    /// rerun. Fails with line and column: missing, repeated or unknown columns, and invalid values.
    pub fn read(path: &Path) -> Result<(Self, Provenance), InputError> {
        let mut lines = CsvReader::<LogLine, _>::new(path, open_text(path)?)?;
        if !lines.has_header() {
            return Err(InputError::file(path, "is empty, expected a run log with a header line"));
        }
        let mut log = Self::default();
        while let Some(line) = lines.next_row()? {
            if line.value.outcome == Outcome::Shed {
                log.shed.push(line.value.shed());
                continue;
            }
            let lacking = if line.value.started_us.is_none() { "started_us" } else { "batch" };
            let row = line.value.row().ok_or_else(|| line.error(format!("a job that ran without `{lacking}`")))?;
            log.rows.push(row);
        }
        Ok((log, lines.into_provenance()))
    }
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
            priority: (job / 3) as u8,
            predicted: PerClass::from_fn(|class| if class == Class::GPU { Nanos(12) } else { Nanos::MAX }),
            stolen: job == 3,
            again: job == 1,
            lanes: 1 + job,
            helped: Nanos(u64::from(job)),
        }
    }

    #[test]
    fn every_nanosecond_survives_the_round_trip() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.csv");
        let shed = |job: u32| ShedJob {
            job: JobId(job),
            query: QueryId(9),
            arrival: Nanos(5),
            released: Nanos(6),
            dropped: Nanos(9),
            processor: ProcessorId(0),
            class: Class::CPU,
            deadline: Nanos(8),
            priority: (job / 7) as u8,
            predicted: PerClass::from_fn(|class| if class == Class::CPU { Nanos(12) } else { Nanos::MAX }),
        };
        let log = RunLog { rows: vec![row(0), row(3)], shed: vec![shed(1), shed(7)], faults: Vec::new() };
        log.write(&path, &Provenance::new().with("seed", 7)).unwrap();
        let (read, provenance) = RunLog::read(&path).unwrap();
        assert_eq!(read, log);
        assert_eq!(provenance.get("seed"), Some("7"));
        // Rows of all outcomes are in order of arrival.
        let text = std::fs::read_to_string(&path).unwrap();
        let outcomes: Vec<&str> = text.lines().skip(3).filter_map(|line| line.rsplit(',').nth(3)).collect();
        assert_eq!(outcomes, ["answered", "shed", "answered", "shed"]);
    }

    #[test]
    fn the_log_of_a_live_run_reads_like_any_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.csv");
        let log = RunLog { rows: vec![row(0)], ..RunLog::default() };
        log.write_with_lanes(&path, &Provenance::new(), |_, _| "replay").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with(",replay\n") && !text.contains("priority"), "{text}");
        assert_eq!(RunLog::read(&path).unwrap().0, log);
    }

    #[test]
    fn faults_are_reported_with_line_and_column() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.csv");
        let header = "query_id,arrival_us,started_us,finished_us,processor,batch,deadline_us,predicted_cpu_us,\
                      predicted_gpu_us,job,kind,released_us,stolen";
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
            (format!("{header}\n1,2,,4,0,0,5,6,7,0,cpu,2,0\n"), "log.csv:2: a job that ran without `started_us`"),
            (
                format!("{header},outcome\n1,2,3,4,0,0,5,6,7,0,cpu,2,0,lost\n"),
                "`outcome` is \"lost\", expected answered, again or shed",
            ),
        ];
        for (text, expected) in cases {
            std::fs::write(&path, text).unwrap();
            let message = RunLog::read(&path).unwrap_err().to_string();
            assert!(message.contains(expected), "{message:?} should contain {expected:?}");
        }
    }
}
