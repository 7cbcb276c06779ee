//! Tests of the checked laws and of the actions that the loop sees.

use std::sync::Arc;

use super::*;
use crate::base::ids::QueryId;
use crate::base::machine::PerClass;
use crate::cost::{Cost, MachineModel, Parallelism, SpeedUp};
use crate::sched::{Lane, Next, PolicyFactory, PolicyKind, PolicyOptions};

/// A policy that follows a script, right or wrong.
struct Scripted(Vec<(Next, Vec<u32>)>);

impl Policy for Scripted {
    fn name(&self) -> &str {
        "scripted"
    }
    fn arrive(&mut self, _: &Job, _: &Jobs, _: Nanos) -> LanesToPoll {
        LanesToPoll::Everyone
    }
    fn next(&mut self, _: Lane, _: &Jobs, _: Nanos, batch: &mut Vec<JobId>) -> Next {
        if self.0.is_empty() {
            return Next::Wait;
        }
        let (next, jobs) = self.0.remove(0);
        batch.extend(jobs.into_iter().map(JobId));
        next
    }
}

#[derive(Clone, Copy)]
enum Event {
    Arrive(u32),
    Finish(u32),
    Wake,
}
use Event::{Arrive, Finish, Wake};

fn job(id: u32) -> Job {
    let predicted = PerClass::from_fn(|_| Cost::alone(Nanos(5)));
    Job { id: JobId(id), query: QueryId(id), row: id, priority: 0, arrival: Nanos(1), deadline: Nanos(100), predicted }
}

fn handle(dispatcher: &mut Dispatcher, now: u64, event: Event, actions: &mut Vec<Action>) -> Result<(), LawBroken> {
    let now = Nanos(now);
    match event {
        Arrive(id) => dispatcher.arrive(now, &job(id))?,
        Finish(processor) => {
            dispatcher.finish(now, ProcessorId(processor))?;
        }
        Wake => dispatcher.wake(now)?,
    }
    dispatcher.decide(now, actions)
}

fn run(ids: &[u32]) -> (Next, Vec<u32>) {
    (Next::Run, ids.to_vec())
}

fn wait_until(at: u64) -> (Next, Vec<u32>) {
    (Next::WaitUntil(Nanos(at)), Vec::new())
}

/// The message of the first law broken by `script` on two CPUs when `events` are handled in turn.
fn first_fault(script: Vec<(Next, Vec<u32>)>, events: &[(u64, Event)]) -> String {
    let mut dispatcher = Dispatcher::new(&Machine::new(2, 0), Box::new(Scripted(script)), 0);
    let mut actions = Vec::new();
    for &(now, event) in events {
        if let Err(broken) = handle(&mut dispatcher, now, event, &mut actions) {
            return broken.to_string();
        }
    }
    String::from("no law was broken")
}

