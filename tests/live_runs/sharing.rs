//! Queries on several lanes of real executors: answers equal the exhaustive ones, and nothing is lost, repeated or left hanging.
//!
//! No test here asserts a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tandem::base::ids::{JobId, ProcessorId, QueryId, TermId};
use tandem::base::machine::{Class, FaultKind, FaultPlan, Machine, PerClass, PlannedFault};
use tandem::base::random::Random;
use tandem::base::time::Nanos;
use tandem::cost::{Cost, MachineModel, Parallelism, SpeedUp};
use tandem::index::Index;
use tandem::live::{self, Ending, Faulty, LanePool, LaneWork, LiveOutcome, LiveQuery, LiveRun, QuerySet, RunClock};
use tandem::query::Query;
use tandem::sched::{Job, Jobs, Lane, LanesToPoll, Next, Policy, PolicyFactory, PolicyKind, PolicyOptions, RunLog};
use tandem::search::cpu::multicore::inter_lanes;
use tandem::search::cpu::{Algorithm, CpuExecutor};
use tandem::search::{ExecError, Execution, Executor, Help, Hit};
use tandem::traffic::Mode;

/// The number of requested documents. Each core keeps more of them than fit its first memory for results.
const K: usize = 1200;

/// Documents and bits of scores.
type Bits = Vec<(u32, u32)>;

fn bits(hits: &[Hit]) -> Bits {
    hits.iter().map(|hit| (hit.doc.0, hit.score.to_bits())).collect()
}

/// An index whose longest lists are cut into many tasks, queries in all modes, and their answers by the exhaustive algorithm.
struct World {
    executor: CpuExecutor,
    queries: Vec<(Query, Mode)>,
    expected: Arc<Vec<Bits>>,
    /// Queries that were cut into pieces, and pieces that were searched for other lanes.
    shared: Arc<AtomicU32>,
    given: Arc<AtomicU32>,
}

impl World {
    fn new() -> Self {
        let mut random = Random::new(5, 0);
        let list = |(term, one_in): (usize, u32)| {
            let docs = (0..60_000).filter(|_| random.below(one_in) == 0).map(|doc| (doc, 1 + doc % 5));
            (format!("t{term}"), docs.collect())
        };
        let lists: Vec<(String, Vec<(u32, u32)>)> = [2, 3, 7, 40].into_iter().enumerate().map(list).collect();
        let index = Arc::new(Index::from_lists(&lists).unwrap());
        let query = |(id, terms): (u32, &[&str])| {
            let terms: Vec<String> = terms.iter().map(|term| (*term).to_owned()).collect();
            (0..).zip(Mode::ALL).map(move |(mode_number, mode)| (QueryId(3 * id + mode_number), terms.clone(), mode))
        };
        let terms: [&[&str]; 4] = [&["t0"], &["t0", "t1"], &["t1", "t2", "t3"], &["t0", "t1", "t2", "t3"]];
        let queries: Vec<(Query, Mode)> = (0..)
            .zip(terms)
            .flat_map(query)
            .map(|(id, terms, mode)| (Query::prepare(id, "q", &terms, &index).unwrap(), mode))
            .collect();
        let executor = CpuExecutor::new(Arc::clone(&index), index.built_with());
        let mut exhaustive = executor.clone_for_worker().with_algorithm(Algorithm::Exhaustive);
        let mut answer = |(query, mode): &(Query, Mode)| {
            let mut hits = Vec::new();
            exhaustive.search(query, *mode, K, &mut hits).unwrap();
            bits(&hits)
        };
        let expected = Arc::new(queries.iter().map(&mut answer).collect());
        Self { executor, queries, expected, shared: Arc::default(), given: Arc::default() }
    }

    fn compared(&self, inner: Box<dyn Executor>) -> Box<dyn Executor> {
        let (expected, shared, given) = (self.expected.clone(), self.shared.clone(), self.given.clone());
        Box::new(Compared { inner, expected, shared, given })
    }

