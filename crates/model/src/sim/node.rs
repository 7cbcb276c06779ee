//! A node in simulated time: the loop around the dispatcher.
//!
//! Completions and the wake-up wait in an [`EventQueue`], which also orders events of one nanosecond. [`ServiceTimes`]
//! gives the service time of each batch.
//!
//! The dispatcher is a server too: each arrival, each batch that ends and each of its queries costs it [a
//! moment](crate::cost::Decisions). Events during a round wait and are then taken in together, as
//! a round. A machine whose lanes are faster than its one dispatcher is therefore simulated at the dispatcher's speed:
//!
//! ```text
//!   events      a   f a      a  a  f                all that is due is taken in as one round, which takes its time,
//!   dispatcher  [a ][f a    ][a  a  f  ]            then what it leads to starts
//!   starts          ^        ^         ^
//! ```

use std::collections::VecDeque;

use crate::base::time::Nanos;
use crate::cost::Decisions;
use crate::cost::ServiceTimes;
use crate::sched::{Action, Dispatcher, Due, EventQueue, Job, Join, LawBroken, Sink};

/// Arrivals at a node, in order of time.
pub(super) trait Inbox {
    fn next_at(&self) -> Option<Nanos>;

    /// Passes the next arrival to the dispatcher now, with its present estimates.
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
        dispatcher.arrive(now, &job)
    }
}

pub(super) struct Node<S, T> {
    dispatcher: Dispatcher<S>,
    times: T,
    /// The dispatcher's own time for its events.
    decisions: Decisions,
    /// The time at which the dispatcher has finished its last round.
    free_at: Nanos,
    events: EventQueue,
    actions: Vec<Action>,
}

impl<S: Sink, T: ServiceTimes> Node<S, T> {
    pub(super) fn new(dispatcher: Dispatcher<S>, times: T, decisions: Decisions) -> Self {
        let (events, actions) = (EventQueue::new(), Vec::new());
        Self { dispatcher: dispatcher.sharing_jobs(), times, decisions, free_at: Nanos::ZERO, events, actions }
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

    /// The time at which the next events can be taken in, if the next query arrives at `arrival`; `None` if no events are
    /// left.
    #[inline(always)]
    pub(super) fn next_group_at(&self, arrival: Option<Nanos>) -> Option<Nanos> {
        let due = match (self.events.peek(), arrival) {
            (Some(event), Some(arrival)) => event.min(arrival),
            (event, arrival) => event.or(arrival)?,
        };
        Some(due.max(self.free_at))
    }

    /// Takes in all events that are due at `now`, the result of [`next_group_at`](Self::next_group_at), and starts the
    /// resulting batches. Returns `false` if `enough` holds for the sink.
    #[inline(always)]
    pub(super) fn play_group(
        &mut self,
        now: Nanos,
        inbox: &mut impl Inbox,
        enough: impl Fn(&S) -> bool,
    ) -> Result<bool, LawBroken> {
        let (mut arrivals, mut batches, mut answers) = (0, 0, 0);
        while let Some(due) = self.events.pop(inbox.next_at(), now) {
            match due {
                Due::Finish(_, processor) => {
                    batches += 1;
                    answers += self.dispatcher.finish(now, processor)? as u32;
                    if enough(self.dispatcher.sink()) {
                        return Ok(false);
                    }
                }
                Due::Wake(_) => {
                    arrivals += 1;
                    self.dispatcher.wake(now)?;
                }
                Due::Arrival => {
                    arrivals += 1;
                    inbox.hand_in(&mut self.dispatcher, now)?;
                }
            }
        }
        self.free_at = self.decisions.end_of_round(now, arrivals, batches, answers);
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
        while let Some(Join { lead, row, helpers }) = self.dispatcher.take_join() {
            let finish = self.times.join(lead, row, helpers, self.free_at);
            self.events.move_to(finish, lead);
        }
        Ok(true)
    }
}
