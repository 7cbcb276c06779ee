//! What a live run has measured.

use std::time::Duration;

use super::ending::Ending;
use super::served::{Round, ServedBatch};
use crate::base::histogram::Histogram;
use crate::base::machine::PerClass;
use crate::base::time::Nanos;
use crate::sched::RunLog;

/// Mean, median, 99th percentile and maximum of some times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// The mean.
    pub mean: Nanos,
    /// The median.
    pub p50: Nanos,
    /// The 99th percentile.
    pub p99: Nanos,
    /// The greatest.
    pub max: Nanos,
}

impl Spread {
    /// Of these times; all zero if there are none.
    #[must_use]
    pub fn of(times: &Histogram) -> Self {
        let at = |share| times.nearest_rank(share).unwrap_or_default();
        Self { mean: times.mean(), p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// What was measured.
#[derive(Debug)]
pub struct LiveOutcome {
    /// The jobs that finished or were dropped, and lanes that failed on the way. In long runs those of every second, fourth...
    /// batch only: see [`LiveRun::keep`](super::LiveRun::keep).
    pub log: RunLog,
    /// How the run ended.
    pub ending: Ending,
    /// How late the driver released jobs.
    pub lag: Spread,
    /// The driver's own time for each event (an arrival, an answered query), with the policy's decision and the handing over
    /// of what it starts: [`MachineModel::decision`](crate::cost::MachineModel::decision) of the machine as it was.
    /// Events that are taken together share their time equally.
    pub decision: Spread,
    /// By class, what handing a batch to a worker and its completion back took beyond the work: part of the measured
    /// service time that a profile does not see, [`MachineModel::handoff`](crate::cost::MachineModel::handoff). What
    /// hides behind the batch before does not count. All zero for recorded lanes.
    pub handoff: PerClass<Spread>,
    /// The batches of workers, in the order in which they were seen to end; recorded lanes' are not among them.
    /// Of the same batches as the log.
    pub served: Vec<ServedBatch>,
    /// The driver's rounds, in order: in long runs every second, fourth...
    pub rounds: Vec<Round>,
    /// Time in which workers of a class were at their batches, all together; without the hand-offs.
    /// 0 for recorded lanes.
    pub worked: PerClass<Nanos>,
    /// Processor time of the driver's loop. Under a real clock about as long as the run, since it polls; under one that
    /// jumps, what driving costs.
    pub driver_time: Duration,
    /// Jobs of the plan that were never released.
    pub unreleased: usize,
    /// Jobs that were released and neither finished nor were dropped.
    pub unfinished: usize,
}

impl LiveOutcome {
    /// Whether Ctrl-C ended it.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        matches!(self.ending, Ending::Interrupted)
    }

    /// Whether it was given up: it had failed, and its backlog only grew.
    #[must_use]
    pub fn overloaded(&self) -> bool {
        matches!(self.ending, Ending::Overloaded)
    }

    /// What to tell the user if the driver was so late that it matters within `deadline`: above 1 % of it.
    #[must_use]
    pub fn lag_warning(&self, deadline: Nanos) -> Option<String> {
        (self.lag.p99 > deadline.scaled(0.01)).then(|| {
            format!(
                "the driver released 1 % of the queries more than {:.2} ms late (deadline {} ms); delays count from the \
                 intended arrival and include this lag",
                self.lag.p99.as_ms(),
                deadline.as_ms(),
            )
        })
    }
}
