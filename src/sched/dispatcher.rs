//! The one scheduler core, under simulated and under real time.
//!
//! After each event the dispatcher asks every idle processor, in the order of the machine, what it does next, and asks
//! again until none of them starts anything: a start may free another processor's way. It trusts no policy: each law
//! that is checked here costs a comparison a job.
//!
//! | law | checked when |
//! | --- | --- |
//! | time never goes back | an event comes |
//! | only jobs that have arrived run, unaltered | a batch starts |
//! | no job runs twice | a batch starts |
//! | nothing starts on a busy processor | by construction: only idle processors are asked |
//! | no job is lost: while jobs wait, something runs or a wake-up is due | an event has been handled |
//!
//! Memory is O(jobs in flight), besides what the [`Sink`] keeps; an event costs O(processors) and
//! what the policy takes.

use std::collections::VecDeque;

use super::{Batch, Job, LogRow, Next, Policy, RunLog};
use crate::ids::{JobId, ProcessorId};
use crate::machine::Machine;
use crate::time::Nanos;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A job has arrived. Jobs are numbered from 0 in the order of these events.
    Arrive(Job),
    /// A processor has finished what it was started on.
    Finish(ProcessorId),
    /// A time asked for by [`Action::WakeAt`] has come.
    Wake,
}

/// What the loop around the dispatcher has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start the batch that [`Dispatcher::batch_on`] gives for this processor now; report [`Event::Finish`] when it is
    /// done.
    Start(ProcessorId),
    /// Send [`Event::Wake`] at this time. It takes the place of any later wake-up that was asked for before.
    WakeAt(Nanos),
}

/// A policy or the loop has broken its contract: our mistake, never the user's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy {policy} broke its contract at {now_ns} ns: {law}")]
pub struct LawBroken {
    /// The policy's name.
    pub policy: &'static str,
    /// When.
    pub now_ns: u64,
    /// Which law, with the values.
    pub law: String,
}

/// Takes in the rows of a run as its jobs finish: all of them ([`RunLog`]), or just what a summary needs.
pub trait Sink {
    /// Takes the row of a job that has finished; rows come in order of finish.
    fn record(&mut self, row: &LogRow);
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Waiting,
    Running,
    Finished,
}

/// A job in flight.
#[derive(Clone, Copy, Debug)]
struct Flight {
    job: Job,
    released: Nanos,
    place: Place,
}

/// What a busy processor runs.
#[derive(Clone, Debug)]
struct Running {
    batch: Batch,
    number: u32,
    started: Nanos,
}

/// Owns the processors' states, asks the policy, checks its laws and writes the log.
pub struct Dispatcher<S = RunLog> {
    machine: Machine,
    policy: Box<dyn Policy>,
    /// By processor: what it runs, `None` when idle.
    lanes: Vec<Option<Running>>,
    /// Jobs from number `first_flight` on; the front one has not finished.
    flights: VecDeque<Flight>,
    first_flight: u32,
    waiting: usize,
    running: usize,
    busy: usize,
    batches: u32,
    now: Nanos,
    /// The wake-up that the loop holds.
    wake: Option<Nanos>,
    sink: S,
}

impl<S> std::fmt::Debug for Dispatcher<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher")
            .field("policy", &self.policy.name())
            .field("now", &self.now)
            .field("waiting", &self.waiting)
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// A dispatcher over an idle machine that keeps the whole log; `jobs` is how many will arrive, as far as known.
    #[must_use]
    pub fn new(machine: Machine, policy: Box<dyn Policy>, jobs: usize) -> Self {
        Self::with_sink(machine, policy, RunLog { rows: Vec::with_capacity(jobs.min(1 << 24)) })
    }

    /// Ends the run and gives its log: rows in order of arrival; jobs that never finished are not in it.
    #[must_use]
    pub fn into_log(self) -> RunLog {
        let mut log = self.sink;
        log.rows.sort_unstable_by_key(|row| row.job);
        log
    }
}

