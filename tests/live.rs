//! The live driver: the simulator's log under a manual clock, and honest endings under the real one.
//!
//! No test here asserts a time: what is checked is order, counts and words.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tandem::cost::machine_file::{
    AfterIdle, Crowding, DispatcherFile, DispatcherRounds, DispatcherStalls, InUse, LaneFile, Quantile, RoundCost,
    Stalls,
};
use tandem::cost::{
    BatchContention, BatchCost, BatchStream, Contention, Cost, CpuContention, MachineFile, MachineModel,
};
use tandem::exec::{Answers, ExecError, Execution, Executor, Hit, Pipeline, Request};
use tandem::ids::{DocId, JobId, QueryId};
use tandem::live::{self, Ending, Fleet, LaneWork, LiveError, LiveOutcome, LiveQuery, LiveRun, QuerySet};
use tandem::machine::{Class, Idle, Machine, PerClass};
use tandem::query::{Mode, Query};
use tandem::sched::{Ask, Job, Jobs, Lane, Next, Policy, PolicyFactory, PolicyKind, PolicyOptions};
use tandem::sim::{SimQuery, SimRun, simulate};
use tandem::time::Nanos;

const DEADLINE: Nanos = Nanos(40_000);

/// Few, small and often equal numbers, in microseconds: ties are where two loops would differ.
fn queries() -> impl Strategy<Value = Vec<SimQuery>> {
    let time = || (1u64..30).prop_map(|us| Nanos(us * 1000));
    // A query adds half of what it takes alone to a batch, or all of it; and takes the bus for as long, or not at all.
    let cost = || {
        (time(), 1u64..3, 0u64..2).prop_map(|(alone, halves, far)| Cost {
            alone,
            added: Nanos(alone.0 / halves),
            bus: Nanos(far * alone.0),
        })
    };
    let query = (cost(), cost(), cost(), cost()).prop_map(|(cpu, gpu, cpu_guess, gpu_guess)| {
        let costs = |cpu, gpu| {
            PerClass::from_fn(|class| match class {
                Class::CPU => cpu,
                Class::GPU => gpu,
                _ => Cost::NEVER,
            })
        };
        SimQuery { id: QueryId(0), service: costs(cpu, gpu), estimate: costs(cpu_guess, gpu_guess) }
    });
    prop::collection::vec(query, 1..8).prop_map(|mut queries| {
        for (query, id) in queries.iter_mut().zip(100..) {
            query.id = QueryId(id);
        }
        queries
    })
}

/// Gaps between arrivals, many of them zero, and which query arrives (taken modulo their number).
fn arrivals() -> impl Strategy<Value = Vec<(Nanos, u32)>> {
    prop::collection::vec((prop_oneof![Just(0u64), 0u64..20], any::<u32>()), 0..120).prop_map(|gaps| {
        let mut now = 0;
        gaps.into_iter()
            .map(|(gap, query)| {
                now += gap * 1000;
                (Nanos(now), query)
            })
            .collect()
    })
}

