//! The open-loop driver: one thread that releases arrivals, starts batches and takes completions.
//!
//! The same loop under either clock. In steady state it allocates nothing: jobs are made before, the log, lags and
//! actions have their room from the start, and a batch of one job travels by value.

use std::sync::atomic::{AtomicBool, Ordering};

use super::clock::Clock;
use super::ending::{Ending, LiveError};
use super::worker::{Completion, Fleet, Lane};
use crate::ids::ProcessorId;
use crate::machine::PerClass;
use crate::sched::{Action, Dispatcher, Due, Event, EventQueue, Job, RunLog};
use crate::time::Nanos;

/// What a run left behind.
#[derive(Debug)]
pub(super) struct Driven {
    pub(super) log: RunLog,
    /// For each released job: how late it was released.
    pub(super) lags: Vec<Nanos>,
    /// For each batch of a worker: time between its start and its completion in which the worker did not work.
    pub(super) handoffs: Vec<Nanos>,
    /// Time in which workers of a kind worked.
    pub(super) worked: PerClass<Nanos>,
    pub(super) ending: Ending,
}

/// When to stop before the plan's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    /// Set by Ctrl-C.
    pub(super) stop: &'a AtomicBool,
    /// The age of the oldest unfinished job at which the backlog counts as hopeless.
    pub(super) abandon_after: Option<Nanos>,
}

/// Drives `jobs`, in order of arrival, through the dispatcher onto the fleet's lanes.
pub(super) fn drive(
    clock: &mut impl Clock,
    fleet: &Fleet,
    dispatcher: Dispatcher,
    jobs: &[Job],
    limits: Limits<'_>,
) -> Driven {
    let processors = fleet.machine().len();
    let mut driver = Driver {
        clock,
        fleet,
        dispatcher,
        jobs,
        queue: EventQueue::new(),
        actions: Vec::with_capacity(processors + 1),
        started: vec![Nanos::ZERO; processors],
        working: 0,
        lags: Vec::with_capacity(jobs.len()),
        handoffs: Vec::with_capacity(jobs.len()),
        worked: PerClass::default(),
        ending: Ending::Complete,
    };
    driver.run(limits);
    let Driver { dispatcher, lags, handoffs, worked, ending, .. } = driver;
    Driven { log: dispatcher.into_log(), lags, handoffs, worked, ending }
}

struct Driver<'a, C> {
    clock: &'a mut C,
    fleet: &'a Fleet,
    dispatcher: Dispatcher,
    /// Those not yet released.
    jobs: &'a [Job],
    /// Replayed completions and the wake-up.
    queue: EventQueue,
    actions: Vec<Action>,
    /// By processor: when its last batch was handed over.
    started: Vec<Nanos>,
    /// Batches that worker threads have now.
    working: usize,
    lags: Vec<Nanos>,
    handoffs: Vec<Nanos>,
    worked: PerClass<Nanos>,
    ending: Ending,
}

impl<C: Clock> Driver<'_, C> {
    fn run(&mut self, limits: Limits<'_>) {
        loop {
            self.look_at_limits(limits);
            if let Ok(completion) = self.fleet.completions().try_recv() {
                self.complete(completion);
                continue;
            }
            let arrival = self.next_arrival();
            let due = [self.queue.peek(), arrival].into_iter().flatten().min();
            match due {
                Some(at) if at <= self.clock.now() => self.handle_due(arrival),
                None if self.working == 0 => return,
                _ => {
                    let until = due.unwrap_or(Nanos::MAX);
                    if let Some(completion) = self.clock.wait(until, self.fleet.completions(), self.working > 0) {
                        self.complete(completion);
                    }
                }
            }
        }
    }

    /// Ends the run early if it has to. From then on nothing is released or started; what runs is waited for.
    fn look_at_limits(&mut self, limits: Limits<'_>) {
        if !self.goes_on() {
            return;
        }
        if limits.stop.load(Ordering::Relaxed) {
            self.ending = Ending::Interrupted;
        } else if let (Some(limit), Some(oldest)) = (limits.abandon_after, self.dispatcher.oldest_arrival())
            && self.clock.now().since(oldest) > limit
        {
            self.ending = Ending::Overloaded;
        }
    }

    fn goes_on(&self) -> bool {
        matches!(self.ending, Ending::Complete)
    }

    fn next_arrival(&self) -> Option<Nanos> {
        self.jobs.first().filter(|_| self.goes_on()).map(|job| job.arrival)
    }

    /// Handles what is due first. Its time in the log is the clock's, not the one it was due at: under a real clock the
    /// difference is the driver's lag, under a manual one there is none.
    fn handle_due(&mut self, arrival: Option<Nanos>) {
        match self.queue.pop(arrival) {
            Some(Due::Finish(_, processor)) => self.handle(Event::Finish(processor)),
            Some(Due::Wake(_)) => self.handle(Event::Wake),
            Some(Due::Arrival) => {
                if let Some((&job, later)) = self.jobs.split_first() {
                    self.jobs = later;
                    self.lags.push(self.clock.now().since(job.arrival));
                    self.handle(Event::Arrive(job));
                }
            }
            None => {}
        }
    }

    fn complete(&mut self, completion: Completion) {
        let Completion { processor, worked, result } = completion;
        self.working -= 1;
        match result {
            Ok(()) => {
                let took = self.clock.now().since(self.started[processor.index()]);
                self.handoffs.push(took.since(worked));
                self.worked[self.fleet.machine().class(processor)] += worked;
                self.handle(Event::Finish(processor));
            }
            Err(error) => self.fail(error),
        }
    }

    fn handle(&mut self, event: Event) {
        if let Err(law) = self.dispatcher.handle(self.clock.now(), event, &mut self.actions) {
            self.actions.clear();
            self.fail(LiveError::Law(law));
            return;
        }
        let mut actions = std::mem::take(&mut self.actions);
        for action in actions.drain(..) {
            match action {
                // The run ends: what the policy would start now stays unfinished, and is not in the log.
                _ if !self.goes_on() => {}
                Action::WakeAt(at) => self.queue.wake_at(at),
                Action::Start(processor) => self.start(processor),
            }
        }
        self.actions = actions;
    }

    fn start(&mut self, processor: ProcessorId) {
        let Some(batch) = self.dispatcher.batch_on(processor) else { return };
        let now = self.clock.now();
        self.started[processor.index()] = now;
        match self.fleet.lane(processor) {
            Lane::Worker(orders) => match orders.send(batch.clone()) {
                Ok(()) => self.working += 1,
                Err(_) => self.fail(LiveError::WorkerPanicked(processor)),
            },
            Lane::Replay => match self.fleet.recorded().batch_time(batch, self.fleet.machine().class(processor)) {
                Some(time) => self.queue.finish_at(now + time, processor),
                None => {
                    self.fail(LiveError::NoRecordedTime(batch.jobs()[0].query, self.fleet.machine().class(processor)))
                }
            },
        }
    }

    /// Ends the run with an error; the first one counts.
    fn fail(&mut self, error: LiveError) {
        if !matches!(self.ending, Ending::Failed(_)) {
            self.ending = Ending::Failed(error);
        }
    }
}
