//! One live run: from a plan of arrivals to what was measured.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use super::clock::{Clock, ManualClock, RealClock};
use super::driver::{Limits, LiveRunResult, drive, room_for};
use super::ending::LiveError;
use super::interrupt;
use super::lane_pool::LanePool;
use super::outcome::{LiveOutcome, Spread};
use super::served::ServedBatch;
use crate::base::ids::{JobId, ProcessorId, QueryId};
use crate::base::machine::{Class, Idle, Machine, PerClass};
use crate::base::random::{NodeSeed, Purpose};
use crate::base::time::Nanos;
use crate::cost::{Cost, MeasuredTimes};
use crate::sched::{Dispatcher, Job, LogRow, Policy, RunLog};

/// What to run.
pub struct LiveRun<'a> {
    /// Decides what runs where; made for the lane pool's machine.
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

/// Runs a plan on a lane pool in real time, on a thread of its own that is tied to the driver's core.
///
/// [`interrupt`](super::interrupt) ends it early, from any thread.
///
/// # Errors
/// If a job asks for a query that a worker does not know or a recorded lane has no time for, or a lane was given up in a run
/// before. What goes wrong later ends
/// the run as [`Ending::Failed`](super::Ending::Failed), with what was measured.
pub fn run(lane_pool: &mut LanePool, run: LiveRun<'_>) -> Result<LiveOutcome, LiveError> {
    check(lane_pool, run.jobs)?;
    // Not on the caller's thread: threads inherit the cores of the one that starts them, and a pool started after a run
    // would sit on one core for ever.
    let driven = std::thread::scope(|scope| {
        let driver = || {
            lane_pool.cores().pin_driver();
            let (epoch, owns_core) = (lane_pool.epoch(), lane_pool.cores().driver_owns_core());
            let spins = lane_pool.idle() == Idle::Spin;
            let faults = lane_pool.run_clock();
            lane_pool.set_running(true);
            // Real lanes draw nothing, and recorded times are taken as they are.
            let outcome = drive_run(lane_pool, run, 0, interrupt::flag(), || {
                // Planned faults count from the moment that queries do.
                faults.set(Some(Instant::now()));
                RealClock::start(epoch, owns_core, spins)
            });
            faults.set(None);
            lane_pool.set_running(false);
            outcome
        };
        std::thread::Builder::new().name(String::from("driver")).spawn_scoped(scope, driver).map(|thread| thread.join())
    });
    match driven {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(e) => Err(LiveError::NoThread(e.to_string())),
    }
}

/// Runs a plan on a lane pool of recorded lanes under a clock that jumps: what the simulator does with this seed, by the
/// live driver.
///
/// # Errors
/// As [`run`].
pub fn run_under_manual_clock(lane_pool: &mut LanePool, run: LiveRun<'_>, seed: u64) -> Result<LiveOutcome, LiveError> {
    check(lane_pool, run.jobs)?;
    Ok(drive_run(lane_pool, run, seed, &AtomicBool::new(false), ManualClock::default))
}

/// Drives the run; the clock starts when all is ready.
fn drive_run<C: Clock>(
    lane_pool: &mut LanePool,
    run: LiveRun<'_>,
    seed: u64,
    stop: &AtomicBool,
    start_clock: impl FnOnce() -> C,
) -> LiveOutcome {
    let LiveRun { mut policy, jobs, abandon_after } = run;
    let seed = NodeSeed { seed, node: 0 };
    policy.set_chance(seed.stream(Purpose::Policy, 0));
    let limits = Limits { stop, abandon_after };
    let sleeper = Arc::clone(lane_pool.driver());
    sleeper.attend();
    let (model, played, recorded, lanes) = lane_pool.parts();
    let dispatcher = Dispatcher::with_sink(&model.machine, policy, log_with_room(jobs.len()));
    let cost = |row, class| recorded.get(row as usize).map_or(Cost::NEVER, |costs| costs[class]);
    let times = MeasuredTimes::new(played, seed, cost);
    let driven = drive(start_clock, (model, seed), lanes, &sleeper, times, dispatcher, jobs, limits);
    sum_up(driven, jobs.len(), &model.machine)
}

