//! What a query costs while others are served too, beside what it costs alone.
//!
//! A profile measures each query alone, and takes the median of a few runs. A live run draws from all that can happen:
//! both processors and the driver share caches and clocks, half a core may be all that a rented core is, and now and
//! then the system takes a moment for itself. On virtual cores that came to 5 to 40 %, and it drifts within seconds.
//! So before each live run of a policy, it serves a backlog of *other* draws from the same queries:
//!
//! ```text
//! start ──hand over──┤ worker at work ├──hand back── finish        live time = slowdown x profiled time + hand-off
//! ```
//!
//! Measured are the two constants of that line for each kind of processor. How queries queue, which processor takes
//! them and what rate that sustains is left to the simulator to tell.

use crate::ids::QueryId;
use crate::live::LiveOutcome;
use crate::machine::{Class, PerClass};
use crate::quantile::nearest_rank;
use crate::time::Nanos;

/// How long a live batch takes, from what its query took alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Calibration {
    /// Time at work over profiled time; 1 for a replayed processor, which takes its recorded times exactly.
    pub(super) slowdown: PerClass<f64>,
    /// What a query takes beyond: its way to the worker, and its results' way back.
    pub(super) handoff: PerClass<Nanos>,
}

impl Calibration {
    /// From a run without idle times; `profiled` tells what a query takes alone.
    pub(super) fn of(outcome: &LiveOutcome, profiled: impl Fn(QueryId, Class) -> Nanos) -> Self {
        let mut alone = PerClass::<Nanos>::default();
        let mut busy = PerClass::<Nanos>::default();
        let mut queries = PerClass::<u64>::default();
        let mut last_batch = None;
        for row in &outcome.log.rows {
            alone[row.kind] += profiled(row.query, row.kind);
            queries[row.kind] += 1;
            // Queries of one batch stand together, with one start and one finish.
            if last_batch.replace(row.batch) != Some(row.batch) {
                busy[row.kind] += row.finished.since(row.started);
            }
        }
        let at_work = |kind| if outcome.worked[kind] > Nanos::ZERO { outcome.worked[kind] } else { alone[kind] };
        let slowdown = |kind| if alone[kind] > Nanos::ZERO { at_work(kind).as_us() / alone[kind].as_us() } else { 1.0 };
        let handoff = |kind| Nanos(busy[kind].since(at_work(kind)).0 / queries[kind].max(1));
        Self { slowdown: PerClass::from_fn(slowdown), handoff: PerClass::from_fn(handoff) }
    }

    /// Number by number the median of several; of none, costs as profiled.
    pub(super) fn median(several: &[Self]) -> Self {
        let middle = |kind: Class| {
            let mut slowdowns: Vec<f64> = several.iter().map(|one| one.slowdown[kind]).collect();
            let mut handoffs: Vec<Nanos> = several.iter().map(|one| one.handoff[kind]).collect();
            slowdowns.sort_by(f64::total_cmp);
            handoffs.sort_unstable();
            (nearest_rank(&slowdowns, 0.5).unwrap_or(1.0), nearest_rank(&handoffs, 0.5).unwrap_or_default())
        };
        Self { slowdown: PerClass::from_fn(|kind| middle(kind).0), handoff: PerClass::from_fn(|kind| middle(kind).1) }
    }

    /// What the simulator lets a query take that took `profiled` alone.
    pub(super) fn service(&self, kind: Class, profiled: Nanos) -> Nanos {
        profiled.scaled(self.slowdown[kind]) + self.handoff[kind]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{JobId, ProcessorId};
    use crate::live::{Ending, Spread};
    use crate::sched::{LogRow, RunLog};

    fn row(query: u32, kind: Class, batch: u32, started: u64, finished: u64) -> LogRow {
        LogRow {
            job: JobId(query),
            query: QueryId(query),
            arrival: Nanos::ZERO,
            released: Nanos::ZERO,
            started: Nanos(started),
            finished: Nanos(finished),
            processor: ProcessorId(0),
            kind,
            batch,
            deadline: Nanos::MAX,
            predicted: PerClass::default(),
        }
    }

    #[test]
    fn work_and_hand_over_are_told_apart_and_a_batch_counts_once() {
        // Two queries of 1000 ns in a batch that worked 2600 of 3000 ns; a replayed one 40 ns late.
        let rows =
            vec![row(0, Class::CPU, 0, 0, 3000), row(1, Class::CPU, 0, 0, 3000), row(2, Class::GPU, 1, 100, 640)];
        let outcome = LiveOutcome {
            log: RunLog { rows },
            ending: Ending::Complete,
            lag: Spread::default(),
            handoff: Spread::default(),
            worked: PerClass::two(Nanos(2600), Nanos::ZERO),
            unreleased: 0,
            unfinished: 0,
        };
        let found = Calibration::of(&outcome, |_, kind| if kind == Class::CPU { Nanos(1000) } else { Nanos(500) });
        assert_eq!([Class::CPU, Class::GPU].map(|class| found.slowdown[class]), [1.3, 1.0]);
        assert_eq!(found.handoff, PerClass::two(Nanos(200), Nanos(40)));
        assert_eq!(found.service(Class::CPU, Nanos(100)), Nanos(330));
        let disturbed = Calibration { slowdown: PerClass::from_fn(|_| 9.0), handoff: PerClass::default() };
        assert_eq!(Calibration::median(&[found, disturbed, found]), found);
    }
}