/// What a machine file and a workload's own company may say: lanes that take time to be told, speeds, noise and stalls, a GPU's
/// thread that prepares one batch while others, which overlap on the device, end, and whose slow batches follow each other, and
/// a driver that is held up so many times a second.
fn among_others(model: &MachineModel, stalls_per_s: f64, lasts_us: f64) -> MachineModel {
    let quantiles = |points: &[(f64, f64)]| points.iter().map(|&(share, value)| Quantile { share, value }).collect();
    let lanes = LaneFile {
        stream: 0.8,
        spacing: 0.6,
        in_use: vec![InUse { share: 0.0, times: 1.5, plus_us: 1.0 }, InUse { share: 1.0, times: 1.0, plus_us: 0.0 }],
        memory_ms: 0.1,
        after_idle: vec![
            AfterIdle { idle_us: 1.0, hand_over_us: 0.5, times: 1.0 },
            AfterIdle { idle_us: 50.0, hand_over_us: 3.0, times: 1.2 },
        ],
        hand_back_us: 1.0,
        crowding: vec![Crowding { busy: 1, times: 1.0 }, Crowding { busy: 3, times: 1.3 }],
        beside: BTreeMap::new(),
        batch_host: 1.2,
        batch_device: 0.9,
        speeds: quantiles(&[(0.0, 0.8), (1.0, 1.4)]),
        speed_lasts_ms: 0.05,
        noise: quantiles(&[(0.0, 0.9), (1.0, 1.2)]),
        stalls: Stalls { per_s: 20_000.0, us: quantiles(&[(0.0, 5.0), (1.0, 30.0)]) },
    };
    let stream = |queries, host, device, spacing| BatchStream {
        queries,
        host,
        prepared: 0.7,
        device,
        spacing,
        noise: quantiles(&[(0.0, 0.8), (1.0, 1.2)]),
        host_noise: quantiles(&[(0.0, 0.9), (0.9, 1.0), (1.0, 8.0)]),
        host_lasts_us: if queries > 2 { lasts_us } else { lasts_us / 4.0 },
    };
    let company = Contention {
        cpu: vec![CpuContention { busy: 1, times: 0.9 }, CpuContention { busy: 3, times: 1.2 }],
        cpu_beside_gpu: 1.1,
        gpu_batches: vec![
            BatchContention { busy_cpus: 0, host: 1.0, device: 1.0 },
            BatchContention { busy_cpus: 3, host: 1.4, device: 1.1 },
        ],
        gpu_streams: vec![stream(2, 3.0, 1.0, 0.3), stream(16, 2.0, 1.2, 1.0)],
        ..Contention::default()
    };
    let classes = [Class::CPU, Class::GPU].map(|class| (class, lanes.clone()));
    let each_ns = model.decision.0 as f64;
    let any = RoundCost { round_ns: 0.0, arrival_ns: each_ns, batch_ns: 0.0, answer_ns: each_ns };
    let dispatcher = DispatcherFile {
        rounds: vec![DispatcherRounds { lanes: 1, any, policies: BTreeMap::new() }],
        stalls: Stalls { per_s: stalls_per_s, us: quantiles(&[(0.0, 1.0), (0.8, 8.0), (1.0, 60.0)]) },
    };
    let file = MachineFile::new(BTreeMap::new(), Idle::Spin, classes.into(), dispatcher);
    file.model(model, Some(&company), |_| false)
}

/// CPU workers and GPUs of one or two streams, up to four batches deep, with and without batch costs; handing over and
/// deciding take nothing or something, or a machine file says what serving takes.
fn models() -> impl Strategy<Value = MachineModel> {
    let machine = (1usize..4, 1usize..3, 1usize..3, 1u32..5)
        .prop_map(|(cpus, gpus, streams, depth)| Machine::new(cpus, 0).with_gpus(gpus, streams, depth));
    let batches = BatchCost {
        host_fixed_us: 1.0,
        host_each_us: 1.0,
        exposed: None,
        device_fixed_us: 1.0,
        longest: 0.5,
        crowding: vec![(1, 2.0), (16, 1.0)],
        bus_crowding: Vec::new(),
        most_queries: 16,
    };
    let batches = prop_oneof![Just(None), Just(Some(batches))];
    let overhead = || prop_oneof![Just(0u64), 0u64..3000].prop_map(Nanos);
    let stalls_per_s = prop_oneof![Just(None), Just(Some(0.0)), Just(Some(20_000.0)), Just(Some(200_000.0))];
    let lasts_us = prop_oneof![Just(0.0), 1.0..50.0];
    (machine, batches, overhead(), overhead(), stalls_per_s, lasts_us).prop_map(
        |(machine, batches, handoff, decision, stalls_per_s, lasts_us)| {
            let model = MachineModel {
                batches: PerClass::two(None, batches),
                handoff: PerClass::two(handoff, handoff),
                decision,
                ..machine.into()
            };
            stalls_per_s.map_or(model.clone(), |per_s| among_others(&model, per_s, lasts_us))
        },
    )
}

