//! The one scheduler core, under simulated and under real time.
//!
//! The loop around it reports events, then asks once for decisions:
//!
//! ```text
//!   arrive · finish · wake   any number of events, all that are due now
//!   decide                   asks the lanes that they concern, and says what to start
//! ```
//!
//! The policy names for each event [the lanes it concerns](super::LanesToPoll). An event therefore costs the same on a machine
//! of 2 and of 64 lanes. Policies are not trusted. Each law checked here costs one comparison per job.
//!
//! | law | checked when |
//! | --- | --- |
//! | time never goes back | an event comes |
//! | only jobs that have arrived run | a batch starts |
//! | no job runs twice | a batch starts |
//! | nothing starts on a lane without room | by construction: only lanes with room are asked |
//! | only idle lanes help, and only with a job of their class | a lane joins |
//! | no job is lost: while jobs wait, something runs or a wake-up is due | after decisions |
//!
//! A policy may ask the dispatcher to [shed](super::Shed) load. The dispatcher then drops those jobs of a batch that can no
//! longer meet their deadline, before the batch starts. If no job is left, the policy is notified as if the batch had finished
//! at once.
//!
//! Jobs may occupy several lanes if policy and loop [allow it](Dispatcher::sharing_jobs): a lane with the job leads, others help
//! it until it ends.
//!
//! Memory is O(jobs in flight), plus what the [`Sink`] keeps.

mod events;
mod jobs;
mod lanes;
mod poll;

pub use events::{Due, EventQueue};
pub use jobs::Jobs;

use lanes::{Lanes, PendingPolls, Running};

use std::collections::VecDeque;

use super::log::{LogRow, RunLog, Sink};
use super::{Job, LanesToPoll, Policy, Shed};
use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::{Class, Machine};
use crate::base::time::Nanos;
use crate::cost::Rerun;

/// An action that the loop around the dispatcher must carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start the batch of this number on this processor now, and report [`Dispatcher::finish`] when it ends.
    /// [`Dispatcher::rows`] gives its jobs. Batches of a processor end in the order of their starts.
    Start(ProcessorId, u32),
    /// Report [`Dispatcher::wake`] at this time. It replaces any later wake-up requested before.
    WakeAt(Nanos),
}

/// A lane that helps another one from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Join<'a> {
    /// The lane that runs the job.
    pub lead: ProcessorId,
    /// The row of the job in the workload.
    pub row: u32,
    /// All lanes that help it, in the order in which they joined, each with the time. The last one has just joined.
    pub helpers: &'a [(ProcessorId, Nanos)],
}

/// A policy or the loop has broken its contract. This is an error in the program, never the user's.
///
/// It is one word, so that a result that rarely fails returns in a register.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("policy {} broke its contract at {} ns: {}", .0.policy, .0.now.0, .0.law)]
pub struct LawBroken(Box<Breach>);

/// The policy, the time and the law, with the values.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Breach {
    policy: String,
    now: Nanos,
    law: String,
}

impl LawBroken {
    /// The error of a loop whose arrival `this` comes earlier than the `last` one.
    #[cold]
    pub(crate) fn arrivals_went_back(policy: &str, now: Nanos, last: Nanos, this: Nanos) -> Self {
        let law = format!("time went back from an arrival at {} ns to one at {} ns", last.0, this.0);
        Self(Box::new(Breach { policy: policy.to_owned(), now, law }))
    }
}

/// Owns the processors' states, asks the policy, checks its laws and writes the log.
pub struct Dispatcher<S = RunLog> {
    policy: Box<dyn Policy>,
    /// The jobs that the policy allows to be dropped, and the number of batches that lost all jobs.
    shed: Shed,
    emptied: u64,
    lanes: Lanes,
    classes: Vec<Class>,
    jobs: Jobs,
    running: usize,
    batches: u32,
    now: Nanos,
    last_arrival: Nanos,
    pending: PendingPolls,
    /// The wake-up that the loop holds, and the earliest one requested since.
    held_wake: Option<Nanos>,
    asked_wake: Option<Nanos>,
    /// A buffer that the policy fills.
    chosen: Vec<JobId>,
    /// Whether lanes may help others, and the joins since the loop took them: the leading lane, and its lanes then.
    shares_jobs: bool,
    joins: VecDeque<(ProcessorId, u32)>,
    /// If every lane is asked after each decision: the batches that started only through that.
    unasked: Option<u64>,
    sink: S,
}

impl<S> std::fmt::Debug for Dispatcher<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dispatcher")
            .field("policy", &self.policy.name())
            .field("now", &self.now)
            .field("waiting", &self.jobs.num_waiting())
            .field("running", &self.running)
            .finish_non_exhaustive()
    }
}

