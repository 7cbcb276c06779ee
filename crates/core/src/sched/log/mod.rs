//! The run log: one row a query, the same whether simulated or live.

mod csv;

use super::Sink;
use crate::base::ids::{JobId, ProcessorId, QueryId};
use crate::base::machine::{Class, LaneFault, PerClass};
use crate::base::time::Nanos;

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
    /// When the dispatcher learnt that its results were there.
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
    /// Whether it ran twice: its lane failed, and the lane's fallback executor gave the answer.
    pub again: bool,
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

/// A job that was dropped: nobody runs it, and it is late by every objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShedJob {
    /// Which arrival.
    pub job: JobId,
    /// Which query.
    pub query: QueryId,
    /// Intended arrival.
    pub arrival: Nanos,
    /// When the dispatcher learnt of it.
    pub released: Nanos,
    /// When it was dropped.
    pub dropped: Nanos,
    /// Where it would have run.
    pub processor: ProcessorId,
    /// The class of that processor.
    pub class: Class,
    /// When it should have finished.
    pub deadline: Nanos,
    /// How long it was expected to take, alone, on each class.
    pub predicted: PerClass<Nanos>,
}

/// A run's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLog {
    /// The jobs that were answered, in order of arrival.
    pub rows: Vec<LogRow>,
    /// Those that were dropped, likewise.
    pub shed: Vec<ShedJob>,
    /// Lanes that failed on the way, in the order in which that was noticed.
    pub faults: Vec<LaneFault>,
}

impl RunLog {
    /// An empty log with room for so many answered jobs.
    #[must_use]
    pub fn with_room_for(jobs: usize) -> Self {
        Self { rows: Vec::with_capacity(jobs.min(1 << 24)), ..Self::default() }
    }

    /// Puts the jobs into order of arrival.
    pub fn sort(&mut self) {
        self.rows.sort_unstable_by_key(|row| row.job);
        self.shed.sort_unstable_by_key(|shed| shed.job);
    }

    /// Jobs that ended: answered or dropped.
    #[must_use]
    pub fn ended(&self) -> usize {
        self.rows.len() + self.shed.len()
    }
}

impl Sink for RunLog {
    fn record(&mut self, row: &LogRow) {
        self.rows.push(*row);
    }

    fn shed(&mut self, job: &ShedJob) {
        self.shed.push(*job);
    }

    fn lane_fault(&mut self, fault: &LaneFault) {
        self.faults.push(fault.clone());
    }
}