proptest! {
    #[test]
    fn live_driver_with_manual_clock_logs_exactly_what_sim_logs(
        model in models(),
        queries in queries(),
        mut arrivals in arrivals(),
    ) {
        for (_, query) in &mut arrivals {
            *query %= queries.len() as u32;
        }
        let mut fleet = Fleet::recorded(model.clone(), queries.iter().map(|query| query.service).collect());
        let estimates: Vec<_> = queries.iter().map(|q| (q.id, q.estimate)).collect();
        let jobs = live::plan(arrivals.iter().copied(), &estimates, DEADLINE);
        for kind in PolicyKind::ALL {
            let policy = || kind.with(PolicyOptions::default()).build(&model).unwrap();
            let simulated = simulate(SimRun {
                model: &model,
                policy: policy(),
                queries: &queries,
                arrivals: arrivals.iter().copied(),
                deadline: DEADLINE,
                others: None,
            })
            .unwrap();
            let run = LiveRun { policy: policy(), jobs: &jobs, abandon_after: None, keep_journal: true };
            let driven = live::run_under_manual_clock(&mut fleet, run).unwrap();
            prop_assert_eq!(&driven.log, &simulated, "{}", kind);
            prop_assert!(matches!(driven.ending, Ending::Complete));
            prop_assert_eq!(driven.log.rows.len(), jobs.len());
            let has_stalls = model.dispatcher_time(kind.name()).stalls != DispatcherStalls::default();
            prop_assert!(model.decision > Nanos::ZERO || has_stalls || driven.lag.max == Nanos::ZERO);
            // Told the same once more, the policy decides the same.
            let parity = driven.journal.replay(&model.machine, policy(), &jobs, &driven.log);
            prop_assert_eq!((parity.same, parity.difference), (parity.batches, None));
            // Every event took its time, and nothing else did but what held the driver up.
            let decision = driven.decision.max;
            prop_assert!(jobs.is_empty() || decision == model.decision || (has_stalls && decision > model.decision));
        }
    }
}

#[test]
fn what_holds_the_driver_up_and_how_long_slow_batches_last_is_felt_by_both_loops() {
    let batches = BatchCost {
        host_fixed_us: 4.0,
        host_each_us: 1.0,
        exposed: None,
        device_fixed_us: 1.0,
        longest: 0.5,
        crowding: vec![(1, 2.0), (16, 1.0)],
        bus_crowding: Vec::new(),
        most_queries: 16,
    };
    let machine = Machine::new(2, 0).with_gpus(1, 1, 4);
    let plain = MachineModel { batches: PerClass::two(None, Some(batches)), decision: Nanos(50), ..machine.into() };
    let service = |i: u64| {
        let mut service = Cost::on_cpu_and_gpu(Nanos((10 + i) * 1000), Nanos((5 + i) * 1000));
        service[Class::GPU].added = Nanos((5 + i) * 300);
        service
    };
    let queries: Vec<SimQuery> =
        (0..8).map(|i| SimQuery { id: QueryId(i), service: service(i.into()), estimate: service(i.into()) }).collect();
    let arrivals: Vec<(Nanos, u32)> = (0..400).map(|i| (Nanos(u64::from(i) * 700), i * 7 % 8)).collect();
    let estimates: Vec<_> = queries.iter().map(|q| (q.id, q.estimate)).collect();
    let jobs = live::plan(arrivals.iter().copied(), &estimates, DEADLINE);
    // Lines, batches, and queries that are stolen from them.
    for kind in [PolicyKind::BestOf, PolicyKind::Adaptive, PolicyKind::Combined] {
        let simulated = |model: &MachineModel| {
            let (policy, arrivals) =
                (kind.with(PolicyOptions::default()).build(model).unwrap(), arrivals.iter().copied());
            simulate(SimRun { model, policy, queries: &queries, arrivals, deadline: DEADLINE, others: None }).unwrap()
        };
        let driven = |model: &MachineModel| {
            let mut fleet = Fleet::recorded(model.clone(), queries.iter().map(|query| query.service).collect());
            let policy = kind.with(PolicyOptions::default()).build(model).unwrap();
            let run = LiveRun { policy, jobs: &jobs, abandon_after: None, keep_journal: false };
            live::run_under_manual_clock(&mut fleet, run).unwrap().log
        };
        let both = among_others(&plain, 5000.0, 100.0);
        let (calm, forgetful) = (among_others(&plain, 0.0, 100.0), among_others(&plain, 5000.0, 0.0));
        assert_eq!(simulated(&both), driven(&both), "{kind}");
        assert_ne!(simulated(&both), driven(&calm), "{kind}");
        assert_ne!(simulated(&calm), driven(&both), "{kind}");
        if kind != PolicyKind::BestOf {
            assert_ne!(simulated(&both), driven(&forgetful), "{kind}");
            assert_ne!(simulated(&forgetful), driven(&both), "{kind}");
        }
    }
}

