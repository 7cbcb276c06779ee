//! Lanes that fail in the middle of a run: no query is lost or answered twice, and the run reports the faults.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use tandem::base::ids::{DocId, JobId, ProcessorId, QueryId};
use tandem::base::machine::{Class, FaultKind, FaultPlan, LaneFault, Machine, PerClass, PlannedFault};
use tandem::base::time::Nanos;
use tandem::cost::{Cost, MachineModel};
use tandem::live::{
    self, Ending, Faulty, LanePool, LaneWork, LiveError, LiveOutcome, LiveQuery, LiveRun, QuerySet, RunClock,
};
use tandem::query::Query;
use tandem::sched::{Job, Jobs, Lane, LanesToPoll, Next, Policy};
use tandem::search::device::GpuError;
use tandem::search::{Answers, ExecError, Execution, Executor, Hit, Pipeline, Request};
use tandem::traffic::Mode;

/// First come, first served, in batches, on any lane.
struct Fifo(usize);

impl Policy for Fifo {
    fn name(&self) -> &str {
        "fifo"
    }

    fn arrive(&mut self, _: &Job, _: &Jobs, _: Nanos) -> LanesToPoll {
        LanesToPoll::Everyone
    }

    fn next(&mut self, _: Lane, jobs: &Jobs, _: Nanos, batch: &mut Vec<JobId>) -> Next {
        batch.extend(jobs.iter_waiting().take(self.0).map(|job| job.id));
        if batch.is_empty() { Next::Wait } else { Next::Run }
    }
}

/// First come, first served, on one lane alone.
struct Only(ProcessorId, Fifo);

impl Policy for Only {
    fn name(&self) -> &str {
        "only"
    }

    fn arrive(&mut self, job: &Job, jobs: &Jobs, now: Nanos) -> LanesToPoll {
        self.1.arrive(job, jobs, now)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, now: Nanos, batch: &mut Vec<JobId>) -> Next {
        if lane.processor == self.0 { self.1.next(lane, jobs, now, batch) } else { Next::Wait }
    }
}

/// The failures of an executor, from the call of this number on.
#[derive(Clone, Copy, Debug)]
struct Failing {
    from_call: u32,
    panics: bool,
}

impl Failing {
    const NEVER: Self = Self { from_call: u32::MAX, panics: false };

    fn check(self, calls: u32) -> Result<(), ExecError> {
        match (calls >= self.from_call, self.panics) {
            (false, _) => Ok(()),
            (true, false) => Err(GpuError::Failed { doing: "a script".into(), message: "on purpose".into() }.into()),
            // The panic prints no message, which would take long.
            (true, true) => std::panic::resume_unwind(Box::new("on purpose")),
        }
    }
}

/// An executor that finds one document, the query's own number: query by query, or two batches deep where it has a
/// pipeline.
struct Scripted {
    class: Class,
    failing: Failing,
    calls: u32,
    answered: Arc<AtomicU32>,
    under_way: VecDeque<(Vec<u32>, u32)>,
}

impl Scripted {
    fn new(class: Class, failing: Failing, answered: &Arc<AtomicU32>) -> Self {
        Self { class, failing, calls: 0, answered: Arc::clone(answered), under_way: VecDeque::new() }
    }

    fn check(&mut self) -> Result<(), ExecError> {
        self.calls += 1;
        self.failing.check(self.calls)
    }

    fn hit(query: u32) -> Hit {
        Hit { doc: DocId(query), score: 1.0 }
    }
}

impl Executor for Scripted {
    fn class(&self) -> Class {
        self.class
    }

    fn device(&self) -> String {
        String::from("a script")
    }

    fn search(&mut self, query: &Query, _: Mode, _: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        self.check()?;
        self.answered.fetch_add(1, Ordering::Relaxed);
        *hits = vec![Self::hit(query.id.0)];
        Ok(Execution::default())
    }

    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        if self.class.is_gpu() { Some(self) } else { None }
    }
}

impl Pipeline for Scripted {
    fn depth(&self) -> usize {
        2
    }