    /// A lane pool of `workers` cores with these planned faults, each core with a fallback.
    fn lane_pool(&self, workers: usize, faults: &[PlannedFault]) -> LanePool {
        let clock = RunClock::default();
        let lanes = (0..).zip(inter_lanes(&self.executor, workers)).map(|(lane, executor)| {
            let of_lane = faults.iter().filter(|fault| fault.processor.0 == lane).copied().collect();
            let executor = Box::new(Faulty::new(self.compared(executor), of_lane, clock.clone()));
            LaneWork::WithFallback(executor, self.compared(Box::new(self.executor.clone_for_worker())))
        });
        let live = self.queries.iter().map(|(query, mode)| LiveQuery {
            id: query.id,
            query: query.clone(),
            mode: *mode,
            results: None,
        });
        let queries = Arc::new(QuerySet::new(K, live));
        let mut lane_pool = LanePool::spawn(model(workers), lanes.collect(), queries, Vec::new()).unwrap();
        lane_pool.set_run_clock(clock);
        lane_pool
    }

    /// One job alone, then bursts of 10 that come every few milliseconds. They ask all queries in turn.
    fn jobs(&self, count: u32) -> Vec<Job> {
        let cost = PerClass::from_fn(|class| if class == Class::CPU { Cost::alone(Nanos(900)) } else { Cost::NEVER });
        let queries: Vec<_> = self.queries.iter().map(|(query, _)| (query.id, cost)).collect();
        let at_ms = |i: u32| if i == 0 { 0 } else { 200 + i / 10 * 5 };
        let arrival = |i: u32| (Nanos(u64::from(at_ms(i)) * 1_000_000), i % queries.len() as u32);
        live::plan((0..count).map(arrival), &queries, Nanos(1_000_000_000))
    }

    /// Answers `count` jobs, each once.
    fn run(&self, lane_pool: &mut LanePool, policy: Box<dyn Policy>, count: u32) -> RunLog {
        let (jobs, name) = (self.jobs(count), policy.name().to_owned());
        let LiveOutcome { log, ending, .. } = live::run(lane_pool, LiveRun::new(policy, &jobs)).unwrap();
        assert!(matches!(ending, Ending::Complete), "{name}: {ending:?}");
        let answered: Vec<u32> = log.rows.iter().map(|row| row.job.0).collect();
        assert_eq!(answered, (0..count).collect::<Vec<_>>(), "{name}");
        log
    }
}

fn policy(kind: PolicyKind, lane_pool: &LanePool) -> Box<dyn Policy> {
    kind.with(PolicyOptions::default()).build(lane_pool.model()).unwrap()
}

/// One job at a time on all lanes, in order of arrival. The other lanes take part from its start or join it afterwards, in turn.
#[derive(Default)]
struct Together {
    lead: Option<ProcessorId>,
    joins: bool,
}

impl Policy for Together {
    fn name(&self) -> &str {
        "together"
    }

    fn shares_jobs(&self) -> bool {
        true
    }

    fn arrive(&mut self, _: &Job, _: &Jobs, _: Nanos) -> LanesToPoll {
        LanesToPoll::Class(Class::CPU)
    }

    fn next(&mut self, lane: Lane, jobs: &Jobs, _: Nanos, batch: &mut Vec<JobId>) -> Next {
        match (self.lead, jobs.oldest()) {
            (Some(lead), _) => Next::Join(lead),
            (None, None) => Next::Wait,
            (None, Some(job)) => {
                batch.push(job.id);
                self.lead = Some(lane.processor);
                self.joins = !self.joins;
                if self.joins { Next::Run } else { Next::RunOn(u32::MAX) }
            }
        }
    }

    fn finished(&mut self, _: Lane, _: &[JobId], _: &Jobs, _: Nanos, _: Nanos) -> LanesToPoll {
        self.lead = None;
        LanesToPoll::Class(Class::CPU)
    }
}

fn together() -> Box<dyn Policy> {
    Box::new(Together::default())
}

/// Perfect speed-up and times of some nanoseconds: all queries are long, and lanes join at once.
fn model(workers: usize) -> MachineModel {
    let speed_up = SpeedUp::of_all((1..=workers).map(|lanes| lanes as f64).collect());
    let parallelism = Some(Arc::new(Parallelism::of(speed_up, (1..900).map(Nanos).collect())));
    let faults = FaultPlan::new(Vec::new(), Nanos::from_ms(3000.0));
    MachineModel { parallelism, faults, ..Machine::new(workers, 0).into() }
}

/// An executor whose answers are compared with the expected ones.
struct Compared {
    inner: Box<dyn Executor>,
    expected: Arc<Vec<Bits>>,
    shared: Arc<AtomicU32>,
    given: Arc<AtomicU32>,
}

impl Compared {
    fn check(&self, query: &Query, hits: &[Hit]) -> Result<(), ExecError> {
        // Any error ends the run.
        if bits(hits) == self.expected[query.id.index()] { Ok(()) } else { Err(ExecError::BadK(0)) }
    }
}