/// First come, first served, on any processor; counts what has arrived.
struct Fifo {
    arrived: Arc<AtomicU32>,
    batch: usize,
}

impl Policy for Fifo {
    fn name(&self) -> &str {
        "fifo"
    }

    fn arrive(&mut self, _job: &Job, _jobs: &Jobs, _now: Nanos) -> Ask {
        self.arrived.fetch_add(1, Ordering::Relaxed);
        Ask::Everyone
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

/// An executor whose answers a closure makes from the query's number in its log.
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

/// A fleet of one scripted CPU worker that knows the ten queries.
fn fleet(script: impl FnMut(u32) -> Result<Vec<Hit>, ExecError> + Send + 'static) -> Fleet {
    let work = vec![LaneWork::Executor(Box::new(Scripted(script)))];
    Fleet::spawn(Machine::new(1, 0).into(), work, ten_queries(), Vec::new()).unwrap()
}

/// Costs of a query that runs on CPUs only.
fn on_cpu(ns: u64) -> PerClass<Cost> {
    PerClass::from_fn(|class| if class == Class::CPU { Cost::alone(Nanos(ns)) } else { Cost::NEVER })
}

/// `count` jobs that all arrive at once and ask queries 0 to 9 in turn.
fn jobs_at_once(count: u32) -> Vec<Job> {
    let queries: Vec<_> = (0..10).map(|id| (QueryId(id), on_cpu(1000))).collect();
    live::plan((0..count).map(|i| (Nanos::ZERO, i % 10)), &queries, DEADLINE)
}

#[test]
fn jobs_are_released_whatever_the_backlog() {
    let arrived = Arc::new(AtomicU32::new(0));
    let seen = Arc::clone(&arrived);
    // The first query is answered only when all have been released: a driver that waited for answers would hang here.
    let mut fleet = fleet(move |_| {
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
    let run = LiveRun { policy: counting_fifo(&arrived), jobs: &jobs, abandon_after: None, keep_journal: false };
    let outcome = live::run(&mut fleet, run).unwrap();
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    assert_eq!(outcome.log.rows.len(), 50);
    assert_eq!((outcome.unreleased, outcome.unfinished), (0, 0));
}

#[test]
fn one_fleet_serves_many_runs() {
    let mut fleet = fleet(|_| Ok(one_hit(1.0)));
    for count in [0, 1, 30] {
        let jobs = jobs_at_once(count);
        let outcome =
            live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None, keep_journal: false })
                .unwrap();
        assert_eq!(outcome.log.rows.len(), count as usize);
    }
}

#[test]
fn an_executor_that_fails_ends_the_run_and_keeps_what_was_measured() {
    let mut fleet = fleet(|query| if query == 3 { Err(ExecError::BadK(0)) } else { Ok(one_hit(1.0)) });
    let jobs = jobs_at_once(8);
    let outcome =
        live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None, keep_journal: false })
            .unwrap();
    let Ending::Failed(LiveError::Executor { query, .. }) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert_eq!(query, QueryId(3));
    assert_eq!(outcome.log.rows.len(), 3);
    assert_eq!(outcome.unreleased + outcome.unfinished, 5);
    // The worker has survived.
    let jobs = jobs_at_once(3);
    let outcome =
        live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None, keep_journal: false })
            .unwrap();
    assert_eq!(outcome.log.rows.len(), 3);
}

#[test]
fn an_executor_that_panics_ends_the_run_with_an_error() {
    let mut fleet = fleet(|query| if query == 2 { panic!("on purpose") } else { Ok(one_hit(1.0)) });
    let jobs = jobs_at_once(5);
    let outcome =
        live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None, keep_journal: false })
            .unwrap();
    assert!(matches!(outcome.ending, Ending::Failed(LiveError::WorkerPanicked(_))), "{:?}", outcome.ending);
    assert_eq!(outcome.log.rows.len(), 2);
}

#[test]
fn an_answer_that_changes_ends_the_run_with_an_error() {
    let mut answers = 0u8;
    let mut fleet = fleet(move |_| {
        answers += 1;
        Ok(one_hit(if answers <= 10 { 1.0 } else { 1.5 }))
    });
    let jobs = jobs_at_once(20);
    let outcome =
        live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None, keep_journal: false })
            .unwrap();
    let Ending::Failed(error) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert!(error.to_string().starts_with("query 0 on cpu: its documents or scores differ"), "{error}");
    assert_eq!(outcome.log.rows.len(), 10);
}

