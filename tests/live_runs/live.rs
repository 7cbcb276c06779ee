//! The live driver under the real clock: honest endings, pipelines, many workers, every policy.
//!
//! No test here asserts a time: they check order, counts and words.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tandem::base::ids::{DocId, JobId, QueryId};
use tandem::base::machine::{Class, Machine, PerClass};
use tandem::base::time::Nanos;
use tandem::cost::{BatchCost, Cost, MachineModel, Parallelism, SpeedUp};
use tandem::live::{
    self, Ending, GapOf, LanePool, LaneWork, LiveError, LiveOutcome, LiveQuery, LiveRun, QuerySet, Record,
};
use tandem::query::Query;
use tandem::sched::{
    Job, Jobs, Lane, LanesToPoll, LogRow, Next, Policy, PolicyFactory, PolicyKind, PolicyOptions, ShedJob, Sink,
};
use tandem::search::{Answers, ExecError, Execution, Executor, Hit, Pipeline, Request};
use tandem::sim::Arrivals;
use tandem::study::Tally;
use tandem::traffic::{ArrivalProcess, Mode};

const DEADLINE: Nanos = Nanos(40_000);

/// First come, first served, on any processor; counts what has arrived.
struct Fifo {
    arrived: Arc<AtomicU32>,
    batch: usize,
}

impl Policy for Fifo {
    fn name(&self) -> &str {
        "fifo"
    }

    fn arrive(&mut self, _job: &Job, _jobs: &Jobs, _now: Nanos) -> LanesToPoll {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        LanesToPoll::Everyone
    }

    fn next(&mut self, _lane: Lane, jobs: &Jobs, _now: Nanos, batch: &mut Vec<JobId>) -> Next {
        batch.extend(jobs.iter_waiting().take(self.batch).map(|job| job.id));
        if batch.is_empty() { Next::Wait } else { Next::Run }
    }
}

fn fifo() -> Box<dyn Policy> {
    batched_fifo(1)
}

fn batched_fifo(batch: usize) -> Box<dyn Policy> {
    Box::new(Fifo { arrived: Arc::default(), batch })
}

fn counting_fifo(arrived: &Arc<AtomicU32>) -> Box<dyn Policy> {
    Box::new(Fifo { arrived: Arc::clone(arrived), batch: 1 })
}

/// An executor whose answers come from a closure of the query's number in its log.
struct Scripted<F>(F);

impl<F: FnMut(u32) -> Result<Vec<Hit>, ExecError> + Send> Executor for Scripted<F> {
    fn class(&self) -> Class {
        Class::CPU
    }

    fn device(&self) -> String {
        String::from("a script")
    }

    fn search(&mut self, query: &Query, _: Mode, _: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        *hits = (self.0)(query.id.0)?;
        Ok(Execution::default())
    }
}

fn one_hit(score: f32) -> Vec<Hit> {
    vec![Hit { doc: DocId(1), score }]
}

/// Queries 0 to 9, each with one result.
fn ten_queries() -> Arc<QuerySet> {
    let live = |id| LiveQuery {
        id: QueryId(id),
        query: Query { id: QueryId(id), label: id.to_string(), terms: Vec::new(), dropped_terms: 0 },
        mode: Mode::And,
        results: Some(1),
    };
    Arc::new(QuerySet::new(10, (0..10).map(live)))
}

/// A lane pool of one scripted CPU worker that knows the ten queries.
fn lane_pool(script: impl FnMut(u32) -> Result<Vec<Hit>, ExecError> + Send + 'static) -> LanePool {
    let work = vec![LaneWork::Executor(Box::new(Scripted(script)))];
    LanePool::spawn(Machine::new(1, 0).into(), work, ten_queries(), Vec::new()).unwrap()
}

/// Costs of a query that runs on CPUs only.
fn on_cpu(ns: u64) -> PerClass<Cost> {
    PerClass::from_fn(|class| if class == Class::CPU { Cost::alone(Nanos(ns)) } else { Cost::NEVER })
}