impl Executor for Compared {
    fn class(&self) -> Class {
        self.inner.class()
    }

    fn device(&self) -> String {
        self.inner.device()
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        let execution = self.inner.search(query, mode, k, hits)?;
        self.check(query, hits).map(|()| execution)
    }

    fn search_shared(
        &mut self,
        query: &Query,
        mode: Mode,
        k: usize,
        lanes: u32,
        hits: &mut Vec<Hit>,
    ) -> Result<Execution, ExecError> {
        self.shared.fetch_add(1, Ordering::Relaxed);
        let execution = self.inner.search_shared(query, mode, k, lanes, hits)?;
        self.check(query, hits).map(|()| execution)
    }

    fn help(&mut self, lead: Option<usize>) -> Help {
        let help = self.inner.help(lead);
        self.given.fetch_add(u32::from(help == Help::Given), Ordering::Relaxed);
        help
    }
}

#[test]
fn queries_on_several_lanes_have_the_exhaustive_answers() {
    let _alone = crate::alone();
    let world = World::new();
    for workers in 2..=4 {
        let mut lane_pool = world.lane_pool(workers, &[]);
        lane_pool.warm_up(std::time::Duration::from_millis(50)).unwrap();
        // A busy machine may wake the helpers of short queries too late.
        for round in 0.. {
            let log = world.run(&mut lane_pool, together(), 60);
            assert_eq!(log.faults, []);
            assert!(log.rows.iter().all(|row| row.lanes as usize == workers && row.helped > Nanos::ZERO));
            if world.given.swap(0, Ordering::Relaxed) > 0 {
                break;
            }
            assert!(round < 50, "no lane has helped, {workers} lanes");
        }
        for kind in PolicyKind::ALL.into_iter().filter(|kind| kind.shares_jobs()) {
            world.shared.store(0, Ordering::Relaxed);
            let policy = policy(kind, &lane_pool);
            let log = world.run(&mut lane_pool, policy, 40);
            let on_several = log.rows.iter().filter(|row| row.lanes > 1).count();
            // On a busy machine `tail` gives several waiting queries to one lane, which are not cut.
            let in_batch = |number| log.rows.iter().filter(|row| row.batch == number).count();
            let alone = log.rows.iter().filter(|row| in_batch(row.batch) == 1).count();
            let (joins_later, cut) = (kind != PolicyKind::Predictive, world.shared.load(Ordering::Relaxed) as usize);
            assert_eq!(cut, if joins_later { alone } else { on_several }, "{kind}");
        }
        // A policy that shares nothing cuts no query.
        world.shared.store(0, Ordering::Relaxed);
        let alone = policy(PolicyKind::CpuOnly, &lane_pool);
        world.run(&mut lane_pool, alone, 40);
        assert_eq!(world.shared.load(Ordering::Relaxed), 0);
    }
}

#[test]
fn lanes_that_fail_while_they_share_queries_lose_nothing() {
    let _alone = crate::alone();
    let world = World::new();
    let kinds = [FaultKind::Error, FaultKind::Panic, FaultKind::Hang];
    let fault =
        |lane, kind| PlannedFault { at: Nanos::from_ms(205.0), processor: ProcessorId(lane), kind, lasts: Nanos::ZERO };
    let faults: Vec<PlannedFault> = (0..).zip(kinds).map(|(lane, kind)| fault(lane, kind)).collect();
    let mut lane_pool = world.lane_pool(4, &faults);
    let few_to_many = policy(PolicyKind::FewToMany, &lane_pool);
    let log = world.run(&mut lane_pool, few_to_many, 200);
    let mut failed: Vec<(u32, FaultKind)> = log.faults.iter().map(|fault| (fault.processor.0, fault.kind)).collect();
    failed.sort_by_key(|fault| fault.0);
    assert_eq!(failed, (0..).zip(kinds).collect::<Vec<_>>());
    // The lane that leads fails, and its fallback answers alone.
    for kind in kinds {
        let mut lane_pool = world.lane_pool(3, &[fault(0, kind)]);
        let log = world.run(&mut lane_pool, together(), 60);
        assert_eq!(log.faults.len(), 1, "{kind}");
        assert!(log.rows.iter().any(|row| row.again) && log.rows.iter().all(|row| row.lanes == 3), "{kind}");
    }
}