    fn submit(&mut self, batch: &[Request<'_>]) -> Result<(), ExecError> {
        self.check()?;
        self.under_way.push_back((batch.iter().map(|request| request.query.id.0).collect(), 3));
        Ok(())
    }

    fn poll(&mut self, answers: &mut Answers) -> Option<Result<Execution, ExecError>> {
        let (_, polls) = self.under_way.front_mut()?;
        *polls -= 1;
        if *polls > 0 {
            return None;
        }
        if let Err(fault) = self.check() {
            return Some(Err(fault));
        }
        let (batch, _) = self.under_way.pop_front()?;
        answers.clear();
        batch.iter().for_each(|&id| answers.push(&[Self::hit(id)]));
        self.answered.fetch_add(batch.len() as u32, Ordering::Relaxed);
        Some(Ok(Execution { device_us: Some(70.0), host_us: Some(5.0) }))
    }
}

fn queries() -> Arc<QuerySet> {
    let live = |id| LiveQuery {
        id: QueryId(id),
        query: Query { id: QueryId(id), label: String::new(), terms: Vec::new(), dropped_terms: 0 },
        mode: Mode::And,
        results: Some(1),
    };
    Arc::new(QuerySet::new(10, (0..10).map(live)))
}

fn jobs(count: u32) -> Vec<Job> {
    let costs = PerClass::from_fn(|_| Cost::alone(Nanos(1000)));
    let queries: Vec<_> = (0..10).map(|id| (QueryId(id), costs)).collect();
    live::plan((0..count).map(|i| (Nanos::ZERO, i % 10)), &queries, Nanos::MAX)
}

const WATCHDOG: Nanos = Nanos(300_000_000);

/// Runs jobs in batches on a machine of one CPU worker and one GPU.
fn run(work: Vec<LaneWork>, count: u32, batch: usize, clock: RunClock) -> LiveOutcome {
    let mut lane_pool = lane_pool(work, clock);
    run_on(&mut lane_pool, count, Box::new(Fifo(batch)))
}

fn lane_pool(work: Vec<LaneWork>, clock: RunClock) -> LanePool {
    let faults = FaultPlan::new(Vec::new(), WATCHDOG);
    let model = MachineModel { faults, ..Machine::new(1, 0).with_gpus(1, 1, 2).into() };
    let mut lane_pool = LanePool::spawn(model, work, queries(), Vec::new()).unwrap();
    lane_pool.set_run_clock(clock);
    lane_pool
}

fn run_on(lane_pool: &mut LanePool, count: u32, policy: Box<dyn Policy>) -> LiveOutcome {
    let jobs = jobs(count);
    live::run(lane_pool, LiveRun::new(policy, &jobs)).unwrap()
}

/// Checks that every query was answered, and each answer taken once.
fn assert_whole(outcome: &LiveOutcome, count: u32) {
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    assert_eq!((outcome.unreleased, outcome.unfinished), (0, 0));
    let ids: Vec<u32> = outcome.log.rows.iter().map(|row| row.job.0).collect();
    assert_eq!(ids, (0..count).collect::<Vec<_>>());
}

fn failing() -> impl Strategy<Value = Failing> {
    let fails = (1u32..40, any::<bool>()).prop_map(|(from_call, panics)| Failing { from_call, panics });
    prop_oneof![1 => Just(Failing::NEVER), 4 => fails]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn no_query_is_lost_or_run_twice_whichever_lane_fails(
        cpu in failing(),
        gpu in failing(),
        count in 0u32..120,
        batch in 1usize..8,
    ) {
        let answered = Arc::default();
        let lane = |class, failing| {
            let fallback = Scripted::new(Class::CPU, Failing::NEVER, &answered);
            LaneWork::WithFallback(Box::new(Scripted::new(class, failing, &answered)), Box::new(fallback))
        };
        let work = vec![lane(Class::CPU, cpu), lane(Class::GPU, gpu)];
        let outcome = run(work, count, batch, RunClock::default());
        assert_whole(&outcome, count);
        // Rows show the queries that ran again, with their lane.
        let failed = |lane: ProcessorId| outcome.log.faults.iter().any(|fault| fault.processor == lane);
        prop_assert!(outcome.log.rows.iter().all(|row| !row.again || failed(row.processor)));
        prop_assert_eq!(outcome.log.rows.iter().any(|row| row.again), !outcome.log.faults.is_empty());
        // Each lane fails at most once: a failed executor is not called again.
        let lanes: Vec<ProcessorId> = outcome.log.faults.iter().map(|fault| fault.processor).collect();
        prop_assert!(lanes.len() <= 2 && (lanes.len() < 2 || lanes[0] != lanes[1]), "{lanes:?}");
        prop_assert!(outcome.log.faults.iter().all(|fault| fault.queries > 0 && !fault.what.is_empty()));
        // Unused answers belong to batches that a failed lane still held.
        let again = outcome.log.rows.iter().filter(|row| row.again).count();
        let answered = answered.load(Ordering::Relaxed) as usize;
        prop_assert!((count as usize..=count as usize + again).contains(&answered), "{answered} answers");
    }
}

#[test]
fn times_of_batches_and_rounds_of_the_driver_add_up() {
    let answered = Arc::default();
    let lane = |class| LaneWork::Executor(Box::new(Scripted::new(class, Failing::NEVER, &answered)));
    let began = std::time::Instant::now();
    let mut lane_pool = lane_pool(vec![lane(Class::CPU), lane(Class::GPU)], RunClock::default());
    // Times since the spawn differ from durations within the run.
    std::thread::sleep(Duration::from_millis(300));
    let begun = began.elapsed();
    let outcome = run_on(&mut lane_pool, 200, Box::new(Fifo(3)));
    let took = Nanos((began.elapsed() - begun).as_nanos() as u64);
    assert_whole(&outcome, 200);
    for class in [Class::CPU, Class::GPU] {
        let on_class = outcome.served.iter().filter(|batch| lane_pool.machine().class(batch.processor) == class);
        let worked = on_class.map(|batch| batch.worked).fold(Nanos::ZERO, |sum, worked| sum + worked);
        assert_eq!(worked, outcome.worked[class]);
    }
    for batch in outcome.served.iter().filter(|batch| batch.overlaps()) {
        assert_eq!(batch.device, Nanos(70_000));
        assert!(batch.host >= Nanos(5_000) && batch.host <= took + Nanos(5_000) && batch.prepared <= took, "{batch:?}");
    }
    assert!(outcome.served.iter().any(|batch| batch.overlaps()));
    assert_eq!(outcome.rounds.iter().map(|round| round.batches as usize).sum::<usize>(), outcome.served.len());
    assert_eq!(outcome.rounds.iter().map(|round| round.answers).sum::<u32>(), 200);
    assert!(!outcome.driver_time.is_zero());
    assert!(outcome.lag_warning(Nanos(1)).is_some() && outcome.lag_warning(Nanos::MAX).is_none());
}

#[test]
fn a_lane_with_recorded_times_is_known_from_one_with_a_thread() {
    let answered = Arc::default();
    let machine = Machine::new(1, 0).with_gpus(1, 1, 2);
    let work =
        vec![LaneWork::Executor(Box::new(Scripted::new(Class::CPU, Failing::NEVER, &answered))), LaneWork::Recorded];
    let recorded = vec![PerClass::from_fn(|_| Cost::alone(Nanos(1000))); 10];
    let lane_pool = LanePool::spawn(machine.into(), work, queries(), recorded).unwrap();
    assert_eq!([0, 1].map(|lane| lane_pool.is_replayed(ProcessorId(lane))), [false, true]);
}

#[test]
fn a_lane_whose_fallback_fails_too_ends_the_run_with_an_error() {
    let answered = Arc::default();
    let always = Failing { from_call: 1, panics: false };
    let broken = || Box::new(Scripted::new(Class::CPU, always, &answered));
    let sound = Box::new(Scripted::new(Class::GPU, Failing::NEVER, &answered));
    let work = vec![LaneWork::WithFallback(broken(), broken()), LaneWork::Executor(sound)];
    let outcome = run(work, 20, 1, RunClock::default());
    assert!(matches!(outcome.ending, Ending::Failed(_)), "{:?}", outcome.ending);
    assert_eq!(outcome.log.faults.len(), 1);
}

/// An executor that hangs at every query 3 until the test releases it.
struct Hanging {
    may_go_on: Arc<AtomicU32>,
    /// Time that it takes before its next query, once.
    pause: Duration,
}

impl Executor for Hanging {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        String::from("a script")
    }