impl Dispatcher {
    /// A dispatcher over an idle machine that keeps the whole log. `jobs` is the expected number of arrivals.
    #[must_use]
    #[inline]
    pub fn new(machine: &Machine, policy: Box<dyn Policy>, jobs: usize) -> Self {
        Self::with_sink(machine, policy, RunLog::with_room_for(jobs))
    }

    /// Ends the run and returns its log, with rows in order of arrival. Jobs that never ended are missing.
    #[must_use]
    #[inline]
    pub fn into_log(self) -> RunLog {
        let mut log = self.sink;
        log.sort();
        log
    }
}

impl<S: Sink> Dispatcher<S> {
    /// The policy's name.
    #[must_use]
    #[inline]
    pub fn policy_name(&self) -> &str {
        self.policy.name()
    }

    /// A dispatcher over an idle machine that gives each finished job's row to `sink`.
    #[must_use]
    pub fn with_sink(machine: &Machine, policy: Box<dyn Policy>, sink: S) -> Self {
        Self {
            shed: policy.sheds(),
            policy,
            emptied: 0,
            lanes: Lanes::of(machine),
            classes: machine.classes().collect(),
            jobs: Jobs::default(),
            running: 0,
            batches: 0,
            now: Nanos::ZERO,
            last_arrival: Nanos::ZERO,
            pending: PendingPolls::default(),
            held_wake: None,
            asked_wake: None,
            chosen: Vec::new(),
            shares_jobs: false,
            joins: VecDeque::new(),
            unasked: None,
            sink,
        }
    }

    /// This dispatcher for a loop that carries out [joins](Self::take_join), so that policies may [share
    /// jobs](Policy::shares_jobs) among lanes.
    #[must_use]
    #[inline]
    pub fn sharing_jobs(self) -> Self {
        Self { shares_jobs: self.policy.shares_jobs(), ..self }
    }