#[test]
fn a_query_that_panics_in_every_lane_ends_its_run_and_leaves_the_lanes_idle() {
    let _alone = crate::alone();
    let mut world = World::new();
    let mut lane_pool = {
        // This list does not exist.
        let good = world.queries[4].0.clone();
        world.queries[4].0.terms[1].term = TermId(1 << 30);
        let lane_pool = world.lane_pool(3, &[]);
        world.queries[4].0 = good;
        lane_pool
    };
    let jobs = world.jobs(60);
    let run = LiveRun::new(together(), &jobs);
    let outcome = live::run(&mut lane_pool, run).unwrap();
    assert!(matches!(outcome.ending, Ending::Failed(_)), "{:?}", outcome.ending);
    assert!(outcome.log.rows.iter().all(|row| row.query != QueryId(4)));
    assert_eq!(outcome.log.rows.len() + outcome.unfinished + outcome.unreleased, 60);
    // Only the other queries are asked.
    let jobs: Vec<Job> = (0..).zip(world.jobs(60).into_iter().filter(|job| job.row != 4)).map(renumbered).collect();
    let run = LiveRun::new(together(), &jobs);
    let outcome = live::run(&mut lane_pool, run).unwrap();
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    assert_eq!(outcome.log.rows.len(), jobs.len());
}

fn renumbered((id, job): (u32, Job)) -> Job {
    Job { id: JobId(id), ..job }
}

#[test]
fn a_run_that_is_given_up_while_lanes_help_leaves_them_idle() {
    let _alone = crate::alone();
    let world = World::new();
    let mut lane_pool = world.lane_pool(3, &[]);
    for _ in 0..3 {
        let jobs = world.jobs(2000);
        let run = LiveRun { abandon_after: Some(Nanos(1)), ..LiveRun::new(together(), &jobs) };
        let outcome = live::run(&mut lane_pool, run).unwrap();
        assert!(outcome.overloaded(), "{:?}", outcome.ending);
        assert_eq!(outcome.log.rows.len() + outcome.unfinished + outcome.unreleased, 2000);
        world.run(&mut lane_pool, together(), 20);
    }
}

#[test]
fn a_time_warped_query_takes_several_lanes() {
    let _alone = crate::alone();
    let cost =
        PerClass::from_fn(|class| if class == Class::CPU { Cost::alone(Nanos::from_ms(30.0)) } else { Cost::NEVER });
    let lanes = (0..3).map(|_| LaneWork::TimeWarp).collect();
    let mut lane_pool = LanePool::spawn(model(3), lanes, Arc::default(), vec![cost]).unwrap();
    let jobs = live::plan([(Nanos::ZERO, 0), (Nanos::ZERO, 0)], &[(QueryId(0), cost)], Nanos(1_000_000_000));
    let outcome = live::run(&mut lane_pool, LiveRun::new(together(), &jobs)).unwrap();
    assert!(matches!(outcome.ending, Ending::Complete), "{:?}", outcome.ending);
    for row in &outcome.log.rows {
        // Three lanes take a third of the time each, and two helpers that long.
        assert!(row.lanes == 3 && row.finished.since(row.started) >= Nanos::from_ms(10.0), "{row:?}");
        assert!(row.helped >= Nanos::from_ms(20.0), "{row:?}");
    }
}

#[test]
fn a_time_warped_query_ends_sooner_once_lanes_have_joined_it() {
    let _alone = crate::alone();
    let alone = Cost::alone(Nanos::from_ms(20_000.0));
    let cost = PerClass::from_fn(|class| if class == Class::CPU { alone } else { Cost::NEVER });
    // A speed-up far above any possible one leaves 20 ms of 20 s: the test needs no exact time.
    let speed_up = SpeedUp::of_all(vec![1.0, 1000.0]);
    let parallelism = Some(Arc::new(Parallelism::of(speed_up, vec![Nanos(1)])));
    let model = MachineModel { parallelism, ..Machine::new(2, 0).into() };
    let lanes = vec![LaneWork::TimeWarp, LaneWork::TimeWarp];
    let mut lane_pool = LanePool::spawn(model, lanes, Arc::default(), vec![cost]).unwrap();
    let jobs = live::plan([(Nanos::ZERO, 0)], &[(QueryId(0), cost)], Nanos(1_000_000_000));
    let outcome = live::run(&mut lane_pool, LiveRun::new(together(), &jobs)).unwrap();
    let row = outcome.log.rows[0];
    assert!(row.lanes == 2 && row.finished.since(row.started) < Nanos::from_ms(10_000.0), "{row:?}");
}
