//! The run log: one row a query, the same whether simulated or live.

use super::Sink;
use crate::ids::{JobId, ProcessorId, QueryId};
use crate::machine::{Class, PerClass};
use crate::time::Nanos;

/// What happened to one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// Which arrival.
    pub job: JobId,
    /// Which query.
    pub query: QueryId,
    /// Intended arrival.
    pub arrival: Nanos,
    /// When the dispatcher learnt of it: the driver's lag is the difference. Equal to `arrival` in simulation.
    pub released: Nanos,
    /// When its processor started it.
    pub started: Nanos,
    /// When its results were there.
    pub finished: Nanos,
    /// Where it ran.
    pub processor: ProcessorId,
    /// The kind of that processor.
    pub kind: Class,
    /// Which submission of the run it was part of, from 0 in order of start.
    pub batch: u32,
    /// When it should have finished.
    pub deadline: Nanos,
    /// What was expected.
    pub predicted: PerClass<Nanos>,
}

impl LogRow {
    /// Arrival to finish.
    #[must_use]
    pub fn delay(&self) -> Nanos {
        self.finished.since(self.arrival)
    }

    /// Whether it finished after its deadline.
    #[must_use]
    pub fn missed(&self) -> bool {
        self.finished > self.deadline
    }

    /// Whether it ran on a kind that was predicted to be the slower one.
    #[must_use]
    pub fn stolen(&self) -> bool {
        self.predicted[self.kind] > self.predicted[self.kind.other()]
    }
}

/// A run's rows, in order of arrival.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLog {
    /// The rows.
    pub rows: Vec<LogRow>,
}

impl Sink for RunLog {
    fn record(&mut self, row: &LogRow) {
        self.rows.push(*row);
    }
}