    fn search(&mut self, query: &Query, _: Mode, _: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        std::thread::sleep(std::mem::take(&mut self.pause));
        while query.id.0 == 3 && self.may_go_on.load(Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        *hits = vec![Scripted::hit(query.id.0)];
        Ok(Execution::default())
    }
}

/// Lets hanging executors go on when a test ends, however it ends.
struct Release(Arc<AtomicU32>);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.store(1, Ordering::Relaxed);
    }
}

const LOST_AFTER: Nanos = Nanos(500_000_000);

#[test]
fn a_hanging_lane_without_a_fallback_ends_the_run() {
    let may_go_on = Arc::new(AtomicU32::new(0));
    let answered = Arc::default();
    let faults = FaultPlan { lost_after: LOST_AFTER, ..FaultPlan::new(Vec::new(), WATCHDOG) };
    let model = MachineModel { faults, ..Machine::new(1, 0).with_gpus(1, 1, 2).into() };
    let sound = Box::new(Scripted::new(Class::GPU, Failing::NEVER, &answered));
    let hanging = Hanging { may_go_on: Arc::clone(&may_go_on), pause: Duration::ZERO };
    let work = vec![LaneWork::Executor(Box::new(hanging)), LaneWork::Executor(sound)];
    let mut lane_pool = LanePool::spawn(model, work, queries(), Vec::new()).unwrap();
    let outcome = run_on(&mut lane_pool, 20, Box::new(Only(ProcessorId(0), Fifo(1))));
    // Completed queries are kept, with the reason why there are no more.
    let Ending::Failed(error) = &outcome.ending else { panic!("{:?}", outcome.ending) };
    let told =
        "lane 0 was at one batch for more than 0.5 s, and has no fallback executor to go on with: it is given up";
    assert_eq!(error.to_string(), told);
    assert_eq!((outcome.log.rows.len(), outcome.unfinished), (3, 17));
    // No later run uses the lane, and the lane pool does not wait for it when dropped.
    let jobs = jobs(1);
    let again = LiveRun::new(Box::new(Fifo(1)), &jobs);
    assert_eq!(live::run(&mut lane_pool, again).unwrap_err().to_string(), told);
    assert_eq!(lane_pool.warm_up(Duration::from_millis(1)).unwrap_err().to_string(), told);
    drop(lane_pool);
    may_go_on.store(1, Ordering::Relaxed);
}

