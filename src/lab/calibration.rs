//! What a query costs while others are served too, beside what it costs alone.
//!
//! A profile measures each query alone, and takes the median of a few runs. A live run draws from all that can happen:
//! both processors and the driver share caches and clocks, half a core may be all that a rented core is, and now and
//! then the system takes a moment for itself. On virtual cores that came to 5 to 40 %, and it drifts within seconds.
//! So before each live run of a policy, it serves a backlog of *other* draws from the same queries:
//!
//! ```text
//! start ──hand over──┤ worker at work ├──hand back── finish      live time = slowdown x predicted time + hand-off
//! ```
//!
//! Measured are the two constants of that line for each kind of processor. How queries queue, which processor takes
//! them and what rate that sustains is left to the simulator to tell.

use std::collections::HashMap;
use std::time::Duration;

use crate::cost::{BatchLoad, Cost, MachineModel};
use crate::ids::QueryId;
use crate::live::LiveOutcome;
use crate::machine::{Class, PerClass};
use crate::quantile::nearest_rank;
use crate::sim::SimQuery;
use crate::time::Nanos;

/// How long a live batch takes, from what it was predicted to take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calibration {
    /// Time at work over predicted time; 1 for a replayed processor, which takes its recorded times exactly.
    pub slowdown: PerClass<f64>,
    /// What a batch takes beyond: its way to the worker, and its results' way back.
    pub handoff: PerClass<Nanos>,
    /// What the dispatcher takes for each event.
    pub decision: Nanos,
}

impl Calibration {
    /// From a run without idle times, on a machine that takes what `model` says for queries of these `costs`.
    #[must_use]
    pub fn of(outcome: &LiveOutcome, model: &MachineModel, costs: impl Fn(QueryId) -> PerClass<Cost>) -> Self {
        let mut batches: HashMap<u32, (Class, BatchLoad)> = HashMap::new();
        for row in &outcome.log.rows {
            let (_, load) = batches.entry(row.batch).or_insert((row.class, BatchLoad::default()));
            *load = load.with(costs(row.query)[row.class]);
        }
        let mut predicted = PerClass::<Nanos>::default();
        for (class, load) in batches.values() {
            predicted[*class] += model.batch_time(*class, load).total();
        }
        let slowdown = |class| {
            let (worked, predicted): (Nanos, Nanos) = (outcome.worked[class], predicted[class]);
            let is_known = worked > Nanos::ZERO && predicted > Nanos::ZERO;
            if is_known { worked.as_us() / predicted.as_us() } else { 1.0 }
        };
        Self {
            slowdown: PerClass::from_fn(slowdown),
            handoff: PerClass::from_fn(|class| outcome.handoff[class].p50),
            decision: outcome.decision.p50,
        }
    }

    /// Number by number the median of several; of none, costs as profiled.
    #[must_use]
    pub fn median(several: &[Self]) -> Self {
        let middle = |class: Class| {
            let mut slowdowns: Vec<f64> = several.iter().map(|one| one.slowdown[class]).collect();
            let mut handoffs: Vec<Nanos> = several.iter().map(|one| one.handoff[class]).collect();
            slowdowns.sort_by(f64::total_cmp);
            handoffs.sort_unstable();
            (nearest_rank(&slowdowns, 0.5).unwrap_or(1.0), nearest_rank(&handoffs, 0.5).unwrap_or_default())
        };
        let mut decisions: Vec<Nanos> = several.iter().map(|one| one.decision).collect();
        decisions.sort_unstable();
        Self {
            slowdown: PerClass::from_fn(|class| middle(class).0),
            handoff: PerClass::from_fn(|class| middle(class).1),
            decision: nearest_rank(&decisions, 0.5).unwrap_or_default(),
        }
    }

    /// The machine as it is simulated.
    #[must_use]
    pub fn model(&self, profiled: &MachineModel) -> MachineModel {
        MachineModel { handoff: self.handoff, decision: self.decision, ..profiled.clone() }
    }

    /// A query as it is simulated: what it takes changes, what policies are told does not.
    #[must_use]
    pub fn query(&self, profiled: &SimQuery) -> SimQuery {
        SimQuery { service: self.service(&profiled.service), ..*profiled }
    }

    /// What the simulator lets a query take that was profiled at these costs.
    #[must_use]
    pub fn service(&self, profiled: &PerClass<Cost>) -> PerClass<Cost> {
        PerClass::from_fn(|class| profiled[class].scaled(self.slowdown[class]))
    }
}

/// A run as [`ServiceRow`] names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceRun {
    /// A backlog, served before a live run to know what queries cost now.
    Backlog,
    /// A live run at a rate.
    Live,
}

impl ServiceRun {
    /// `backlog` or `live`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Backlog => "backlog",
            Self::Live => "live",
        }
    }
}

/// What queries cost in one run, beside what they took when they were profiled alone.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceRow {
    /// The policy's name.
    pub policy: String,
    /// When the run ended, from the start of the first policy's.
    pub at: Duration,
    /// What kind of run.
    pub run: ServiceRun,
    /// The rate at which queries came.
    pub rate_qps: f64,
    /// Queries that were answered.
    pub queries: usize,
    /// Time at work over the time that the same queries took alone.
    pub slowdown: PerClass<f64>,
    /// What handing a query over and its results back took beyond.
    pub handoff: PerClass<Nanos>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{JobId, ProcessorId};
    use crate::live::{Ending, Spread};
    use crate::machine::Machine;
    use crate::sched::{Journal, LogRow, RunLog};

    fn row(query: u32, class: Class, batch: u32, started: u64, finished: u64) -> LogRow {
        LogRow {
            job: JobId(query),
            query: QueryId(query),
            arrival: Nanos::ZERO,
            released: Nanos::ZERO,
            started: Nanos(started),
            finished: Nanos(finished),
            processor: ProcessorId(0),
            class,
            batch,
            deadline: Nanos::MAX,
            predicted: PerClass::default(),
            stolen: false,
        }
    }

    #[test]
    fn work_and_hand_over_are_told_apart_and_a_batch_counts_once() {
        // Two queries of 1000 ns in a batch that worked 2600 of 3000 ns; a replayed one.
        let rows =
            vec![row(0, Class::CPU, 0, 0, 3000), row(1, Class::CPU, 0, 0, 3000), row(2, Class::GPU, 1, 100, 640)];
        let spread = |ns| Spread { p50: Nanos(ns), ..Spread::default() };
        let outcome = LiveOutcome {
            log: RunLog { rows },
            journal: Journal::default(),
            ending: Ending::Complete,
            lag: Spread::default(),
            decision: spread(120),
            served: Vec::new(),
            rounds: Vec::new(),
            handoff: PerClass::two(spread(400), Spread::default()),
            worked: PerClass::two(Nanos(2600), Nanos::ZERO),
            driver_time: std::time::Duration::ZERO,
            unreleased: 0,
            unfinished: 0,
        };
        let costs = PerClass::two(Cost::alone(Nanos(1000)), Cost::alone(Nanos(500)));
        let found = Calibration::of(&outcome, &Machine::new(1, 1).into(), |_| costs);
        assert_eq!((found.slowdown[Class::CPU], found.slowdown[Class::GPU]), (1.3, 1.0));
        assert_eq!((found.handoff[Class::CPU], found.decision), (Nanos(400), Nanos(120)));
        assert_eq!(found.service(&costs)[Class::CPU], Cost::alone(Nanos(1300)));
        let disturbed = Calibration { slowdown: PerClass::from_fn(|_| 9.0), ..found };
        assert_eq!(Calibration::median(&[found, disturbed, found]), found);
    }
}
