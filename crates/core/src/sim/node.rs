//! A node in simulated time: the loop around the dispatcher.
//!
//! Completions and the wake-up wait in an [`EventQueue`], which also holds the rule for events at one and the same
//! nanosecond. What a batch takes is asked of [`ServiceTimes`].
//!
//! The dispatcher is a processor too, of sorts: each arrival, each batch that ends and each query of it costs it [a
//! moment](crate::cost::Decisions), and what happens meanwhile waits and is then taken in together, as a round. So a machine
//! whose lanes are quicker than its one dispatcher is simulated as slow as it is:
//!
//! ```text
//!   events      a   f a      a  a  f                all that is due is taken in as one round, which takes its time,
//!   dispatcher  [a ][f a    ][a  a  f  ]            then what it leads to starts
//!   starts          ^        ^         ^
//! ```
//!
//! What [holds its core up](crate::cost::machine_file::StallClock) makes a round begin, or end, later.

use std::collections::VecDeque;

use crate::base::time::Nanos;
use crate::cost::machine_file::StallClock;
use crate::cost::{Decisions, ServiceTimes};
use crate::sched::{Action, Dispatcher, Due, EventQueue, Job, LawBroken, Sink};

/// What arrives at a node, in order of time.
pub(super) trait Inbox {
    /// When the next one arrives.
    fn next_at(&self) -> Option<Nanos>;

    /// Hands it in, now, with what it is expected to cost now.
    ///
    /// # Errors
    /// Those of [`Dispatcher::arrive`].
    fn hand_in<S: Sink>(&mut self, dispatcher: &mut Dispatcher<S>, now: Nanos) -> Result<(), LawBroken>;
}

impl Inbox for VecDeque<Job> {
    fn next_at(&self) -> Option<Nanos> {
        self.front().map(|job| job.arrival)
    }

    fn hand_in<S: Sink>(&mut self, dispatcher: &mut Dispatcher<S>, now: Nanos) -> Result<(), LawBroken> {
        let Some(job) = self.pop_front() else { return Ok(()) };
        dispatcher.arrive(now, job)
    }
}

/// One node of a run.
pub(super) struct Node<S, T> {
    dispatcher: Dispatcher<S>,
    times: T,
    /// The dispatcher's own time, what holds it up,
    decisions: Decisions,
    stalls: StallClock,
    /// and when it has done what it was given.
    free_at: Nanos,
    events: EventQueue,
    actions: Vec<Action>,
}

impl<S: Sink, T: ServiceTimes> Node<S, T> {
    pub(super) fn new(dispatcher: Dispatcher<S>, times: T, decisions: Decisions, stalls: StallClock) -> Self {
        let (events, actions) = (EventQueue::new(), Vec::new());
        Self { dispatcher, times, decisions, stalls, free_at: Nanos::ZERO, events, actions }
    }

    pub(super) fn dispatcher(&self) -> &Dispatcher<S> {
        &self.dispatcher
    }

    pub(super) fn dispatcher_mut(&mut self) -> &mut Dispatcher<S> {
        &mut self.dispatcher
    }

    pub(super) fn into_dispatcher(self) -> Dispatcher<S> {
        self.dispatcher
    }

    /// When the next events could be taken in, were nothing to hold the dispatcher up, if the next query arrives at `arrival`; `None`
    /// if nothing lies ahead.
    #[inline(always)]
    pub(super) fn next_group_at(&self, arrival: Option<Nanos>) -> Option<Nanos> {
        let due = match (self.events.peek(), arrival) {
            (Some(event), Some(arrival)) => event.min(arrival),
            (event, arrival) => event.or(arrival)?,
        };
        Some(due.max(self.free_at))
    }

    /// When they are, if they could be at `at`: once nothing holds the dispatcher up.
    #[inline(always)]
    pub(super) fn held_until(&self, at: Nanos) -> Nanos {
        self.stalls.begin_at(at)
    }

    /// Takes in all that is due at `at`, which [`next_group_at`](Self::next_group_at) gave, or by when the dispatcher is not held
    /// up any more, and starts what it leads to. `false` if `enough` says of the sink that no more is wanted.
    #[inline(always)]
    pub(super) fn play_group(
        &mut self,
        at: Nanos,
        inbox: &mut impl Inbox,
        enough: impl Fn(&S) -> bool,
    ) -> Result<bool, LawBroken> {
        let decisions = self.decisions;
        let now = self.stalls.begin(at);
        self.free_at = now + decisions.round;
        while let Some(due) = self.events.pop(inbox.next_at(), now) {
            match due {
                Due::Finish(_, processor) => {
                    let ended = self.dispatcher.finish(now, processor)?;
                    self.free_at += decisions.finish(ended);
                    if enough(self.dispatcher.sink()) {
                        return Ok(false);
                    }
                }
                Due::Wake(_) => {
                    self.free_at += decisions.arrival;
                    self.dispatcher.wake(now)?;
                }
                Due::Arrival => {
                    self.free_at += decisions.arrival;
                    inbox.hand_in(&mut self.dispatcher, now)?;
                }
            }
        }
        self.free_at = self.stalls.end(self.free_at);
        self.dispatcher.decide(self.free_at, &mut self.actions)?;
        for &action in &self.actions {
            match action {
                Action::Start(processor, number) => {
                    let rows = self.dispatcher.rows(processor, number);
                    let finish = self.times.start(processor, rows, self.free_at);
                    if let Some(preparing) = self.times.take_preparing() {
                        self.events.hold(processor, preparing.from, preparing.until);
                    }
                    self.events.finish_at(finish, processor);
                    if let Some(rerun) = self.times.take_rerun() {
                        self.dispatcher.rerun(processor, number, &rerun);
                    }
                }
                Action::WakeAt(at) => self.events.wake_at(at),
            }
        }
        self.actions.clear();
        Ok(true)
    }
}