/// Checks that every lane can run every job.
fn check(lane_pool: &LanePool, jobs: &[Job]) -> Result<(), LiveError> {
    lane_pool.check_lanes()?;
    let (recorded, workers): (Vec<ProcessorId>, Vec<ProcessorId>) = lane_pool
        .machine()
        .processors()
        .map(|(processor, _)| processor)
        .partition(|&processor| lane_pool.is_recorded(processor));
    if !workers.is_empty() {
        let is_known = |job: &Job| lane_pool.queries().get(job.row).is_some_and(|live| live.id == job.query);
        if let Some(job) = jobs.iter().find(|job| !is_known(job)) {
            return Err(LiveError::UnknownQuery(job.query));
        }
    }
    let is_recorded = |class: Class| recorded.iter().any(|&processor| lane_pool.machine().class(processor) == class);
    for class in lane_pool.machine().classes().filter(|&class| is_recorded(class)) {
        if let Some(job) = jobs.iter().find(|job| lane_pool.recorded_cost(job.row, class).is_none()) {
            return Err(LiveError::NoRecordedTime(job.query, class));
        }
    }
    // A recorded lane that fails goes on with a CPU's times.
    if lane_pool.model().faults.faults.iter().any(|fault| recorded.contains(&fault.processor))
        && let Some(job) = jobs.iter().find(|job| lane_pool.recorded_cost(job.row, Class::CPU).is_none())
    {
        return Err(LiveError::NoRecordedTime(job.query, Class::CPU));
    }
    Ok(())
}

/// An empty log with room for so many rows.
fn log_with_room(rows: usize) -> RunLog {
    let blank = LogRow {
        job: JobId(0),
        query: QueryId(0),
        arrival: Nanos::ZERO,
        released: Nanos::ZERO,
        started: Nanos::ZERO,
        finished: Nanos::MAX,
        processor: ProcessorId(0),
        class: Class::CPU,
        batch: 0,
        deadline: Nanos::ZERO,
        predicted: PerClass::default(),
        stolen: false,
        again: false,
    };
    RunLog { rows: room_for(rows, blank), ..RunLog::default() }
}

fn sum_up(driven: LiveRunResult, planned: usize, machine: &Machine) -> LiveOutcome {
    let LiveRunResult { log, lags, rounds, served, worked, driver_time, ending } = driven;
    let handoff = PerClass::from_fn(|class| {
        let of_class = served.iter().filter(|batch| machine.class(batch.processor) == class);
        Spread::of(of_class.map(ServedBatch::handoff).collect())
    });
    // The events of a round share its time equally.
    let each = rounds.iter().flat_map(|round| {
        std::iter::repeat_n(Nanos(round.time.0 / u64::from(round.events().max(1))), round.events() as usize)
    });
    let decision = Spread::of(each.collect());
    let released = lags.len();
    LiveOutcome {
        unreleased: planned - released,
        unfinished: released - log.ended(),
        lag: Spread::of(lags),
        decision,
        rounds,
        handoff,
        served,
        worked,
        driver_time,
        log,
        ending,
    }
}

/// The jobs of a run: one for each arrival, which names a row of `queries`; a query is its id and estimates.
///
/// # Panics
/// If an arrival names a row that `queries` lacks.
#[must_use]
pub fn plan(
    arrivals: impl IntoIterator<Item = (Nanos, u32)>,
    queries: &[(QueryId, PerClass<Cost>)],
    deadline: Nanos,
) -> Vec<Job> {
    let job = |(id, (arrival, row)): (JobId, (Nanos, u32))| {
        let (query, predicted) = queries[row as usize];
        Job { id, query, row, arrival, deadline: arrival + deadline, predicted }
    };
    (0..).map(JobId).zip(arrivals).map(job).collect()
}
