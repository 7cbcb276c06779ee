//! One live run: from a plan of arrivals to its measurements.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tandem_model::base::ids::{JobId, ProcessorId, QueryId};
use tandem_model::base::interrupt;
use tandem_model::base::machine::{Class, Idle, PerClass};
use tandem_model::base::random::{NodeSeed, Purpose};
use tandem_model::base::time::Nanos;
use tandem_model::cost::{Cost, MeasuredTimes};
use tandem_model::sched::{Dispatcher, Job, Policy};

use super::clock::{Clock, ManualClock, RealClock};
use super::driver::{Limits, Setup, drive};
use super::ending::LiveError;
use super::lane_pool::LanePool;
use super::outcome::LiveOutcome;
use super::record::{Record, Sampled};

/// The settings of a run.
pub struct LiveRun<J, R = ()> {
    /// The policy, made for the lane pool's machine.
    pub policy: Box<dyn Policy>,
    /// The jobs in order of arrival, numbered from 0.
    pub jobs: J,
    /// The run ends when its oldest unfinished job is older than this.
    pub abandon_after: Option<Nanos>,
    /// The log, batches and rounds are kept whole up to this many queries. Longer runs keep every second, fourth...
    pub keep: usize,
    /// Counts events, and decides when the run is lost.
    pub record: R,
}

impl<'a> LiveRun<std::iter::Copied<std::slice::Iter<'a, Job>>> {
    /// A run of these jobs that goes to its end and keeps its whole log.
    #[must_use]
    pub fn new(policy: Box<dyn Policy>, jobs: &'a [Job]) -> Self {
        Self { policy, jobs: jobs.iter().copied(), abandon_after: None, keep: usize::MAX, record: () }
    }
}

impl<J: ExactSizeIterator, R> std::fmt::Debug for LiveRun<J, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveRun")
            .field("policy", &self.policy.name())
            .field("jobs", &self.jobs.len())
            .field("abandon_after", &self.abandon_after)
            .field("keep", &self.keep)
            .finish_non_exhaustive()
    }
}