#[test]
fn a_plan_that_the_fleet_cannot_run_is_refused_before_it_starts() {
    let jobs = jobs_at_once(3);
    let mut fleet = Fleet::recorded(Machine::new(1, 0).into(), Vec::new());
    let error =
        live::run(&mut fleet, LiveRun { policy: fifo(), jobs: &jobs, abandon_after: None, keep_journal: false })
            .unwrap_err();
    assert_eq!(error.to_string(), "query 0 has no recorded cpu time to replay");
}

#[test]
fn a_hopeless_backlog_is_given_up_and_accounted_for() {
    let mut fleet = Fleet::recorded(Machine::new(1, 0).into(), vec![on_cpu(100); 10]);
    let queries: Vec<_> = (0..10).map(|id| (QueryId(id), on_cpu(100))).collect();
    let jobs = live::plan((0..1000).map(|i| (Nanos(u64::from(i) * 10), i % 10)), &queries, DEADLINE);
    let run = LiveRun { policy: fifo(), jobs: &jobs, abandon_after: Some(Nanos(400)), keep_journal: false };
    let outcome = live::run_under_manual_clock(&mut fleet, run).unwrap();
    assert!(outcome.overloaded());
    assert!(outcome.unreleased > 0 && outcome.unfinished > 0);
    assert_eq!(outcome.log.rows.len() + outcome.unfinished + outcome.unreleased, 1000);
    // The backlog was seen as soon as it was too old, and what ran then was waited for.
    assert!(outcome.log.rows.iter().all(|row| row.delay() <= Nanos(400 + 10 + 100)));
}

/// A GPU that answers batches of at most `most` queries after it was polled a few times, two batches deep, in order.
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
    let mut fleet = Fleet::spawn(model, work, ten_queries(), Vec::new()).unwrap();
    let jobs = jobs_at_once(count);
    live::run(&mut fleet, LiveRun { policy: batched_fifo(3), jobs: &jobs, abandon_after: None, keep_journal: false })
        .unwrap()
}

#[test]
fn a_pipeline_is_kept_two_batches_deep_and_answers_every_query() {
    let outcome = run_on_pipeline(7, |_| 1.0);
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    let batches: Vec<u32> = outcome.log.rows.iter().map(|row| row.batch).collect();
    assert_eq!(batches, [0, 0, 0, 1, 1, 1, 2]);
    // The second began before the first had ended.
    assert!(outcome.log.rows[3].started < outcome.log.rows[0].finished);
}

#[test]
fn a_batch_that_a_pipeline_refuses_fails_in_its_turn() {
    let outcome = run_on_pipeline(9, |_| 1.0);
    let Ending::Failed(LiveError::Executor { query, .. }) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert_eq!(query, QueryId(6));
    assert_eq!(outcome.log.rows.len(), 6);
}

#[test]
fn a_pipelines_last_answers_are_checked_too() {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let outcome = {
        // The same six queries twice; the last answer is another.
        let gpu = ScriptedGpu {
            under_way: VecDeque::new(),
            score: |_| if ASKED.fetch_add(1, Ordering::Relaxed) == 11 { 2.0 } else { 1.0 },
        };
        let model = MachineModel::from(Machine::default().with_gpus(1, 1, 2));
        let work = vec![LaneWork::Executor(Box::new(gpu))];
        let mut fleet = Fleet::spawn(model, work, ten_queries(), Vec::new()).unwrap();
        let queries: Vec<_> = (0..10).map(|id| (QueryId(id), on_cpu(1000))).collect();
        let jobs = live::plan((0..12).map(|i| (Nanos::ZERO, i % 6)), &queries, DEADLINE);
        live::run(
            &mut fleet,
            LiveRun { policy: batched_fifo(6), jobs: &jobs, abandon_after: None, keep_journal: false },
        )
        .unwrap()
    };
    let Ending::Failed(LiveError::WrongAnswer { query, .. }) = outcome.ending else { panic!("{:?}", outcome.ending) };
    assert_eq!((query, outcome.log.rows.len()), (QueryId(5), 12));
}

