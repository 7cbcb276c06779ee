//! One live run: from a plan of arrivals to what was measured.

use std::sync::atomic::AtomicBool;

use super::clock::{ManualClock, RealClock};
use super::driver::{Driven, Limits, drive};
use super::ending::{Ending, LiveError};
use super::interrupt;
use super::worker::{Fleet, Lane};
use crate::machine::{PerClass, Processor};
use crate::quantile::select_nearest_rank;
use crate::sched::{Dispatcher, Job, Policy, RunLog};
use crate::time::Nanos;

/// What to run.
pub struct LiveRun<'a> {
    /// Decides what runs where.
    pub policy: Box<dyn Policy>,
    /// The jobs in order of arrival, numbered from 0.
    pub jobs: &'a [Job],
    /// Give up when the oldest unfinished job is older than this: at a hopeless rate the backlog only grows, and its
    /// last jobs would take as long as the overload was deep.
    pub abandon_after: Option<Nanos>,
}

impl std::fmt::Debug for LiveRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveRun")
            .field("policy", &self.policy.name())
            .field("jobs", &self.jobs.len())
            .field("abandon_after", &self.abandon_after)
            .finish()
    }
}

/// Median, 99th percentile and maximum of some times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
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
    pub fn of(mut times: Vec<Nanos>) -> Self {
        let mut at = |share| select_nearest_rank(&mut times, share).unwrap_or_default();
        Self { p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// What was measured.
#[derive(Debug)]
pub struct LiveOutcome {
    /// The jobs that finished.
    pub log: RunLog,
    /// How the run ended.
    pub ending: Ending,
    /// How late the driver released jobs.
    pub lag: Spread,
    /// What handing a batch to a worker and its completion back took beyond the work: part of the measured service time
    /// that a profile does not see.
    pub handoff: Spread,
    /// Time in which workers of a kind were at their batches, all together; without the hand-offs.
    /// 0 for replayed lanes.
    pub worked: PerClass<Nanos>,
    /// Jobs of the plan that were never released.
    pub unreleased: usize,
    /// Jobs that were released and never finished.
    pub unfinished: usize,
}

impl LiveOutcome {
    /// Whether Ctrl-C ended it.
    #[must_use]
    pub fn interrupted(&self) -> bool {
        matches!(self.ending, Ending::Interrupted)
    }

    /// Whether it was given up because of a hopeless backlog.
    #[must_use]
    pub fn overloaded(&self) -> bool {
        matches!(self.ending, Ending::Overloaded)
    }

    /// What to tell the user if the driver was so late that it matters within `deadline`: above 1 % of it.
    #[must_use]
    pub fn lag_warning(&self, deadline: Nanos) -> Option<String> {
        (self.lag.p99 > deadline.scaled(0.01)).then(|| {
            format!(
                "the driver released 1 % of the queries more than {:.2} ms late (deadline {:.0} ms): this machine was \
                 too busy to be measured well; delays count from the intended arrival and include the lag",
                self.lag.p99.as_ms(),
                deadline.as_ms(),
            )
        })
    }
}

/// Runs a plan on a fleet in real time, on a thread of its own that is tied to the driver's core.
///
/// [`interrupt`](super::interrupt) ends it early, from any thread.
///
/// # Errors
/// If a job asks for a query that a worker does not know or a replayed lane has no time for. What goes wrong later ends
/// the run as [`Ending::Failed`], with what was measured.
pub fn run(fleet: &mut Fleet, run: LiveRun<'_>) -> Result<LiveOutcome, LiveError> {
    let limits = Limits { stop: interrupt::flag(), abandon_after: run.abandon_after };
    let dispatcher = prepare(fleet, run.policy, run.jobs)?;
    // Not on the caller's thread: threads inherit the cores of the one that starts them, and a pool started after a run
    // would sit on one core for ever.
    let driven = std::thread::scope(|scope| {
        let driver = || {
            fleet.cores().pin_driver();
            let mut clock = RealClock::start(fleet.cores().driver_owns_core());
            drive(&mut clock, fleet, dispatcher, run.jobs, limits)
        };
        std::thread::Builder::new().name(String::from("driver")).spawn_scoped(scope, driver).map(|thread| thread.join())
    });
    match driven {
        Ok(Ok(driven)) => Ok(sum_up(driven, run.jobs.len())),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(e) => Err(LiveError::NoThread(e.to_string())),
    }
}

/// Runs a plan on a fleet of replayed lanes under a clock that jumps: what the simulator does, by the live driver.
///
/// # Errors
/// As [`run`].
pub fn run_under_manual_clock(fleet: &mut Fleet, run: LiveRun<'_>) -> Result<LiveOutcome, LiveError> {
    let dispatcher = prepare(fleet, run.policy, run.jobs)?;
    let never = AtomicBool::new(false);
    let limits = Limits { stop: &never, abandon_after: run.abandon_after };
    let driven = drive(&mut ManualClock::default(), fleet, dispatcher, run.jobs, limits);
    Ok(sum_up(driven, run.jobs.len()))
}

/// Checks that every lane can run every job.
fn prepare(fleet: &Fleet, policy: Box<dyn Policy>, jobs: &[Job]) -> Result<Dispatcher, LiveError> {
    for (processor, Processor { class: kind, .. }) in fleet.machine().processors() {
        let lacking = |job: &&Job| match fleet.lane(processor) {
            Lane::Worker(_) => fleet.queries().get(job.query).is_none(),
            Lane::Replay => fleet.recorded().time(job.query, kind).is_none(),
        };
        if let Some(job) = jobs.iter().find(lacking) {
            return Err(match fleet.lane(processor) {
                Lane::Worker(_) => LiveError::UnknownQuery(job.query),
                Lane::Replay => LiveError::NoRecordedTime(job.query, kind),
            });
        }
    }
    Ok(Dispatcher::new(fleet.machine().clone(), policy, jobs.len()))
}

fn sum_up(driven: Driven, planned: usize) -> LiveOutcome {
    let Driven { log, lags, handoffs, worked, ending } = driven;
    let released = lags.len();
    LiveOutcome {
        unreleased: planned - released,
        unfinished: released - log.rows.len(),
        lag: Spread::of(lags),
        handoff: Spread::of(handoffs),
        worked,
        log,
        ending,
    }
}