impl<S: Sink> Dispatcher<S> {
    /// A dispatcher over an idle machine that gives each finished job's row to `sink`.
    #[must_use]
    pub fn with_sink(machine: Machine, policy: Box<dyn Policy>, sink: S) -> Self {
        let lanes = (0..machine.len()).map(|_| None).collect();
        Self {
            machine,
            policy,
            lanes,
            flights: VecDeque::new(),
            first_flight: 0,
            waiting: 0,
            running: 0,
            busy: 0,
            batches: 0,
            now: Nanos::ZERO,
            wake: None,
            sink,
        }
    }

    /// Handles one event and appends what is to be done to `actions`.
    ///
    /// Events at the same `now` are handled in the order in which they are given.
    ///
    /// # Errors
    /// If the policy loses, repeats or invents a job, or the loop breaks the order of time.
    // Always: the caller knows which event it is, and the job need not be moved into one.
    #[inline(always)]
    pub fn handle(&mut self, now: Nanos, event: Event, actions: &mut Vec<Action>) -> Result<(), LawBroken> {
        if now < self.now {
            return Err(self.broken(format!("time went back from {} ns to {} ns", self.now.0, now.0)));
        }
        self.now = now;
        match event {
            Event::Arrive(job) => self.arrive(job)?,
            Event::Finish(processor) => self.finish(processor)?,
            Event::Wake => self.wake = None,
        }
        // As most events of a lightly loaded run leave it: then not even the call is made.
        if self.waiting == 0 {
            return Ok(());
        }
        self.ask_idle_processors(actions)
    }

    /// What `processor` runs; `None` when it is idle.
    #[must_use]
    pub fn batch_on(&self, processor: ProcessorId) -> Option<&Batch> {
        self.lanes.get(processor.index())?.as_ref().map(|running| &running.batch)
    }