/// The longest gap of the lanes in a run of 40 queries, of which one is not answered for 300 ms.
fn longest_gap(profiled_ms: f64) -> Nanos {
    let script = Scripted(|id| {
        if id == 7 {
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        Ok(one_hit(1.0))
    });
    let costs: Vec<_> = (0..10).map(|id| on_cpu(if id == 7 { (profiled_ms * 1e6) as u64 } else { 50_000 })).collect();
    let work = vec![LaneWork::Executor(Box::new(script))];
    let mut lane_pool = LanePool::spawn(Machine::new(1, 0).into(), work, ten_queries(), costs.clone()).unwrap();
    let queries: Vec<_> = (0..10).map(QueryId).zip(costs).collect();
    let row = |i: u32| if i == 20 { 7 } else { i % 7 };
    let jobs = live::plan((0..40).map(|i| (Nanos(u64::from(i) * 2_000_000), row(i))), &queries, DEADLINE);
    let outcome = live::run(&mut lane_pool, LiveRun::new(fifo(), &jobs)).unwrap();
    assert_eq!(outcome.log.rows.len(), 40);
    let gaps = outcome.course.longest.iter().filter(|gap| gap.of == GapOf::Lanes);
    gaps.map(live::Gap::lasts).max().unwrap_or_default()
}

#[test]
fn a_query_far_beyond_its_profiled_time_is_a_gap() {
    let _alone = crate::alone();
    let gap = longest_gap(1.0);
    assert!(gap >= Nanos::from_ms(290.0), "{gap:?}");
    // At a quarter of its speed alone, the query explains 400 ms.
    let explained = longest_gap(100.0);
    assert!(explained < Nanos::from_ms(250.0), "{explained:?}");
}

/// `count` jobs that all arrive at once and ask queries 0 to 9 in turn.
fn jobs_at_once(count: u32) -> Vec<Job> {
    let queries: Vec<_> = (0..10).map(|id| (QueryId(id), on_cpu(1000))).collect();
    live::plan((0..count).map(|i| (Nanos::ZERO, i % 10)), &queries, DEADLINE)
}

#[test]
fn jobs_are_released_whatever_the_backlog() {
    let _alone = crate::alone();
    let arrived = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&arrived);
    // The first query is answered only after all have been released: a driver that waited for answers would hang here.
    let mut lane_pool = lane_pool(move |_| {
        let patience = Instant::now();
        while seen.load(Ordering::Relaxed) < 50 {
            assert!(
                patience.elapsed() < Duration::from_secs(60),
                "the driver waits for an answer before it releases more"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(one_hit(1.0))
    });
    let jobs = jobs_at_once(50);
    let run = LiveRun::new(counting_fifo(&arrived), &jobs);
    let outcome = live::run(&mut lane_pool, run).unwrap();
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    assert_eq!(outcome.log.rows.len(), 50);
    assert_eq!((outcome.unreleased, outcome.unfinished), (0, 0));
}

#[test]
fn one_lane_pool_serves_many_runs() {
    let _alone = crate::alone();
    let mut lane_pool = lane_pool(|_| Ok(one_hit(1.0)));
    for count in [0, 1, 30] {
        let jobs = jobs_at_once(count);
        let outcome = live::run(&mut lane_pool, LiveRun::new(fifo(), &jobs)).unwrap();
        assert_eq!(outcome.log.rows.len(), count as usize);
    }
}

#[test]
fn an_executor_that_fails_ends_the_run_and_keeps_what_was_measured() {
    let _alone = crate::alone();
    let mut lane_pool = lane_pool(|query| if query == 3 { Err(ExecError::BadK(0)) } else { Ok(one_hit(1.0)) });
    let jobs = jobs_at_once(8);
    let outcome = live::run(&mut lane_pool, LiveRun::new(fifo(), &jobs)).unwrap();
    let Ending::Failed(LiveError::Executor { query, .. }) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert_eq!(query, QueryId(3));
    assert_eq!(outcome.log.rows.len(), 3);
    assert_eq!(outcome.unreleased + outcome.unfinished, 5);
    let jobs = jobs_at_once(3);
    let outcome = live::run(&mut lane_pool, LiveRun::new(fifo(), &jobs)).unwrap();
    assert_eq!(outcome.log.rows.len(), 3);
}

#[test]
fn an_executor_that_panics_ends_the_run_with_an_error() {
    let _alone = crate::alone();
    let mut lane_pool = lane_pool(|query| if query == 2 { panic!("on purpose") } else { Ok(one_hit(1.0)) });
    let jobs = jobs_at_once(5);
    let outcome = live::run(&mut lane_pool, LiveRun::new(fifo(), &jobs)).unwrap();
    assert!(matches!(outcome.ending, Ending::Failed(LiveError::WorkerPanicked(_))), "{:?}", outcome.ending);
    assert_eq!(outcome.log.rows.len(), 2);
}

#[test]
fn an_answer_that_changes_ends_the_run_with_an_error() {
    let _alone = crate::alone();
    let mut answers = 0u8;
    let mut lane_pool = lane_pool(move |_| {
        answers += 1;
        Ok(one_hit(if answers <= 10 { 1.0 } else { 1.5 }))
    });
    let jobs = jobs_at_once(20);
    let outcome = live::run(&mut lane_pool, LiveRun::new(fifo(), &jobs)).unwrap();
    let Ending::Failed(error) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert!(error.to_string().starts_with("query 0 on cpu: its documents or scores differ"), "{error}");
    assert_eq!(outcome.log.rows.len(), 10);
}

#[test]
fn a_plan_that_the_lane_pool_cannot_run_is_refused_before_it_starts() {
    let _alone = crate::alone();
    let jobs = jobs_at_once(3);
    let mut lane_pool = LanePool::recorded(Machine::new(1, 0).into(), Vec::new());
    let error = live::run(&mut lane_pool, LiveRun::new(fifo(), &jobs)).unwrap_err();
    assert_eq!(error.to_string(), "query 0 has no recorded cpu time to replay");
}

#[test]
fn a_hopeless_backlog_is_given_up_and_accounted_for() {
    let _alone = crate::alone();
    let mut lane_pool = LanePool::recorded(Machine::new(1, 0).into(), vec![on_cpu(100); 10]);
    let queries: Vec<_> = (0..10).map(|id| (QueryId(id), on_cpu(100))).collect();
    let jobs = live::plan((0..1000).map(|i| (Nanos(u64::from(i) * 10), i % 10)), &queries, DEADLINE);
    let run = LiveRun { abandon_after: Some(Nanos(400)), ..LiveRun::new(fifo(), &jobs) };
    let outcome = live::run_under_manual_clock(&mut lane_pool, run, 0).unwrap();
    assert!(outcome.overloaded());
    assert!(outcome.unreleased > 0 && outcome.unfinished > 0);
    assert_eq!(outcome.log.rows.len() + outcome.unfinished + outcome.unreleased, 1000);
    // The backlog was noticed as soon as it was too old, and running queries were awaited.
    assert!(outcome.log.rows.iter().all(|row| row.delay() <= Nanos(400 + 10 + 100)));
}

/// A record that counts nothing and reports the run as lost once a query in flight is late, or never.
struct Lost(bool);

impl Sink for Lost {
    fn record(&mut self, _: &LogRow) {}

    fn shed(&mut self, _: &ShedJob) {}
}

impl Record for Lost {
    fn late_after(&self) -> Option<Nanos> {
        Some(Nanos::ZERO)
    }

    fn is_lost(&self, overdue: usize) -> bool {
        self.0 && overdue > 0
    }

    fn unanswered(&mut self, _: &Job, _: Nanos) {}
}

/// Drives 600 queries in 6 s under the manual clock. One takes 2 s, all others take `each_ms`.
fn run_with_a_pause(each_ms: f64, is_lost: bool) -> LiveOutcome {
    let cost = |id: u32| on_cpu(if id == 1 { 2_000_000_000 } else { (each_ms * 1e6) as u64 });
    let costs: Vec<_> = (0..10).map(cost).collect();
    let mut lane_pool = LanePool::recorded(Machine::new(1, 0).into(), costs.clone());
    let queries: Vec<_> = (0..10).map(QueryId).zip(costs).collect();
    let row = |i: u32| if i == 150 { 1 } else { 2 };
    let jobs = live::plan((0..600).map(|i| (Nanos(u64::from(i) * 10_000_000), row(i))), &queries, DEADLINE);
    let LiveRun { policy, jobs, .. } = LiveRun::new(fifo(), &jobs);
    let run = LiveRun { policy, jobs, abandon_after: None, keep: usize::MAX, record: Lost(is_lost) };
    live::run_under_manual_clock(&mut lane_pool, run, 0).unwrap()
}

#[test]
fn a_pause_of_two_seconds_ends_no_run_of_six_though_the_objective_is_lost() {
    let _alone = crate::alone();
    let outcome = run_with_a_pause(3.0, true);
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    assert_eq!(outcome.log.rows.len(), 600);
}

#[test]
fn a_run_is_given_up_only_if_it_is_lost_and_its_backlog_grows() {
    let _alone = crate::alone();
    let outcome = run_with_a_pause(15.0, true);
    assert!(outcome.overloaded() && outcome.unreleased > 0, "{outcome:?}");
    // Released queries without answer are counted.
    assert_eq!(outcome.log.rows.len() + outcome.unfinished + outcome.unreleased, 600);
    assert!(matches!(run_with_a_pause(15.0, false).ending, Ending::Complete));
}

/// The statistics of the lab's live runs.
struct Counted(Tally);

impl Sink for Counted {
    fn record(&mut self, row: &LogRow) {
        self.0.record(row);
    }

    fn shed(&mut self, job: &ShedJob) {
        self.0.shed(job);
    }
}

impl Record for Counted {
    fn late_after(&self) -> Option<Nanos> {
        None
    }

    fn is_lost(&self, _: usize) -> bool {
        false
    }

    fn unanswered(&mut self, _: &Job, _: Nanos) {}
}

/// Runs `count` queries at 100,000 a second under the manual clock, and keeps a log of a thousand or fewer.
fn run_long(count: usize) -> LiveOutcome {
    let costs = vec![on_cpu(5_000); 10];
    let machine = Machine::new(1, 0);
    let mut record = Counted(Tally::counting(&machine));
    let mut lane_pool = LanePool::recorded(machine.into(), costs.clone());
    let queries: Vec<_> = (0..10).map(QueryId).zip(costs).collect();
    let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, 3, count, 10);
    let jobs = live::plan_ahead(arrivals.at_rate(100_000.0), &queries, DEADLINE);
    let run = LiveRun { policy: fifo(), jobs, abandon_after: None, keep: 1000, record: &mut record };
    let outcome = live::run_under_manual_clock(&mut lane_pool, run, 0).unwrap();
    assert_eq!(record.0.summary().unwrap().queries, count);
    outcome
}

#[test]
fn memory_does_not_grow_with_the_run_and_a_long_log_is_a_sample_of_whole_batches() {
    const ALONE: &str = "TANDEM_MEASURES_MEMORY";
    const NAME: &str = "live::memory_does_not_grow_with_the_run_and_a_long_log_is_a_sample_of_whole_batches";
    if std::env::var_os(ALONE).is_none() {
        // Other tests use the memory of this process.
        let _alone = crate::alone();
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", NAME, "--nocapture"]).env(ALONE, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    // The first run allocates the memory that any run needs.
    let short_rows = run_long(1_000_000).log.rows.len();
    let before = crate::heap::peak_bytes();
    let count = if cfg!(debug_assertions) { 5_000_000 } else { 30_000_000 };
    let long = run_long(count);
    let after = crate::heap::peak_bytes();
    println!("{before} bytes after 1,000,000 queries, {after} bytes after {count}");
    assert!(after * 100 <= before * 101, "{before} bytes after 1,000,000 queries, {after} bytes after {count}");
    assert_eq!((long.unreleased, long.unfinished), (0, 0));
    assert!((500..=1000).contains(&long.log.rows.len()), "{}", long.log.rows.len());
    assert_eq!(long.log.rows[1].batch, (count / 1000).next_power_of_two() as u32);
    assert!(long.rounds.len() < 5000, "{}", long.rounds.len());
    // Histograms count the times of all queries.
    assert!(short_rows > 500 && long.decision.max >= long.decision.p99);
}

/// A GPU two batches deep that answers batches of at most `most` queries in order, each after a few polls.
struct ScriptedGpu {
    under_way: VecDeque<(Vec<u32>, u32)>,
    score: fn(u32) -> f32,
}

impl Executor for ScriptedGpu {
    fn class(&self) -> Class {
        Class::GPU
    }

    fn device(&self) -> String {
        String::from("a script")
    }

    fn search(&mut self, query: &Query, _: Mode, _: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        *hits = one_hit((self.score)(query.id.0));
        Ok(Execution::default())
    }

    fn pipeline(&mut self) -> Option<&mut dyn Pipeline> {
        Some(self)
    }
}

impl Pipeline for ScriptedGpu {
    fn depth(&self) -> usize {
        2
    }

    fn submit(&mut self, batch: &[Request<'_>]) -> Result<(), ExecError> {
        assert!(self.under_way.len() < 2, "there is no room");
        if batch.iter().any(|request| request.query.id == QueryId(7)) {
            return Err(ExecError::BadK(7));
        }
        self.under_way.push_back((batch.iter().map(|request| request.query.id.0).collect(), 3));
        Ok(())
    }

    fn poll(&mut self, answers: &mut Answers) -> Option<Result<Execution, ExecError>> {
        let (_, polls) = self.under_way.front_mut()?;
        *polls -= 1;
        if *polls > 0 {
            return None;
        }
        let (batch, _) = self.under_way.pop_front()?;
        answers.clear();
        batch.iter().for_each(|&id| answers.push(&one_hit((self.score)(id))));
        Some(Ok(Execution::default()))
    }
}

/// Runs `count` jobs in batches of three on one GPU with a pipeline.
fn run_on_pipeline(count: u32, score: fn(u32) -> f32) -> LiveOutcome {
    let gpu = ScriptedGpu { under_way: VecDeque::new(), score };
    let model = MachineModel::from(Machine::default().with_gpus(1, 1, 2));
    let work = vec![LaneWork::Executor(Box::new(gpu))];
    let mut lane_pool = LanePool::spawn(model, work, ten_queries(), Vec::new()).unwrap();
    let jobs = jobs_at_once(count);
    live::run(&mut lane_pool, LiveRun::new(batched_fifo(3), &jobs)).unwrap()
}

#[test]
fn a_pipeline_is_kept_two_batches_deep_and_answers_every_query() {
    let _alone = crate::alone();
    let outcome = run_on_pipeline(7, |_| 1.0);
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    let batches: Vec<u32> = outcome.log.rows.iter().map(|row| row.batch).collect();
    assert_eq!(batches, [0, 0, 0, 1, 1, 1, 2]);
    // The second batch began before the first had ended.
    assert!(outcome.log.rows[3].started < outcome.log.rows[0].finished);
}

#[test]
fn a_batch_that_a_pipeline_refuses_fails_in_its_turn() {
    let _alone = crate::alone();
    let outcome = run_on_pipeline(9, |_| 1.0);
    let Ending::Failed(LiveError::Executor { query, .. }) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert_eq!(query, QueryId(6));
    assert_eq!(outcome.log.rows.len(), 6);
}

#[test]
fn a_pipelines_last_answers_are_checked_too() {
    let _alone = crate::alone();
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let outcome = {
        // The six queries come twice; the last answer differs.
        let gpu = ScriptedGpu {
            under_way: VecDeque::new(),
            score: |_| if ASKED.fetch_add(1, Ordering::Relaxed) == 11 { 2.0 } else { 1.0 },
        };
        let model = MachineModel::from(Machine::default().with_gpus(1, 1, 2));
        let work = vec![LaneWork::Executor(Box::new(gpu))];
        let mut lane_pool = LanePool::spawn(model, work, ten_queries(), Vec::new()).unwrap();
        let queries: Vec<_> = (0..10).map(|id| (QueryId(id), on_cpu(1000))).collect();
        let jobs = live::plan((0..12).map(|i| (Nanos::ZERO, i % 6)), &queries, DEADLINE);
        live::run(&mut lane_pool, LiveRun::new(batched_fifo(6), &jobs)).unwrap()
    };
    let Ending::Failed(LiveError::WrongAnswer { query, .. }) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert_eq!((query, outcome.log.rows.len()), (QueryId(5), 12));
}

#[test]
fn many_workers_sleep_and_wake_and_lose_nothing() {
    let _alone = crate::alone();
    let worker = || LaneWork::Executor(Box::new(Scripted(|_| Ok(one_hit(1.0)))));
    let model = MachineModel::from(Machine::new(5, 0));
    let mut lane_pool = LanePool::spawn(model, (0..5).map(|_| worker()).collect(), ten_queries(), Vec::new()).unwrap();
    let queries: Vec<_> = (0..10).map(|id| (QueryId(id), on_cpu(1000))).collect();
    // Bursts of up to 20 jobs alternate with pauses in which all threads fall asleep.
    let arrivals = (0..2000u32).map(|i| (Nanos(u64::from(i / 20) * 1_000_000), i % 10));
    let jobs = live::plan(arrivals, &queries, DEADLINE);
    let outcome = live::run(&mut lane_pool, LiveRun::new(batched_fifo(2), &jobs)).unwrap();
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    assert_eq!(outcome.log.rows.len(), 2000);
}

/// A machine of two CPU workers and a GPU two batches deep, with costs of ten queries, and 300 jobs at random gaps.
fn small_machine() -> (MachineModel, Vec<PerClass<Cost>>, Vec<Job>) {
    let batches = BatchCost {
        host_fixed_us: 5.0,
        host_each_us: 1.0,
        exposed: None,
        device_fixed_us: 5.0,
        longest: 0.5,
        crowding: vec![(1, 2.0), (16, 1.0)],
        most_queries: 64,
    };
    let machine = Machine::new(2, 0).with_gpus(1, 1, 2);
    // The times are short, so that all queries are long and lanes join at once.
    let parallelism = Some(Arc::new(Parallelism::of(SpeedUp::of_all(vec![1.0, 2.0]), (1..99).map(Nanos).collect())));
    let model = MachineModel { batches: PerClass::two(None, Some(batches)), parallelism, ..machine.into() };
    let cost = |us: u64| Cost { alone: Nanos(us * 1000), added: Nanos(us * 200) };
    let costs: Vec<_> = (0..10)
        .map(|i| {
            PerClass::from_fn(|class| match class {
                Class::CPU => Cost::alone(Nanos(20_000 + 3000 * i)),
                Class::GPU => cost(15 + 2 * i),
                _ => Cost::NEVER,
            })
        })
        .collect();
    let queries: Vec<_> = (0..).map(QueryId).zip(costs.iter().copied()).collect();
    let arrivals = (0..300u32).map(|i| (Nanos(u64::from(i * i % 97) * 100 + u64::from(i) * 12_000), i % 10));
    let mut arrivals: Vec<_> = arrivals.collect();
    arrivals.sort();
    let jobs = live::plan(arrivals, &queries, Nanos(1_000_000_000));
    (model, costs, jobs)
}

#[test]
fn every_policy_completes_its_run_on_recorded_and_time_warped_lanes() {
    let _alone = crate::alone();
    let (model, costs, jobs) = small_machine();
    let lanes = [LaneWork::TimeWarp, LaneWork::Recorded, LaneWork::TimeWarp];
    let mut lane_pool = LanePool::spawn(model.clone(), lanes.into(), Arc::default(), costs).unwrap();
    for kind in PolicyKind::ALL {
        let policy = kind.with(PolicyOptions::default()).build(&model).unwrap();
        let run = LiveRun::new(policy, &jobs);
        let LiveOutcome { log, ending, .. } = live::run(&mut lane_pool, run).unwrap();
        assert!(matches!(ending, Ending::Complete), "{kind}: {ending:?}");
        assert_eq!(log.rows.iter().map(|row| row.job.index()).collect::<Vec<_>>(), (0..jobs.len()).collect::<Vec<_>>());
    }
}

#[test]
fn a_time_warped_batch_takes_what_was_recorded_and_no_less() {
    let _alone = crate::alone();
    let (model, costs, jobs) = small_machine();
    let lanes = (0..3).map(|_| LaneWork::TimeWarp).collect();
    // Hand-over is real here; its recorded cost must not be added.
    let slow = MachineModel { handoff: PerClass::from_fn(|_| Nanos(1_000_000_000_000)), ..model.clone() };
    let mut lane_pool = LanePool::spawn(slow, lanes, Arc::default(), costs.clone()).unwrap();
    let policy = PolicyKind::CpuOnly.with(PolicyOptions::default()).build(&model).unwrap();
    let run = LiveRun::new(policy, &jobs);
    let outcome = live::run(&mut lane_pool, run).unwrap();
    assert_eq!((outcome.log.rows.len(), outcome.unfinished), (jobs.len(), 0));
    for row in &outcome.log.rows {
        assert!(row.finished.since(row.started) >= costs[row.query.index()][Class::CPU].alone, "{row:?}");
    }
    let worked: Nanos = outcome.worked[Class::CPU];
    assert!(worked > Nanos::ZERO && outcome.handoff[Class::CPU].max > Nanos::ZERO);
}