/// Runs a plan on a lane pool in real time, on a thread of its own that is tied to the driver's core.
///
/// [`interrupt`](super::interrupt) ends it early, from any thread.
///
/// # Errors
/// If a job asks for a query that a worker does not know or a recorded lane has no time for, or a lane was given up in a
/// run before. A later error ends the run as [`Ending::Failed`](super::Ending::Failed), with the measurements until then.
pub fn run<J, R>(lane_pool: &mut LanePool, run: LiveRun<J, R>) -> Result<LiveOutcome, LiveError>
where
    J: ExactSizeIterator<Item = Job> + Clone + Send,
    R: Record + Send,
{
    check(lane_pool, run.jobs.clone())?;
    // The run gets a thread of its own: threads inherit the cores of their parent, and a pool started by the caller after a
    // run would stay on one core.
    let driven = std::thread::scope(|scope| {
        let driver = || {
            lane_pool.cores().pin_driver();
            let (epoch, owns_core) = (lane_pool.epoch(), lane_pool.cores().driver_owns_core());
            let spins = lane_pool.idle() == Idle::Spin;
            let faults = lane_pool.run_clock();
            lane_pool.set_running(true);
            // Real lanes draw nothing; recorded times are used unchanged.
            let outcome = drive_run(lane_pool, run, 0, interrupt::flag(), || {
                // Planned faults count from the start of the queries.
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

/// Runs a plan on a lane pool of recorded lanes under a clock that jumps. The live driver then does what the simulator does
/// with this seed.
///
/// # Errors
/// As [`run`].
pub fn run_under_manual_clock<J, R>(
    lane_pool: &mut LanePool,
    run: LiveRun<J, R>,
    seed: u64,
) -> Result<LiveOutcome, LiveError>
where
    J: ExactSizeIterator<Item = Job> + Clone,
    R: Record,
{
    check(lane_pool, run.jobs.clone())?;
    Ok(drive_run(lane_pool, run, seed, &AtomicBool::new(false), ManualClock::default))
}

/// Drives the run; the clock starts when all preparations are done.
fn drive_run<C: Clock, J: ExactSizeIterator<Item = Job>, R: Record>(
    lane_pool: &mut LanePool,
    run: LiveRun<J, R>,
    seed: u64,
    stop: &AtomicBool,
    start_clock: impl FnOnce() -> C,
) -> LiveOutcome {
    let LiveRun { mut policy, jobs, abandon_after, keep, record } = run;
    let seed = NodeSeed { seed, node: 0 };
    policy.set_chance(seed.stream(Purpose::Policy, 0));
    let limits = Limits { stop, abandon_after };
    let sleeper = Arc::clone(lane_pool.driver());
    sleeper.attend();
    let (model, played, costs, lanes) = lane_pool.parts();
    let dispatcher = Dispatcher::with_sink(&model.machine, policy, (Sampled::of(jobs.len(), keep), record));
    let dispatcher = dispatcher.sharing_jobs();
    let cost = |row, class| costs.get(row as usize).map_or(Cost::NEVER, |costs| costs[class]);
    let times = MeasuredTimes::new(played, seed, cost);
    let setup = Setup { model, lanes, costs, sleeper: &sleeper, times, dispatcher, jobs };
    drive(start_clock, setup, limits)
}

/// Jobs checked before a run starts. A longer plan draws from the queries of its first jobs.
const CHECKED: usize = 1 << 20;

fn check(lane_pool: &LanePool, jobs: impl Iterator<Item = Job> + Clone) -> Result<(), LiveError> {
    lane_pool.check_lanes()?;
    let (recorded, workers): (Vec<ProcessorId>, Vec<ProcessorId>) = lane_pool
        .machine()
        .processors()
        .map(|(processor, _)| processor)
        .partition(|&processor| lane_pool.is_recorded(processor));
    let first = |is_bad: &dyn Fn(&Job) -> bool| jobs.clone().take(CHECKED).find(|job| is_bad(job));
    if !workers.is_empty()
        && let Some(job) = first(&|job| lane_pool.queries().get(job.row).is_none_or(|live| live.id != job.query))
    {
        return Err(LiveError::UnknownQuery(job.query));
    }
    let is_recorded = |class: Class| recorded.iter().any(|&processor| lane_pool.machine().class(processor) == class);
    for class in lane_pool.machine().classes().filter(|&class| is_recorded(class)) {
        if let Some(job) = first(&|job| lane_pool.recorded_cost(job.row, class).is_none()) {
            return Err(LiveError::NoRecordedTime(job.query, class));
        }
    }
    // A recorded lane that fails continues with a CPU's times.
    if lane_pool.model().faults.faults.iter().any(|fault| recorded.contains(&fault.processor))
        && let Some(job) = first(&|job| lane_pool.recorded_cost(job.row, Class::CPU).is_none())
    {
        return Err(LiveError::NoRecordedTime(job.query, Class::CPU));
    }
    Ok(())
}

/// The jobs of a run, one for each arrival. An arrival names a row of `queries`, which holds the id and the estimates.
///
/// # Panics
/// If an arrival names a row that `queries` lacks.
#[must_use]
pub fn plan(
    arrivals: impl IntoIterator<Item = (Nanos, u32)>,
    queries: &[(QueryId, PerClass<Cost>)],
    deadline: Nanos,
) -> Vec<Job> {
    (0..).zip(arrivals).map(|(number, arrival)| job(number, arrival, queries, deadline)).collect()
}

/// As [`plan`], with each job made when it is due.
pub fn plan_ahead<'a, A>(
    arrivals: A,
    queries: &'a [(QueryId, PerClass<Cost>)],
    deadline: Nanos,
) -> impl ExactSizeIterator<Item = Job> + Clone + use<'a, A>
where
    A: ExactSizeIterator<Item = (Nanos, u32)> + Clone,
{
    arrivals.enumerate().map(move |(number, arrival)| job(number as u32, arrival, queries, deadline))
}

fn job(number: u32, (arrival, row): (Nanos, u32), queries: &[(QueryId, PerClass<Cost>)], deadline: Nanos) -> Job {
    let (query, predicted) = queries[row as usize];
    Job { id: JobId(number), query, row, priority: 0, arrival, deadline: arrival + deadline, predicted }
}