    /// Jobs that have arrived and not finished.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.waiting + self.running
    }

    /// The first of the jobs in flight, or the next to arrive when there is none: all before it have finished.
    #[must_use]
    pub fn first_in_flight(&self) -> JobId {
        JobId(self.first_flight)
    }

    /// When the first of the jobs in flight was meant to arrive: how far behind the run is.
    #[must_use]
    pub fn oldest_arrival(&self) -> Option<Nanos> {
        self.flights.front().map(|flight| flight.job.arrival)
    }

    /// What has been recorded so far.
    #[must_use]
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// Ends the run and gives the sink.
    #[must_use]
    pub fn into_sink(self) -> S {
        self.sink
    }

    fn arrive(&mut self, job: Job) -> Result<(), LawBroken> {
        let expected = self.first_flight as usize + self.flights.len();
        if job.id.index() != expected {
            return Err(self.broken(format!("job {} arrived where job {expected} was due", job.id)));
        }
        self.flights.push_back(Flight { job, released: self.now, place: Place::Waiting });
        self.waiting += 1;
        self.policy.arrive(job, self.now);
        Ok(())
    }

    fn finish(&mut self, processor: ProcessorId) -> Result<(), LawBroken> {
        // Read where it lies: what is said of a job is many times the size of what is done with it.
        let Some(Some(Running { batch, number, started })) = self.lanes.get(processor.index()) else {
            return Err(self.broken(format!("processor {processor} finished, but nothing ran on it")));
        };
        self.busy -= 1;
        self.running -= batch.jobs().len();
        for job in batch.jobs() {
            let flight = &mut self.flights[(job.id.0 - self.first_flight) as usize];
            flight.place = Place::Finished;
            self.sink.record(&LogRow {
                job: job.id,
                query: job.query,
                arrival: job.arrival,
                released: flight.released,
                started: *started,
                finished: self.now,
                processor,
                kind: self.machine.class(processor),
                batch: *number,
                deadline: job.deadline,
                predicted: job.predicted,
            });
        }
        while self.flights.front().is_some_and(|flight| flight.place == Place::Finished) {
            self.flights.pop_front();
            self.first_flight += 1;
        }
        self.policy.finished(processor, batch, self.now.since(*started), self.now);
        self.lanes[processor.index()] = None;
        Ok(())
    }

    fn ask_idle_processors(&mut self, actions: &mut Vec<Action>) -> Result<(), LawBroken> {
        let mut wake = None;
        while self.waiting > 0 && self.busy < self.lanes.len() {
            let mut any_started = false;
            wake = None;
            for index in 0..self.lanes.len() {
                if self.lanes[index].is_some() || self.waiting == 0 {
                    continue;
                }
                let processor = ProcessorId(index as u32);
                match self.policy.next(processor, self.now) {
                    Next::Run(batch) => {
                        self.start(processor, batch, actions)?;
                        any_started = true;
                    }
                    Next::Wait => {}
                    Next::WaitUntil(until) if until > self.now => {
                        wake = Some(wake.map_or(until, |earlier: Nanos| earlier.min(until)));
                    }
                    Next::WaitUntil(until) => {
                        return Err(self.broken(format!("asked to wait until {} ns, which has passed", until.0)));
                    }
                }
            }
            if !any_started {
                break;
            }
        }
        if let Some(at) = wake
            && self.wake.is_none_or(|held| at < held)
        {
            self.wake = Some(at);
            actions.push(Action::WakeAt(at));
        }
        if self.waiting > 0 && self.busy == 0 && self.wake.is_none() {
            return Err(self.broken(format!("{} jobs wait, nothing runs and no wake-up is due", self.waiting)));
        }
        Ok(())
    }

    fn start(&mut self, processor: ProcessorId, batch: Batch, actions: &mut Vec<Action>) -> Result<(), LawBroken> {
        if batch.jobs().is_empty() {
            return Err(self.broken(format!("started an empty batch on processor {processor}")));
        }
        for job in batch.jobs() {
            let flight = job.id.0.checked_sub(self.first_flight).and_then(|i| self.flights.get_mut(i as usize));
            let fault = match flight {
                // Numbers below the first in flight have finished; those above have not arrived.
                None if job.id.0 < self.first_flight => format!("job {} ran again after it had finished", job.id),
                None => format!("job {} ran before it arrived", job.id),
                Some(flight) if flight.place != Place::Waiting => format!("job {} ran twice", job.id),
                Some(flight) if flight.job != *job => format!("job {} was altered by the policy", job.id),
                Some(flight) => {
                    flight.place = Place::Running;
                    continue;
                }
            };
            return Err(self.broken(fault));
        }
        self.waiting -= batch.jobs().len();
        self.running += batch.jobs().len();
        self.busy += 1;
        actions.push(Action::Start(processor));
        self.lanes[processor.index()] = Some(Running { batch, number: self.batches, started: self.now });
        self.batches += 1;
        Ok(())
    }

    #[cold]
    fn broken(&self, law: String) -> LawBroken {
        LawBroken { policy: self.policy.name(), now_ns: self.now.0, law }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{JobId, QueryId};
    use crate::machine::PerClass;

    /// A policy that gives what it is told to, right or wrong.
    struct Scripted(Vec<Next>);

    impl Policy for Scripted {
        fn name(&self) -> &'static str {
            "scripted"
        }
        fn arrive(&mut self, _: Job, _: Nanos) {}
        fn next(&mut self, _: ProcessorId, _: Nanos) -> Next {
            if self.0.is_empty() { Next::Wait } else { self.0.remove(0) }
        }
    }

    fn job(id: u32) -> Job {
        let predicted = PerClass::two(Nanos(5), Nanos(5));
        Job { id: JobId(id), query: QueryId(id), arrival: Nanos(1), deadline: Nanos(100), predicted }
    }

    fn run_one(id: u32) -> Next {
        Next::Run(Batch::One(job(id)))
    }

    /// Two CPUs; the message of the first law broken by `script` when `events` are handled in turn.
    fn first_fault(script: Vec<Next>, events: &[(u64, Event)]) -> String {
        let mut dispatcher = Dispatcher::new(Machine::new(2, 0), Box::new(Scripted(script)), 0);
        let mut actions = Vec::new();
        for (now, event) in events {
            if let Err(broken) = dispatcher.handle(Nanos(*now), event.clone(), &mut actions) {
                return broken.to_string();
            }
        }
        String::from("no law was broken")
    }

    #[test]
    fn every_broken_law_is_named() {
        let arrive = |id| Event::Arrive(job(id));
        type Case = (Vec<Next>, Vec<(u64, Event)>, &'static str);
        let cases: Vec<Case> = vec![
            (vec![], vec![(1, arrive(0))], "nothing runs"),
            (vec![run_one(0)], vec![(3, arrive(0)), (2, Event::Finish(ProcessorId(0)))], "time went back"),
            (vec![run_one(1)], vec![(1, arrive(0))], "before it arrived"),
            (vec![run_one(0), run_one(0)], vec![(1, arrive(0)), (1, arrive(1))], "ran twice"),
            (vec![Next::Run(Batch::Many(vec![]))], vec![(1, arrive(0))], "empty batch"),
            (vec![Next::WaitUntil(Nanos(1))], vec![(1, arrive(0))], "has passed"),
            (vec![], vec![(1, arrive(4))], "job 4 arrived where job 0 was due"),
            (vec![], vec![(1, Event::Finish(ProcessorId(1)))], "nothing ran on it"),
            (vec![], vec![(1, Event::Finish(ProcessorId(9)))], "nothing ran on it"),
            (
                vec![run_one(0), run_one(0)],
                vec![(1, arrive(0)), (2, Event::Finish(ProcessorId(0))), (3, arrive(1))],
                "after it had finished",
            ),
        ];
        for (script, events, expected) in cases {
            let message = first_fault(script, &events);
            assert!(message.contains(expected), "{message:?} should name {expected:?}");
        }
    }

    #[test]
    fn only_the_earliest_wake_up_is_asked_for_and_once() {
        let script =
            vec![Next::WaitUntil(Nanos(20)), Next::WaitUntil(Nanos(10)), Next::WaitUntil(Nanos(10)), Next::Wait];
        let mut dispatcher = Dispatcher::new(Machine::new(2, 0), Box::new(Scripted(script)), 0);
        let mut actions = Vec::new();
        dispatcher.handle(Nanos(1), Event::Arrive(job(0)), &mut actions).unwrap();
        dispatcher.handle(Nanos(1), Event::Arrive(job(1)), &mut actions).unwrap();
        assert_eq!(actions, [Action::WakeAt(Nanos(10))]);
    }

    #[test]
    fn the_log_lists_jobs_in_order_of_arrival_with_their_batch() {
        let script = vec![Next::Wait, Next::WaitUntil(Nanos(9)), Next::Run(Batch::Many(vec![job(1), job(0)]))];
        let mut dispatcher = Dispatcher::new(Machine::new(2, 0), Box::new(Scripted(script)), 2);
        let mut actions = Vec::new();
        dispatcher.handle(Nanos(1), Event::Arrive(job(0)), &mut actions).unwrap();
        dispatcher.handle(Nanos(4), Event::Arrive(job(1)), &mut actions).unwrap();
        assert_eq!(dispatcher.in_flight(), 2);
        dispatcher.handle(Nanos(30), Event::Finish(ProcessorId(0)), &mut actions).unwrap();
        assert_eq!(dispatcher.in_flight(), 0);
        let rows = dispatcher.into_log().rows;
        let facts: Vec<_> = rows.iter().map(|r| (r.job.0, r.released.0, r.started.0, r.finished.0, r.batch)).collect();
        assert_eq!(facts, [(0, 1, 4, 30, 0), (1, 4, 4, 30, 0)]);
    }
}
