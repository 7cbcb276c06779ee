//! What became of the faults of a plan in a run.
//!
//! Those after which a lane's spare executor took over are in the run's log. A stall that the watchdog let pass is not, though it has
//! held up a batch. And some change nothing at all: the run was over by then, the lane had been retired, or it had nothing to do.
//! Whoever plans faults to see what they do should know which ones he has seen.

use std::fmt;

use crate::machine::{FaultKind, FaultPlan, LaneFault, PlannedFault};
use crate::sched::{LogRow, RunLog, ShedJob, Sink};
use crate::time::Nanos;

/// Live lanes count planned faults from a moment before the log's time begins.
const BEFORE_THE_LOG: Nanos = Nanos(1_000_000);

/// A planned fault that changed nothing in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedInVain {
    /// The fault.
    pub fault: PlannedFault,
    /// Why.
    pub why: InVain,
}

/// Why a planned fault changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InVain {
    /// The run was over.
    RunOver,
    /// The lane had been retired before.
    Retired,
    /// The lane had no batch then, or from then on, or none that asked for memory.
    Idle,
}

impl fmt::Display for InVain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RunOver => "the run was over",
            Self::Retired => "the lane had been retired before",
            Self::Idle => "the lane had no batch that it could meet",
        })
    }
}

/// Watches a run for what becomes of a plan.
#[derive(Clone, Debug)]
pub struct FaultWitness {
    planned: Vec<PlannedFault>,
    /// By planned fault: whether its lane was at work while it lasted.
    at_work: Vec<bool>,
    faults: Vec<LaneFault>,
    end: Nanos,
}

impl FaultWitness {
    /// Of a run that has not begun.
    #[must_use]
    pub fn new(plan: &FaultPlan) -> Self {
        let planned = plan.faults.clone();
        Self { at_work: vec![false; planned.len()], planned, faults: Vec::new(), end: Nanos::ZERO }
    }

    /// Of a run that has been: what changed nothing in it.
    #[must_use]
    pub fn of_log(plan: &FaultPlan, log: &RunLog) -> Vec<PlannedInVain> {
        let mut witness = Self::new(plan);
        log.rows.iter().for_each(|row| witness.record(row));
        log.faults.iter().for_each(|fault| witness.lane_fault(fault));
        witness.tell().1
    }

    /// The lanes that failed, and what changed nothing.
    #[must_use]
    pub fn tell(self) -> (Vec<LaneFault>, Vec<PlannedInVain>) {
        let in_vain = |(fault, &at_work): (&PlannedFault, &bool)| {
            Some(PlannedInVain { fault: *fault, why: self.why_in_vain(fault, at_work)? })
        };
        let in_vain = self.planned.iter().zip(&self.at_work).filter_map(in_vain).collect();
        (self.faults, in_vain)
    }

    /// `None` if it did change something.
    fn why_in_vain(&self, planned: &PlannedFault, at_work: bool) -> Option<InVain> {
        let of_lane = || self.faults.iter().filter(|fault| fault.processor == planned.processor);
        if of_lane().any(|fault| came_of(planned, fault)) {
            return None;
        }
        if of_lane().any(|fault| fault.is_retired && fault.at <= planned.end()) {
            return Some(InVain::Retired);
        }
        match (planned.kind, at_work) {
            (FaultKind::Stall, true) => None,
            _ if self.end <= planned.at => Some(InVain::RunOver),
            _ => Some(InVain::Idle),
        }
    }
}

/// Whether a lane's failure can be what came of a planned fault.
fn came_of(planned: &PlannedFault, fault: &LaneFault) -> bool {
    let is_of_kind = match planned.kind {
        // The watchdog barked before it was over.
        FaultKind::Stall => fault.kind == FaultKind::Hang,
        kind => fault.kind == kind,
    };
    let began = fault.at + BEFORE_THE_LOG >= planned.at;
    is_of_kind && began && (planned.kind != FaultKind::Memory || fault.at <= planned.end())
}