#[test]
fn a_lane_that_is_given_up_leaves_the_others_under_watch() {
    let may_go_on = Arc::new(AtomicU32::new(0));
    let hanging = |pause_ms| {
        let pause = Duration::from_millis(pause_ms);
        LaneWork::Executor(Box::new(Hanging { may_go_on: Arc::clone(&may_go_on), pause }))
    };
    let faults = FaultPlan { lost_after: LOST_AFTER, ..FaultPlan::new(Vec::new(), WATCHDOG) };
    let model = MachineModel { faults, ..Machine::new(2, 0).into() };
    let mut lane_pool = LanePool::spawn(model, vec![hanging(0), hanging(50)], queries(), Vec::new()).unwrap();
    let _release = Release(may_go_on);
    // One lane hangs at query 3, the other some time later at query 13, which is the same one.
    let outcome = run_on(&mut lane_pool, 20, Box::new(Fifo(1)));
    assert!(matches!(outcome.ending, Ending::Failed(LiveError::LaneHangs { .. })), "{:?}", outcome.ending);
    assert_eq!((outcome.log.rows.len(), outcome.unfinished), (12, 8));
}

/// The faults of a run in which lane `lane` fails as planned and all faults are survived.
fn planned(lane: u32, kind: FaultKind, lasts_ms: u64) -> Vec<LaneFault> {
    let answered = Arc::default();
    let clock = RunClock::default();
    let processor = ProcessorId(lane);
    let planned = PlannedFault { at: Nanos::ZERO, processor, kind, lasts: Nanos(lasts_ms * 1_000_000) };
    let fallback = || Box::new(Scripted::new(Class::CPU, Failing::NEVER, &answered));
    let lane_of = |number: u32| {
        let class = if number == 0 { Class::CPU } else { Class::GPU };
        let own = Box::new(Scripted::new(class, Failing::NEVER, &answered));
        if number == lane {
            LaneWork::WithFallback(Box::new(Faulty::new(own, vec![planned], clock.clone())), fallback())
        } else {
            LaneWork::Executor(own)
        }
    };
    let mut lane_pool = lane_pool(vec![lane_of(0), lane_of(1)], clock.clone());
    let policy = || Box::new(Only(processor, Fifo(3)));
    let outcome = run_on(&mut lane_pool, 60, policy());
    assert_whole(&outcome, 60);
    let retired = if outcome.log.faults.iter().any(|fault| fault.is_retired) { vec![processor] } else { Vec::new() };
    assert_eq!(lane_pool.retired(), retired);
    // The lane continues in the next run.
    assert_whole(&run_on(&mut lane_pool, 60, policy()), 60);
    outcome.log.faults
}

