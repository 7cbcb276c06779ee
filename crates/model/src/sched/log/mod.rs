//! The run log: one row per query, the same for simulated and live runs.

mod csv;

use super::Sink;
use crate::base::ids::{JobId, ProcessorId, QueryId};
use crate::base::machine::{Class, LaneFault, PerClass};
use crate::base::time::Nanos;

/// The record of one answered job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// The number of the arrival.
    pub job: JobId,
    /// The query.
    pub query: QueryId,
    /// Intended arrival.
    pub arrival: Nanos,
    /// When the dispatcher learnt of it. The difference to `arrival` is the driver's lag, 0 in simulation unless dispatcher
    /// time is simulated.
    pub released: Nanos,
    /// When its processor started it.
    pub started: Nanos,
    /// When the dispatcher learnt of its results.
    pub finished: Nanos,
    /// The processor that ran it.
    pub processor: ProcessorId,
    /// The class of that processor.
    pub class: Class,
    /// The batch that it was part of; batches are numbered from 0 in order of start.
    pub batch: u32,
    /// When it should have finished.
    pub deadline: Nanos,
    /// Its importance: 0 is the most important.
    pub priority: u8,
    /// Expected service time on each class, alone.
    pub predicted: PerClass<Nanos>,
    /// Whether the policy took it from the jobs of another class.
    pub stolen: bool,
    /// Whether it ran twice because its lane failed and the fallback executor answered.
    pub again: bool,
    /// The lanes that it occupied at its end: its processor, and those that helped.
    pub lanes: u32,
    /// The lane time of those that helped.
    pub helped: Nanos,
}

impl LogRow {
    /// Time from arrival to finish.
    #[must_use]
    #[inline]
    pub fn delay(&self) -> Nanos {
        self.finished.since(self.arrival)
    }

    /// Whether it finished after its deadline.
    #[must_use]
    #[inline]
    pub fn missed(&self) -> bool {
        self.finished > self.deadline
    }

    /// This job if it was dropped instead of answered.
    #[must_use]
    pub fn dropped(&self) -> ShedJob {
        ShedJob {
            job: self.job,
            query: self.query,
            arrival: self.arrival,
            released: self.released,
            dropped: self.finished,
            processor: self.processor,
            class: self.class,
            deadline: self.deadline,
            priority: self.priority,
            predicted: self.predicted,
        }
    }
}

/// A dropped job. It never runs, and every objective counts it as late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShedJob {
    /// The number of the arrival.
    pub job: JobId,
    /// The query.
    pub query: QueryId,
    /// Intended arrival.
    pub arrival: Nanos,
    /// When the dispatcher learnt of it.
    pub released: Nanos,
    /// When it was dropped.
    pub dropped: Nanos,
    /// The processor that was to run it.
    pub processor: ProcessorId,
    /// The class of that processor.
    pub class: Class,
    /// When it should have finished.
    pub deadline: Nanos,
    /// Its importance: 0 is the most important.
    pub priority: u8,
    /// Expected service time on each class, alone.
    pub predicted: PerClass<Nanos>,
}

/// A run's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLog {
    /// Answered jobs, in order of arrival.
    pub rows: Vec<LogRow>,
    /// Dropped jobs, in order of arrival.
    pub shed: Vec<ShedJob>,
    /// Failures of lanes, in the order in which they were noticed.
    pub faults: Vec<LaneFault>,
}

impl RunLog {
    /// An empty log with room for `jobs` answered jobs.
    #[must_use]
    #[inline]
    pub fn with_room_for(jobs: usize) -> Self {
        Self { rows: Vec::with_capacity(jobs.min(1 << 24)), ..Self::default() }
    }

    /// Puts the jobs into order of arrival.
    #[inline]
    pub fn sort(&mut self) {
        self.rows.sort_unstable_by_key(|row| row.job);
        self.shed.sort_unstable_by_key(|shed| shed.job);
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
