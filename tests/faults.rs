//! Lanes that fail in the middle of a run: no query is lost, none is answered twice, and the run says what happened.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;
use tandem::cost::{Cost, MachineModel};
use tandem::exec::{Answers, ExecError, Execution, Executor, Hit, Pipeline, Request};
use tandem::ids::{DocId, JobId, ProcessorId, QueryId};
use tandem::live::{self, Ending, Faulty, Fleet, LaneWork, LiveOutcome, LiveQuery, LiveRun, QuerySet, RunClock};
use tandem::machine::{Class, FaultKind, Machine, PerClass, PlannedFault};
use tandem::query::{Mode, Query};
use tandem::sched::{Ask, Job, Jobs, Lane, Next, Policy};
use tandem::time::Nanos;

/// First come, first served, in batches, on any lane.
struct Fifo(usize);

impl Policy for Fifo {
    fn name(&self) -> &str {
        "fifo"
    }

    fn arrive(&mut self, _: &Job, _: &Jobs, _: Nanos) -> Ask {
        Ask::Everyone
    }

    fn next(&mut self, _: Lane, jobs: &Jobs, _: Nanos, batch: &mut Vec<JobId>) -> Next {
        batch.extend(jobs.iter_waiting().take(self.0).map(|job| job.id));
        if batch.is_empty() { Next::Wait } else { Next::Run }
    }
}

/// How an executor fails, from the call of this number on.
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
            (true, false) => Err(ExecError::BadK(0)),
            (true, true) => panic!("on purpose"),
        }
    }
}

/// Finds one document, the query's own number; alone, or two batches deep where it has a pipeline.
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
        Some(Ok(Execution::default()))
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

/// Runs jobs in batches on a machine of one CPU worker and one GPU, each with a spare.
fn run(work: Vec<LaneWork>, count: u32, batch: usize, clock: RunClock) -> LiveOutcome {
    let model = MachineModel::from(Machine::new(1, 0).with_gpus(1, 1, 2));
    let mut fleet = Fleet::spawn(model, work, queries(), Vec::new()).unwrap();
    fleet.set_run_clock(clock);
    let run = LiveRun { policy: Box::new(Fifo(batch)), jobs: &jobs(count), abandon_after: None, keep_journal: false };
    live::run(&mut fleet, run).unwrap()
}

/// Every query was answered, and its answer taken once.
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
    fn no_query_is_lost_or_taken_twice_whichever_lane_fails_and_when(
        cpu in failing(),
        gpu in failing(),
        count in 0u32..120,
        batch in 1usize..8,
    ) {
        let answered = Arc::default();
        let lane = |class, failing| {
            let spare = Scripted::new(Class::CPU, Failing::NEVER, &answered);
            LaneWork::WithSpare(Box::new(Scripted::new(class, failing, &answered)), Box::new(spare))
        };
        let work = vec![lane(Class::CPU, cpu), lane(Class::GPU, gpu)];
        let outcome = run(work, count, batch, RunClock::default());
        assert_whole(&outcome, count);
        // Each lane fails once at most: what failed is not called again.
        let lanes: Vec<ProcessorId> = outcome.faults.iter().map(|fault| fault.processor).collect();
        prop_assert!(lanes.len() <= 2 && (lanes.len() < 2 || lanes[0] != lanes[1]), "{lanes:?}");
        prop_assert!(outcome.faults.iter().all(|fault| fault.queries > 0 && !fault.what.is_empty()));
        // Answers that nobody took are those of batches that a failed lane still held.
        let again: usize = outcome.faults.iter().map(|fault| fault.queries).sum();
        let answered = answered.load(Ordering::Relaxed) as usize;
        prop_assert!((count as usize..=count as usize + again).contains(&answered), "{answered} answers");
    }
}

#[test]
fn a_lane_whose_spare_fails_too_ends_the_run_with_an_error() {
    let answered = Arc::default();
    let always = Failing { from_call: 1, panics: false };
    let broken = || Box::new(Scripted::new(Class::CPU, always, &answered));
    let sound = Box::new(Scripted::new(Class::GPU, Failing::NEVER, &answered));
    let work = vec![LaneWork::WithSpare(broken(), broken()), LaneWork::Executor(sound)];
    let outcome = run(work, 20, 1, RunClock::default());
    assert!(matches!(outcome.ending, Ending::Failed(_)), "{:?}", outcome.ending);
    assert_eq!(outcome.faults.len(), 1);
}

#[test]
fn every_planned_fault_is_survived_and_told() {
    for kind in FaultKind::ALL {
        let answered = Arc::default();
        let clock = RunClock::default();
        let planned = PlannedFault { at: Nanos::ZERO, processor: ProcessorId(1), kind, lasts: Nanos(1_000_000) };
        let gpu = Box::new(Scripted::new(Class::GPU, Failing::NEVER, &answered));
        let faulty = Box::new(Faulty::new(gpu, vec![planned], clock.clone()));
        let spare = || Box::new(Scripted::new(Class::CPU, Failing::NEVER, &answered));
        let work = vec![LaneWork::Executor(spare()), LaneWork::WithSpare(faulty, spare())];
        let outcome = run(work, 60, 3, clock);
        assert_whole(&outcome, 60);
        // A stall passes; all else is the end of the executor.
        let told: Vec<ProcessorId> = outcome.faults.iter().map(|fault| fault.processor).collect();
        let expected = if kind == FaultKind::Stall { vec![] } else { vec![ProcessorId(1)] };
        assert_eq!(told, expected, "{kind:?}: {:?}", outcome.faults);
    }
}
