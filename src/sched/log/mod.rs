//! The run log: one row a query, the same whether simulated or live.

mod csv;

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
    /// When the dispatcher learnt of it: the driver's lag is the difference. Equal to `arrival` in simulation, unless the
    /// dispatcher's own time is simulated too.
    pub released: Nanos,
    /// When its processor started it.
    pub started: Nanos,
    /// When its results were there.
    pub finished: Nanos,
    /// Where it ran.
    pub processor: ProcessorId,
    /// The class of that processor.
    pub class: Class,
    /// Which submission of the run it was part of, from 0 in order of start.
    pub batch: u32,
    /// When it should have finished.
    pub deadline: Nanos,
    /// How long it was expected to take, alone, on each class.
    pub predicted: PerClass<Nanos>,
    /// Whether the policy took it from the jobs of another class.
    pub stolen: bool,
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
