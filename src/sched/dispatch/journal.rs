//! What a dispatcher was told and when: enough to play its run again and to compare what the policy decides.
//!
//! A policy is a pure state machine, so that the same events at the same times must lead to the same decisions, whether
//! a clock of the machine's stood behind them or not. A live run keeps its journal beside its log; [`Journal::replay`]
//! tells the dispatcher all of it once more:
//!
//! ```text
//!   live run ──▶ log.csv       which batch each job was in, where and when
//!            └─▶ journal.csv   at_us, told: arrive · finish (processor) · wake · decide
//!                    │
//!   jobs, policy ────┴─▶ replay ──▶ a log: the same batches, or the first that differs
//! ```
//!
//! The file has times in microseconds with three decimals, so that every nanosecond survives the round trip.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::{Job, Policy, RunLog, ShedJob};
use super::{Dispatcher, LawBroken};
use crate::files::{CsvReader, InputError, Provenance, Record, Us, open_text, write_csv};
use crate::ids::{JobId, ProcessorId};
use crate::machine::Machine;
use crate::time::Nanos;

/// What a dispatcher was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The next job has arrived.
    Arrive,
    /// This processor has finished its oldest batch.
    Finish(ProcessorId),
    /// A wake-up has come.
    Wake,
    /// To decide.
    Decide,
}

/// All that a dispatcher was told in a run, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// When, and what.
    pub entries: Vec<(Nanos, Told)>,
}

/// How the decisions of a replay compare with those of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parity {
    /// Batches that the log has.
    pub batches: usize,
    /// Those of them that the replay started with the same jobs, on the same processor, at the same time.
    pub same: usize,
    /// In words, what differs first.
    pub difference: Option<String>,
}

/// A batch as a log tells of it: its jobs, each with where and when it started.
type Batch = Vec<(JobId, ProcessorId, Nanos)>;

impl Journal {
    /// Tells a dispatcher over `machine` all of this, with the run's jobs in order of arrival, and compares what `policy`
    /// starts with `log`.
    #[must_use]
    pub fn replay(&self, machine: &Machine, policy: Box<dyn Policy>, jobs: &[Job], log: &RunLog) -> Parity {
        let mut dispatcher = Dispatcher::new(machine, policy, jobs.len());
        let broken = self.tell(&mut dispatcher, jobs).err();
        let again = dispatcher.into_log();
        let (recorded, replayed) = (batches(log), batches(&again));
        let same = recorded.iter().filter(|(number, batch)| replayed.get(number) == Some(batch)).count();
        let first = recorded.iter().find(|(number, batch)| replayed.get(number) != Some(batch));
        let difference = first.map(|(number, recorded)| {
            let what = |batch: &Batch| match batch.first() {
                Some((job, processor, started)) => {
                    format!("{} jobs from {job} on processor {processor} at {} ns", batch.len(), started.0)
                }
                None => String::from("no jobs"),
            };
            let replayed = match (replayed.get(number), &broken) {
                (Some(batch), _) => what(batch),
                (None, Some(law)) => law.to_string(),
                (None, None) => String::from("nothing"),
            };
            format!("batch {number}: {}; replayed: {replayed}", what(recorded))
        });
        let difference = difference.or_else(|| broken.map(|law| law.to_string()));
        let difference = difference.or_else(|| shed_difference(&log.shed, &again.shed));
        Parity { batches: recorded.len(), same, difference }
    }

    fn tell(&self, dispatcher: &mut Dispatcher, jobs: &[Job]) -> Result<(), LawBroken> {
        let mut jobs = jobs.iter();
        let mut actions = Vec::new();
        for &(now, told) in &self.entries {
            match told {
                Told::Arrive => jobs.next().map_or(Ok(()), |job| dispatcher.arrive(now, *job)),
                Told::Finish(processor) => dispatcher.finish(now, processor).map(|_| ()),
                Told::Wake => dispatcher.wake(now),
                Told::Decide => dispatcher.decide(now, &mut actions),
            }?;
            actions.clear();
        }
        Ok(())
    }

    /// Writes `journal.csv`, whole or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path, provenance: &Provenance) -> io::Result<()> {
        let line = |&(at, told): &(Nanos, Told)| {
            let (told, processor) = match told {
                Told::Arrive => ("arrive", None),
                Told::Finish(processor) => ("finish", Some(processor)),
                Told::Wake => ("wake", None),
                Told::Decide => ("decide", None),
            };
            Line { at_us: Us(at), told: told.to_owned(), processor }
        };
        write_csv(path, provenance, self.entries.iter().map(line))
    }

    /// Reads a `journal.csv` (also `.gz` or `.zst`) with its comment lines.
    ///
    /// # Errors
    /// With line and column: missing, repeated or unknown columns, and values that are not what the column holds.
    pub fn read(path: &Path) -> Result<(Self, Provenance), InputError> {
        let mut lines = CsvReader::<Line, _>::new(path, open_text(path)?)?;
        if !lines.has_header() {
            return Err(InputError::file(path, "is empty, expected a journal with a header line"));
        }
        let mut entries = Vec::new();
        while let Some(line) = lines.next_row()? {
            let told = match (line.value.told.as_str(), line.value.processor) {
                ("arrive", _) => Told::Arrive,
                ("wake", _) => Told::Wake,
                ("decide", _) => Told::Decide,
                ("finish", Some(processor)) => Told::Finish(processor),
                ("finish", None) => return Err(line.unexpected("processor", "a whole number")),
                _ => return Err(line.unexpected("told", "arrive, finish, wake or decide")),
            };
            entries.push((line.value.at_us.0, told));
        }
        Ok((Self { entries }, lines.into_provenance()))
    }
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    at_us: Us,
    told: String,
    processor: Option<ProcessorId>,
}

impl Record for Line {}

/// In words, the first job that was dropped in one of two runs, and in the other not or at another time.
fn shed_difference(recorded: &[ShedJob], replayed: &[ShedJob]) -> Option<String> {
    let most = recorded.len().max(replayed.len());
    let (one, other) = (0..most).map(|i| (recorded.get(i), replayed.get(i))).find(|(one, other)| one != other)?;
    let what = |shed: Option<&ShedJob>| match shed {
        Some(shed) => format!("job {} at {} ns", shed.job, shed.dropped.0),
        None => String::from("no more"),
    };
    Some(format!("dropped: {}; replayed: {}", what(one), what(other)))
}

/// The batches that a log tells of, by number.
fn batches(log: &RunLog) -> BTreeMap<u32, Batch> {
    let mut batches: BTreeMap<u32, Batch> = BTreeMap::new();
    for row in &log.rows {
        batches.entry(row.batch).or_default().push((row.job, row.processor, row.started));
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_survives_its_file_and_faults_have_their_place() {
        let entries = vec![
            (Nanos(1), Told::Arrive),
            (Nanos(1), Told::Decide),
            (Nanos(2_500_001), Told::Finish(ProcessorId(3))),
            (Nanos(2_500_001), Told::Wake),
        ];
        let journal = Journal { entries };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal.csv");
        journal.write(&path, &Provenance::new().with("seed", 7)).unwrap();
        let (read, provenance) = Journal::read(&path).unwrap();
        assert_eq!((read, provenance.get("seed")), (journal, Some("7")));
        std::fs::write(&path, "at_us,told,processor\n1.0,sleep,\n").unwrap();
        assert!(Journal::read(&path).unwrap_err().to_string().contains("2:5: `told` is \"sleep\""));
        std::fs::write(&path, "at_us,told\n").unwrap();
        assert!(Journal::read(&path).unwrap_err().to_string().contains("lacks `processor`"));
    }
}