impl Sink for FaultWitness {
    fn record(&mut self, row: &LogRow) {
        self.end = self.end.max(row.finished);
        for (fault, at_work) in self.planned.iter().zip(&mut self.at_work) {
            *at_work |= fault.processor == row.processor && row.started < fault.end() && row.finished > fault.at;
        }
    }

    fn shed(&mut self, job: &ShedJob) {
        self.end = self.end.max(job.dropped);
    }

    fn lane_fault(&mut self, fault: &LaneFault) {
        self.faults.push(fault.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{JobId, ProcessorId, QueryId};
    use crate::machine::{Class, PerClass};

    const MS: u64 = 1_000_000;

    fn planned(at_ms: u64, lane: u32, kind: FaultKind, lasts_ms: u64) -> PlannedFault {
        PlannedFault { at: Nanos(at_ms * MS), processor: ProcessorId(lane), kind, lasts: Nanos(lasts_ms * MS) }
    }

    /// A batch on a lane.
    fn row(lane: u32, started_ms: u64, finished_ms: u64) -> LogRow {
        LogRow {
            job: JobId(0),
            query: QueryId(0),
            arrival: Nanos::ZERO,
            released: Nanos::ZERO,
            started: Nanos(started_ms * MS),
            finished: Nanos(finished_ms * MS),
            processor: ProcessorId(lane),
            class: Class::CPU,
            batch: 0,
            deadline: Nanos::MAX,
            predicted: PerClass::default(),
            stolen: false,
            again: false,
        }
    }

    fn failed(at_ms: u64, lane: u32, kind: FaultKind) -> LaneFault {
        let (at, processor) = (Nanos(at_ms * MS), ProcessorId(lane));
        LaneFault { processor, at, kind, queries: 1, is_retired: kind != FaultKind::Memory, what: String::new() }
    }

    #[test]
    fn what_changed_nothing_is_told_with_its_reason_and_what_did_is_not() {
        use FaultKind::{Error, Hang, Memory, Panic, Stall};
        let told = |faults: &[PlannedFault], rows: &[LogRow], failed: &[LaneFault]| -> Vec<InVain> {
            let log = RunLog { rows: rows.to_vec(), faults: failed.to_vec(), ..RunLog::default() };
            let plan = FaultPlan::new(faults.to_vec(), FaultPlan::WATCHDOG);
            FaultWitness::of_log(&plan, &log).into_iter().map(|one| one.why).collect()
        };
        let rows = [row(0, 0, 10), row(0, 50, 60), row(1, 0, 100)];
        // It came; after the end; on a lane without work from then on.
        assert_eq!(told(&[planned(5, 0, Error, 0)], &rows, &[failed(10, 0, Error)]), []);
        assert_eq!(told(&[planned(100, 1, Panic, 0)], &rows, &[]), [InVain::RunOver]);
        assert_eq!(told(&[planned(70, 0, Hang, 0)], &rows, &[]), [InVain::Idle]);
        // Stalls: one that held up a batch, one in a pause, one for which the watchdog barked.
        let stalls = [planned(8, 0, Stall, 1), planned(20, 0, Stall, 5)];
        assert_eq!(told(&stalls, &rows, &[]), [InVain::Idle]);
        assert_eq!(told(&[planned(8, 0, Stall, 900)], &rows, &[failed(30, 0, Hang)]), []);
        // After the lane is retired nothing more can befall it.
        let twice = [planned(5, 0, Error, 0), planned(55, 0, Stall, 2), planned(40, 0, Error, 0)];
        assert_eq!(told(&twice, &rows, &[failed(10, 0, Error)]), [InVain::Retired, InVain::Retired]);
        // Memory is asked for when a batch begins, and only while there is none.
        assert_eq!(told(&[planned(20, 0, Memory, 10)], &rows, &[]), [InVain::Idle]);
        assert_eq!(told(&[planned(45, 0, Memory, 10)], &rows, &[failed(50, 0, Memory)]), []);
    }
}