#[test]
fn every_broken_law_is_named() {
    type Case = (Vec<(Next, Vec<u32>)>, Vec<(u64, Event)>, &'static str);
    let cases: Vec<Case> = vec![
        (vec![], vec![(1, Arrive(0))], "nothing runs"),
        (vec![run(&[0])], vec![(3, Arrive(0)), (2, Finish(0))], "time went back"),
        (vec![run(&[1])], vec![(1, Arrive(0))], "before it arrived"),
        (vec![run(&[0]), run(&[0])], vec![(1, Arrive(0)), (1, Arrive(1))], "ran twice"),
        (vec![run(&[0, 0])], vec![(1, Arrive(0))], "ran twice"),
        (vec![run(&[])], vec![(1, Arrive(0))], "empty batch"),
        (vec![(Next::Wait, vec![0])], vec![(1, Arrive(0))], "and waits"),
        (vec![wait_until(1)], vec![(1, Arrive(0))], "has passed"),
        (vec![], vec![(1, Arrive(4))], "job 4 arrived where job 0 was due"),
        (vec![], vec![(1, Finish(1))], "nothing ran on it"),
        (vec![], vec![(1, Finish(9))], "nothing ran on it"),
        (vec![run(&[0]), run(&[0])], vec![(1, Arrive(0)), (2, Finish(0)), (3, Arrive(1))], "after it had finished"),
    ];
    for (script, events, expected) in cases {
        let message = first_fault(script, &events);
        assert!(message.contains(expected), "{message:?} should name {expected:?}");
    }
}

#[test]
fn only_the_earliest_wake_up_is_asked_for_and_once() {
    let script = vec![wait_until(20), wait_until(10), wait_until(10), (Next::Wait, vec![])];
    let mut dispatcher = Dispatcher::new(&Machine::new(2, 0), Box::new(Scripted(script)), 0);
    let mut actions = Vec::new();
    handle(&mut dispatcher, 1, Arrive(0), &mut actions).unwrap();
    handle(&mut dispatcher, 1, Arrive(1), &mut actions).unwrap();
    assert_eq!(actions, [Action::WakeAt(Nanos(10))]);
    // After the wake-up all lanes are asked again.
    assert!(handle(&mut dispatcher, 10, Wake, &mut actions).unwrap_err().to_string().contains("nothing runs"));
}

#[test]
fn the_log_lists_jobs_in_order_of_arrival_with_their_batch() {
    let script = vec![(Next::Wait, vec![]), wait_until(9), (Next::Steal, vec![1, 0])];
    let mut dispatcher = Dispatcher::new(&Machine::new(2, 0), Box::new(Scripted(script)), 2);
    let mut actions = Vec::new();
    handle(&mut dispatcher, 1, Arrive(0), &mut actions).unwrap();
    handle(&mut dispatcher, 4, Arrive(1), &mut actions).unwrap();
    assert_eq!(dispatcher.in_flight(), 2);
    assert_eq!(dispatcher.rows(ProcessorId(0), 0), [1, 0]);
    handle(&mut dispatcher, 30, Finish(0), &mut actions).unwrap();
    assert_eq!(dispatcher.in_flight(), 0);
    let rows = dispatcher.into_log().rows;
    let facts: Vec<_> =
        rows.iter().map(|r| (r.job.0, r.released.0, r.started.0, r.finished.0, r.batch, r.stolen)).collect();
    assert_eq!(facts, [(0, 1, 4, 30, 0, true), (1, 4, 4, 30, 0, true)]);
}

#[test]
fn a_deep_lane_holds_several_batches_that_end_in_order() {
    let machine = Machine::default().with_gpus(1, 1, 2);
    let script = vec![run(&[0]), run(&[1]), run(&[2])];
    let mut dispatcher = Dispatcher::new(&machine, Box::new(Scripted(script)), 3);
    let mut actions = Vec::new();
    for id in 0..3 {
        handle(&mut dispatcher, 1, Arrive(id), &mut actions).unwrap();
    }
    assert_eq!(actions, [Action::Start(ProcessorId(0), 0), Action::Start(ProcessorId(0), 1)]);
    actions.clear();
    handle(&mut dispatcher, 5, Finish(0), &mut actions).unwrap();
    assert_eq!(actions, [Action::Start(ProcessorId(0), 2)]);
    handle(&mut dispatcher, 6, Finish(0), &mut actions).unwrap();
    handle(&mut dispatcher, 7, Finish(0), &mut actions).unwrap();
    let finished: Vec<u64> = dispatcher.into_log().rows.iter().map(|row| row.finished.0).collect();
    assert_eq!(finished, [5, 6, 7]);
}

#[test]
fn a_query_is_shared_if_lanes_help_it_or_may_join_it_later() {
    let lanes = |kind: PolicyKind, speed_up: Option<Vec<f64>>, long: u64, jobs: u32| {
        let parallelism =
            speed_up.map(|by_lanes| Arc::new(Parallelism::of(SpeedUp::of_all(by_lanes), vec![Nanos(long)])));
        let model = MachineModel { parallelism, ..Machine::new(2, 0).into() };
        let policy = kind.with(PolicyOptions::default()).build(&model).unwrap();
        let mut dispatcher = Dispatcher::new(&model.machine, policy, 2).sharing_jobs();
        (0..jobs).for_each(|id| dispatcher.arrive(Nanos(1), &job(id)).unwrap());
        dispatcher.decide(Nanos(1), &mut Vec::new()).unwrap();
        dispatcher.shared_lanes(ProcessorId(0))
    };
    let twice = || Some(vec![1.0, 2.0]);
    // A query takes 5 ns. Of two queries each has one lane.
    assert_eq!(lanes(PolicyKind::CpuOnly, twice(), 9, 1), 0);
    assert_eq!(lanes(PolicyKind::Predictive, twice(), 9, 1), 0);
    assert_eq!(lanes(PolicyKind::Predictive, twice(), 5, 1), 2);
    assert_eq!(lanes(PolicyKind::FewToMany, twice(), 9, 2), 1);
    assert_eq!(lanes(PolicyKind::FewToMany, None, 9, 2), 0);
}
