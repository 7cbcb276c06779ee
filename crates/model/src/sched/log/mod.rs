//! The run log: one row per query, the same for simulated and live runs.

mod csv;

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
    #[inline]
    pub fn delay(&self) -> Nanos {
        self.finished.since(self.arrival)
    }

    /// Whether it finished after its deadline.
    #[inline]
    pub fn missed(&self) -> bool {
        self.finished > self.deadline
    }

    /// This job if it was dropped instead of answered.
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

/// Receives the rows of a run as its jobs finish. [`RunLog`] keeps all of them; other sinks keep only a summary.
pub trait Sink {
    /// Takes the row of a finished job; rows come in order of finish.
    fn record(&mut self, row: &LogRow);

    /// Takes the rows of the batch of this number, which has finished. A sink that keeps only some batches makes no rows of
    /// the others.
    #[inline]
    fn record_batch(&mut self, _number: u32, rows: impl Iterator<Item = LogRow> + Clone)
    where
        Self: Sized,
    {
        rows.for_each(|row| self.record(&row));
    }

    /// Takes a dropped job, which has no row.
    fn shed(&mut self, job: &ShedJob);

    /// Takes the failure of a lane, which continues with its fallback executor.
    fn lane_fault(&mut self, _fault: &LaneFault) {}
}

/// Passes each row to both sinks, the first one first.
impl<A: Sink, B: Sink> Sink for (A, B) {
    #[inline]
    fn record(&mut self, row: &LogRow) {
        self.0.record(row);
        self.1.record(row);
    }

    #[inline]
    fn record_batch(&mut self, number: u32, rows: impl Iterator<Item = LogRow> + Clone) {
        self.0.record_batch(number, rows.clone());
        self.1.record_batch(number, rows);
    }

    fn shed(&mut self, job: &ShedJob) {
        self.0.shed(job);
        self.1.shed(job);
    }

    fn lane_fault(&mut self, fault: &LaneFault) {
        self.0.lane_fault(fault);
        self.1.lane_fault(fault);
    }
}

/// Nothing is written.
impl Sink for () {
    fn record(&mut self, _: &LogRow) {}

    fn shed(&mut self, _: &ShedJob) {}
}

impl<S: Sink> Sink for &mut S {
    #[inline]
    fn record(&mut self, row: &LogRow) {
        S::record(self, row);
    }

    #[inline]
    fn record_batch(&mut self, number: u32, rows: impl Iterator<Item = LogRow> + Clone) {
        S::record_batch(self, number, rows);
    }

    fn shed(&mut self, job: &ShedJob) {
        S::shed(self, job);
    }

    fn lane_fault(&mut self, fault: &LaneFault) {
        S::lane_fault(self, fault);
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