    /// Takes the next join of the last decision, in their order; `None` after the last one. They come after the starts of that
    /// decision.
    #[inline]
    pub fn take_join(&mut self) -> Option<Join<'_>> {
        let (lead, lanes) = self.joins.pop_front()?;
        let (rows, helpers) = self.lanes.team(lead)?;
        Some(Join { lead, row: *rows.first()?, helpers: helpers.get(..lanes as usize - 1)? })
    }

    /// The lanes that help `lead`, in the order in which they joined, each with the time.
    #[must_use]
    #[inline]
    pub fn helpers(&self, lead: ProcessorId) -> &[(ProcessorId, Nanos)] {
        self.lanes.team(lead).map_or(&[], |(_, helpers)| helpers)
    }

    /// The lanes on which the job that has just started on `lead` begins, or 0 if no other lane may help with it.
    #[must_use]
    #[inline]
    pub fn shared_lanes(&self, lead: ProcessorId) -> u32 {
        let helpers = self.helpers(lead).len() as u32;
        if self.shares_jobs && (self.policy.joins_running() || helpers > 0) { 1 + helpers } else { 0 }
    }

    /// For tests: this dispatcher, but it asks every lane with room after each decision. A start by such a question shows a
    /// lane that the policy should have named.
    #[must_use]
    #[inline]
    pub fn asking_everyone(self) -> Self {
        Self { unasked: Some(0), ..self }
    }

    /// Batches that started only since [all lanes are asked](Self::asking_everyone).
    #[must_use]
    #[inline]
    pub fn unasked_starts(&self) -> u64 {
        self.unasked.unwrap_or(0)
    }

    /// A job has arrived. Jobs are numbered from 0 in the order of these calls.
    ///
    /// # Errors
    /// If the loop breaks the order of time or of jobs.
    #[inline(always)]
    pub fn arrive(&mut self, now: Nanos, job: &Job) -> Result<(), LawBroken> {
        let expected = self.jobs.next_id();
        if job.id != expected {
            return Err(self.broken(format!("job {} arrived where job {expected} was due", job.id)));
        }
        self.arrive_made(now, job.arrival, |_| *job)
    }

    /// Adds a job that arrived at `arrival` and is built in place from its number, since it is read at once.
    ///
    /// # Errors
    /// As for [`arrive`](Self::arrive).
    #[inline(always)]
    pub(crate) fn arrive_made(
        &mut self,
        now: Nanos,
        arrival: Nanos,
        make: impl FnOnce(JobId) -> Job,
    ) -> Result<(), LawBroken> {
        self.pass_to(now)?;
        if arrival < self.last_arrival {
            return Err(LawBroken::arrivals_went_back(self.policy.name(), now, self.last_arrival, arrival));
        }
        self.last_arrival = arrival;
        let id = self.jobs.arrive(now, make);
        let lanes = self.policy.arrive(self.jobs.job(id), &self.jobs, now);
        self.pending.add(lanes);
        Ok(())
    }

    /// `processor` has finished its oldest batch. Returns the number of queries in it.
    ///
    /// # Errors
    /// If the loop breaks the order of time, or nothing ran there.
    #[inline]
    pub fn finish(&mut self, now: Nanos, processor: ProcessorId) -> Result<usize, LawBroken> {
        self.pass_to(now)?;
        let (lanes, helped) = if self.shares_jobs { self.lanes.release(processor, now) } else { (1, Nanos::ZERO) };
        let Some((lane, &Running { ref jobs, number, started, stolen, again, .. })) = self.lanes.finish(processor)
        else {
            return Err(self.broken(format!("processor {processor} finished, but nothing ran on it")));
        };
        self.running -= jobs.len();
        jobs.iter().for_each(|&id| self.jobs.finish(id));
        let table = &self.jobs;
        let rows = jobs.iter().map(|&id| {
            let job = table.job(id);
            LogRow {
                job: id,
                query: job.query,
                arrival: job.arrival,
                released: table.released(id),
                started,
                finished: now,
                processor,
                class: lane.class,
                batch: number,
                deadline: job.deadline,
                priority: job.priority,
                predicted: job.predicted.map(|cost| cost.alone),
                stolen,
                again,
                lanes,
                helped,
            }
        });
        self.sink.record_batch(number, rows);
        let lanes = self.policy.finished(lane, jobs, &self.jobs, now.since(started), now);
        let ended = jobs.len();
        self.jobs.leave();
        // With an empty queue no lane need be asked; a later arrival names its own lanes.
        if self.jobs.num_waiting() > 0 {
            self.pending.add(lanes);
            self.pending.add(LanesToPoll::Processor(processor));
        }
        Ok(ended)
    }

    /// The batch of this number, under way on `processor`, is rerun on the lane's fallback executor.
    #[inline]
    pub fn rerun(&mut self, processor: ProcessorId, number: u32, rerun: &Rerun) {
        if let Some(batch) = self.lanes.batch_mut(processor, number) {
            batch.again = true;
        }
        rerun.fault.iter().for_each(|fault| self.sink.lane_fault(fault));
    }

    /// A time requested by [`Action::WakeAt`] has come.
    ///
    /// # Errors
    /// If the loop breaks the order of time.
    pub fn wake(&mut self, now: Nanos) -> Result<(), LawBroken> {
        self.pass_to(now)?;
        self.held_wake = None;
        if self.jobs.num_waiting() > 0 {
            self.pending.add(LanesToPoll::Everyone);
        }
        Ok(())
    }

    /// Makes the decisions that follow from the events since the last call, and appends them to `actions`.
    ///
    /// # Errors
    /// If the policy loses, repeats or invents a job, or the loop breaks the order of time.
    #[inline]
    pub fn decide(&mut self, now: Nanos, actions: &mut Vec<Action>) -> Result<(), LawBroken> {
        self.pass_to(now)?;
        // At low load most events end here.
        if self.jobs.num_waiting() == 0 && !(self.shares_jobs && self.running > 0) {
            return Ok(());
        }
        self.poll_pending(actions)
    }

    /// Rows in the workload of the jobs of a batch under way on `processor`. The result is empty if there is no such batch.
    #[must_use]
    #[inline]
    pub fn rows(&self, processor: ProcessorId, number: u32) -> &[u32] {
        self.lanes.batch(processor, number).map_or(&[], |batch| &batch.rows)
    }

    /// Jobs that have arrived and not finished.
    #[must_use]
    #[inline]
    pub fn in_flight(&self) -> usize {
        self.jobs.num_waiting() + self.running
    }

    /// The jobs in flight, the oldest first.
    #[inline]
    pub fn unfinished(&self) -> impl Iterator<Item = &Job> {
        self.jobs.iter_unfinished()
    }

    /// The intended arrival of the oldest job in flight. It shows how far behind the run is.
    #[must_use]
    #[inline]
    pub fn oldest_arrival(&self) -> Option<Nanos> {
        self.jobs.first().map(|job| job.arrival)
    }

    /// The sink, with all rows recorded so far.
    #[must_use]
    #[inline]
    pub fn sink(&self) -> &S {
        &self.sink
    }

    /// The sink, mutable, to take rows out during the run.
    #[inline]
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Ends the run and gives the sink.
    #[must_use]
    #[inline]
    pub fn into_sink(self) -> S {
        self.sink
    }

    #[inline]
    fn pass_to(&mut self, now: Nanos) -> Result<(), LawBroken> {
        if now < self.now {
            return Err(self.broken(format!("time went back from {} ns to {} ns", self.now.0, now.0)));
        }
        self.now = now;
        Ok(())
    }

    #[cold]
    fn broken(&self, law: String) -> LawBroken {
        LawBroken(Box::new(Breach { policy: self.policy.name().to_owned(), now: self.now, law }))
    }
}

#[cfg(test)]
mod tests;