#[test]
fn many_workers_sleep_and_wake_and_lose_nothing() {
    let worker = || LaneWork::Executor(Box::new(Scripted(|_| Ok(one_hit(1.0)))));
    let model = MachineModel::from(Machine::new(5, 0));
    let mut fleet = Fleet::spawn(model, (0..5).map(|_| worker()).collect(), ten_queries(), Vec::new()).unwrap();
    let queries: Vec<_> = (0..10).map(|id| (QueryId(id), on_cpu(1000))).collect();
    // Bursts of up to 20 jobs with pauses in which everybody falls asleep.
    let arrivals = (0..2000u32).map(|i| (Nanos(u64::from(i / 20) * 1_000_000), i % 10));
    let jobs = live::plan(arrivals, &queries, DEADLINE);
    let outcome = live::run(
        &mut fleet,
        LiveRun { policy: batched_fifo(2), jobs: &jobs, abandon_after: None, keep_journal: false },
    )
    .unwrap();
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    assert_eq!(outcome.log.rows.len(), 2000);
}

/// A machine of two CPU workers and a GPU two batches deep, costs of ten queries on it, and 300 jobs at random gaps.
fn small_machine() -> (MachineModel, Vec<PerClass<Cost>>, Vec<Job>) {
    let batches = BatchCost {
        host_fixed_us: 5.0,
        host_each_us: 1.0,
        exposed: None,
        device_fixed_us: 5.0,
        longest: 0.5,
        crowding: vec![(1, 2.0), (16, 1.0)],
        bus_crowding: Vec::new(),
        most_queries: 64,
    };
    let machine = Machine::new(2, 0).with_gpus(1, 1, 2);
    let model = MachineModel { batches: PerClass::two(None, Some(batches)), ..machine.into() };
    let cost = |us: u64| Cost { alone: Nanos(us * 1000), added: Nanos(us * 200), ..Cost::default() };
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
fn a_live_run_told_again_to_its_policy_decides_the_same() {
    let (model, costs, jobs) = small_machine();
    let lanes = [LaneWork::TimeWarp, LaneWork::Recorded, LaneWork::TimeWarp];
    let mut fleet = Fleet::spawn(model.clone(), lanes.into(), Arc::default(), costs).unwrap();
    for kind in PolicyKind::ALL {
        let policy = || kind.with(PolicyOptions::default()).build(&model).unwrap();
        let run = LiveRun { policy: policy(), jobs: &jobs, abandon_after: None, keep_journal: true };
        let LiveOutcome { log, journal, ending, .. } = live::run(&mut fleet, run).unwrap();
        assert!(matches!(ending, Ending::Complete), "{kind}: {ending:?}");
        let parity = journal.replay(&model.machine, policy(), &jobs, &log);
        assert_eq!((parity.same, parity.difference), (parity.batches, None), "{kind}");
        // Another log is told apart.
        let mut other = log.clone();
        other.rows[17].processor.0 ^= 1;
        let parity = journal.replay(&model.machine, policy(), &jobs, &other);
        assert!(parity.same < parity.batches && parity.difference.is_some(), "{kind}");
    }
}

#[test]
fn a_time_warped_batch_takes_what_was_recorded_and_no_less() {
    let (model, costs, jobs) = small_machine();
    let lanes = (0..3).map(|_| LaneWork::TimeWarp).collect();
    // What handing over costs is real here, and is not to be waited for as well.
    let slow = MachineModel { handoff: PerClass::from_fn(|_| Nanos(1_000_000_000_000)), ..model.clone() };
    let mut fleet = Fleet::spawn(slow, lanes, Arc::default(), costs.clone()).unwrap();
    let policy = PolicyKind::CpuOnly.with(PolicyOptions::default()).build(&model).unwrap();
    let run = LiveRun { policy, jobs: &jobs, abandon_after: None, keep_journal: false };
    let outcome = live::run(&mut fleet, run).unwrap();
    assert_eq!((outcome.log.rows.len(), outcome.unfinished), (jobs.len(), 0));
    for row in &outcome.log.rows {
        assert!(row.finished.since(row.started) >= costs[row.query.index()][Class::CPU].alone, "{row:?}");
    }
    let worked: Nanos = outcome.worked[Class::CPU];
    assert!(worked > Nanos::ZERO && outcome.handoff[Class::CPU].max > Nanos::ZERO);
}
