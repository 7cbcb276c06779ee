//! The measurements of a live run.

use std::time::Duration;

use tandem_model::base::histogram::Histogram;
use tandem_model::base::machine::PerClass;
use tandem_model::base::time::Nanos;
use tandem_model::sched::RunLog;

use super::ending::Ending;
use super::gaps::Course;
use super::served::{Round, ServedBatch};

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
    /// Summary of these times; all zero if there are none.
    #[must_use]
    pub fn of(times: &Histogram) -> Self {
        let at = |share| times.nearest_rank(share).unwrap_or_default();
        Self { mean: times.mean(), p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// The measurements of one run.
#[derive(Debug)]
pub struct LiveOutcome {
    /// The jobs that finished or were dropped, with the lanes' faults. Long runs keep every second, fourth... batch only:
    /// see [`LiveRun::keep`](super::LiveRun::keep).
    pub log: RunLog,
    /// The end of the run.
    pub ending: Ending,
    /// Lateness of the driver's release of jobs.
    pub lag: Spread,
    /// The driver's own time for each event (an arrival, an answered query), with the policy's decision and the hand-over
    /// of the batches that it starts: [`MachineModel::decision`](tandem_model::cost::MachineModel::decision) as measured in this
    /// run. Events taken in together share their time equally.
    pub decision: Spread,
    /// Time beyond the work to hand a batch to a worker and its completion back, by class. It is the part of the measured
    /// service time that a profile does not see, [`MachineModel::handoff`](tandem_model::cost::MachineModel::handoff). Time that
    /// overlaps the batch before does not count. All zero for recorded lanes.
    pub handoff: PerClass<Spread>,
    /// The workers' batches that the log keeps, in the order in which the driver saw them end. Recorded lanes have none
    /// here.
    pub served: Vec<ServedBatch>,
    /// The driver's rounds, in order; long runs keep every second, fourth...
    pub rounds: Vec<Round>,
    /// Time that all workers of a class spent on their batches, without hand-overs. Zero for recorded lanes.
    pub worked: PerClass<Nanos>,
    /// Processor time of the driver's loop. Under a real clock it is about the length of the run, since the driver polls;
    /// under one that jumps it is the cost of driving.
    pub driver_time: Duration,
    /// The thirds of the run, and the gaps of the machine.
    pub course: Course,
    /// Jobs of the plan that were never released.
    pub unreleased: usize,
    /// Jobs that were released but neither finished nor dropped.
    pub unfinished: usize,
}

impl LiveOutcome {
    /// Whether the run was given up: it had failed, and its backlog only grew.
    #[must_use]
    pub fn overloaded(&self) -> bool {
        matches!(self.ending, Ending::Overloaded)
    }

    /// A warning for the user if the driver's lag exceeds 1 % of `deadline`.
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