#[test]
fn every_planned_fault_is_survived_and_told_on_either_lane() {
    for lane in [0, 1] {
        for kind in [FaultKind::Error, FaultKind::Panic, FaultKind::Hang] {
            let faults = planned(lane, kind, 0);
            assert_eq!(faults.len(), 1, "{kind}: {faults:?}");
            let LaneFault { processor, kind: told, queries, is_retired, .. } = faults[0];
            assert_eq!((processor, told, is_retired), (ProcessorId(lane), kind, true));
            assert!((1..=3).contains(&queries));
        }
        // A stall passes, unless the watchdog ends the wait: another thread then takes over, and the first one comes too
        // late.
        assert_eq!(planned(lane, FaultKind::Stall, 1), []);
        let faults = planned(lane, FaultKind::Stall, 1500);
        assert!(faults.len() == 1 && faults[0].kind == FaultKind::Hang && faults[0].is_retired, "{faults:?}");
        assert!(faults[0].at >= WATCHDOG, "{faults:?}");
        // A lane without memory is tried again, for three batches.
        let faults = planned(lane, FaultKind::Memory, 600_000);
        let retired: Vec<bool> = faults.iter().map(|fault| fault.is_retired).collect();
        assert!(faults.iter().all(|fault| fault.kind == FaultKind::Memory), "{faults:?}");
        assert_eq!(retired, [false, false, true]);
    }
}

#[test]
fn a_request_that_no_executor_takes_is_no_fault_of_the_lane() {
    struct Refusing;
    impl Executor for Refusing {
        fn class(&self) -> Class {
            Class::CPU
        }
        fn device(&self) -> String {
            String::from("a refusal")
        }
        fn search(&mut self, _: &Query, _: Mode, k: usize, _: &mut Vec<Hit>) -> Result<Execution, ExecError> {
            Err(ExecError::BadK(k))
        }
    }
    let answered = Arc::default();
    let sound = |class| Box::new(Scripted::new(class, Failing::NEVER, &answered));
    let work = vec![
        LaneWork::WithFallback(Box::new(Refusing), sound(Class::CPU)),
        LaneWork::WithFallback(sound(Class::GPU), sound(Class::CPU)),
    ];
    let outcome = run(work, 20, 1, RunClock::default());
    assert!(matches!(outcome.ending, Ending::Failed(_)) && outcome.log.faults.is_empty(), "{:?}", outcome.ending);
}
