//! The open-loop driver: one thread that releases arrivals, starts batches and takes completions.
//!
//! The same loop under either clock, and the simulator's: what is due is taken in together, then it is decided once.
//!
//! ```text
//!   completions of lanes that work ─┐
//!   recorded completions, wake-up  ─┼─▶ finish · wake · arrive ─▶ decide ─▶ orders
//!   arrivals                       ─┘      all that are due         once
//! ```
//!
//! In steady state it allocates nothing and locks nothing: jobs are made one at a time as they come; what is kept has its
//! room from the start; a lane's rings are its own. It looks only at lanes that have work, so idle ones cost nothing.
//! Memory does not grow with the run: times are counted by [`Histogram`]s, and of batches, rounds and the log only a
//! [sample](Sampled) is kept where all of them would be too many.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::clock::{Clock, thread_time};
use super::ending::{Ending, LiveError};
use super::lane_pool::Lane;
use super::record::{Record, Sample, Sampled};
use super::ring::{Completion, Sleeper, Survived};
use super::served::{Round, ServedBatch};
use crate::base::histogram::Histogram;
use crate::base::ids::ProcessorId;
use crate::base::machine::{LaneFault, Machine, PerClass};
use crate::base::random::NodeSeed;
use crate::base::time::Nanos;
use crate::cost::machine_file::{DispatcherStalls, StallClock};
use crate::cost::{Decisions, DispatcherTime, MachineModel, Rerun, ServiceTimes};
use crate::sched::{Action, Dispatcher, Due, EventQueue, Job, LawBroken, RunLog};

/// What a run left behind.
#[derive(Debug)]
pub(super) struct LiveRunResult {
    pub(super) log: RunLog,
    /// How late jobs were released.
    pub(super) lags: Histogram,
    /// What events took: those of a round share its time equally.
    pub(super) decisions: Histogram,
    /// By class, what handing batches of workers over and back took.
    pub(super) handoffs: PerClass<Histogram>,
    /// The driver's rounds, in order, those that were kept.
    pub(super) rounds: Vec<Round>,
    /// The batches of workers, in the order in which they were seen to end, those that were kept.
    pub(super) served: Vec<ServedBatch>,
    /// Jobs that were released and neither finished nor were dropped.
    pub(super) unfinished: usize,
    /// Time in which workers of a class worked.
    pub(super) worked: PerClass<Nanos>,
    /// Processor time of the loop.
    pub(super) driver_time: Duration,
    pub(super) ending: Ending,
}

/// When to stop before the plan's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    /// Set by Ctrl-C.
    pub(super) stop: &'a AtomicBool,
    /// The age of the oldest unfinished job at which the run ends.
    pub(super) abandon_after: Option<Nanos>,
}

/// How often it is asked whether the run is lost.
const LOOK: Nanos = Nanos(500_000_000);
/// A backlog grows if it was longer at each of so many looks than at the one before. After a pause of the whole machine it is
/// long, but shrinks.
const GROWN_LOOKS: u32 = 6;

/// Drives `jobs`, in order of arrival, through the dispatcher onto the lanes.
#[expect(clippy::too_many_arguments, reason = "called once, by what has just made all of these")]
pub(super) fn drive<C: Clock, R: Record>(
    start_clock: impl FnOnce() -> C,
    (model, seed): (&MachineModel, NodeSeed),
    lanes: &mut [Lane],
    sleeper: &Sleeper,
    times: impl ServiceTimes,
    dispatcher: Dispatcher<(Sampled, R)>,
    mut jobs: impl ExactSizeIterator<Item = Job>,
    limits: Limits<'_>,
) -> LiveRunResult {
    let kept = dispatcher.sink().0.expected(jobs.len());
    let next_job = jobs.next();
    let starts = lanes.iter().map(|lane| match lane {
        Lane::Worker(lane) => vec![ServedBatch::default(); lane.slots()],
        Lane::Recorded => Vec::new(),
    });
    let DispatcherTime { decisions, stalls } = model.dispatcher_time(dispatcher.policy_name());
    // A real core has stalls of its own.
    let stalls = if C::JUMPS { stalls } else { DispatcherStalls::default() };
    let has_threads = lanes.iter().any(|lane| matches!(lane, Lane::Worker(_)));
    let mut driver = Driver {
        starts: starts.collect(),
        last_done: vec![0; lanes.len()],
        working: vec![0; lanes.len().div_ceil(64)],
        batches_working: 0,
        machine: &model.machine,
        decisions,
        stalls: stalls.of_run(seed),
        watchdog: model.faults.watchdog,
        lost_after: model.faults.lost_after,
        watch_at: Nanos::ZERO,
        awake_since: Nanos::ZERO,
        sleeper,
        times,
        sample: dispatcher.sink().0.sample(),
        dispatcher,
        jobs,
        next_job,
        queue: EventQueue::new(),
        actions: Vec::with_capacity(2 * lanes.len() + 1),
        lanes,
        lags: Histogram::ready(),
        decided: Histogram::ready(),
        handoffs: PerClass::from_fn(|class| {
            let has_class = has_threads && model.machine.count(class) > 0;
            if has_class { Histogram::ready() } else { Histogram::default() }
        }),
        // Each job arrives and finishes, and decisions are at most as many as events.
        rounds: room_for(
            2 * kept,
            Round { arrivals: u32::MAX, batches: u32::MAX, answers: u32::MAX, time: Nanos::MAX },
        ),
        num_rounds: 0,
        served: room_for(
            if has_threads { kept } else { 0 },
            ServedBatch { number: u32::MAX, started: Nanos::MAX, ..ServedBatch::default() },
        ),
        look_at: LOOK,
        backlog: 0,
        grown: 0,
        worked: PerClass::default(),
        ending: Ending::Complete,
        clock: start_clock(),
    };
    let began = thread_time();
    driver.run(limits);
    let driver_time = thread_time().saturating_sub(began);
    let ended = driver.clock.now();
    let Driver { mut dispatcher, lags, decided, handoffs, rounds, served, worked, ending, .. } = driver;
    let open: Vec<Job> = dispatcher.unfinished().copied().collect();
    open.iter().for_each(|job| dispatcher.sink_mut().1.unanswered(job, ended.since(job.arrival)));
    let (unfinished, decisions) = (open.len(), decided);
    let log = dispatcher.into_sink().0.into_log();
    LiveRunResult { log, lags, decisions, handoffs, rounds, served, unfinished, worked, driver_time, ending }
}

struct Driver<'a, C, T, J, R> {
    clock: C,
    machine: &'a Machine,
    /// What a round costs under a clock that jumps, and what holds the driver up.
    decisions: Decisions,
    stalls: StallClock,
    /// How long a lane may be at a batch, and when that is looked at next.
    watchdog: Nanos,
    /// How long one may be that nothing can take over.
    lost_after: Nanos,
    watch_at: Nanos,
    /// Since when the driver has looked as often as it should: if it could not, the machine stood still, and lanes with it.
    awake_since: Nanos,
    lanes: &'a mut [Lane],
    /// The driver's own thread, for workers to wake.
    sleeper: &'a Sleeper,
    /// What recorded lanes take.
    times: T,
    dispatcher: Dispatcher<(Sampled, R)>,
    /// Those not yet released: the next, and those after it.
    next_job: Option<Job>,
    jobs: J,
    /// Recorded completions and the wake-up.
    queue: EventQueue,
    actions: Vec<Action>,
    /// By lane and slot of its ring: what is known of the batch since it was handed over,
    starts: Vec<Vec<ServedBatch>>,
    /// and by lane: when the last one was done, since the lane pool was made.
    last_done: Vec<u64>,
    /// Lanes whose workers have batches now, as bits, and how many batches they have.
    working: Vec<u64>,
    batches_working: usize,
    lags: Histogram,
    decided: Histogram,
    handoffs: PerClass<Histogram>,
    /// Which rounds and batches are kept, and how many rounds there have been.
    sample: Sample,
    rounds: Vec<Round>,
    num_rounds: u32,
    served: Vec<ServedBatch>,
    worked: PerClass<Nanos>,
    ending: Ending,
    /// When it is asked next whether the run is lost; jobs in flight at the last look; looks since it last shrank.
    look_at: Nanos,
    backlog: usize,
    grown: u32,
}

impl<C: Clock, T: ServiceTimes, J: Iterator<Item = Job>, R: Record> Driver<'_, C, T, J, R> {
    fn run(&mut self, limits: Limits<'_>) {
        let mut now = self.clock.now();
        loop {
            let begin = self.stalls.begin(now);
            now = self.pass_until(now, begin);
            self.look_at_limits(limits, now);
            if now >= self.watch_at {
                self.watch(now);
            }
            let taken = self.take_events(now);
            if taken != Round::default() {
                let end = self.stalls.end(now + self.decisions.of(taken.arrivals, taken.batches, taken.answers));
                self.pass_until(now, end);
                self.decide();
                let end = self.clock.now();
                self.note_round(Round { time: end.since(now), ..taken });
                now = end;
                continue;
            }
            let due = self.queue.peek().unwrap_or(Nanos::MAX).min(self.next_arrival().unwrap_or(Nanos::MAX));
            if due == Nanos::MAX && self.batches_working == 0 {
                break;
            }
            let (lanes, working) = (&*self.lanes, &self.working);
            let has_completion = || working.iter().enumerate().any(|(word, &bits)| completed(lanes, word, bits) != 0);
            let due = if self.batches_working > 0 { due.min(self.watch_at) } else { due };
            self.clock.wait(due, self.sleeper, self.batches_working > 0, has_completion);
            now = self.clock.now();
        }
        // Answers of a pipeline's last batch may still be compared.
        for i in 0..self.lanes.len() {
            if let Lane::Worker(lane) = &self.lanes[i]
                && let Err(error) = lane.settle()
            {
                self.fail(error);
            }
        }
    }

    fn note_round(&mut self, round: Round) {
        let events = u64::from(round.events());
        self.decided.add(Nanos(round.time.0 / events.max(1)), events);
        if self.sample.keeps(self.num_rounds) {
            self.rounds.push(round);
        }
        self.num_rounds = self.num_rounds.wrapping_add(1);
    }

    /// Lets the time from `now` to `until` pass where it does not by itself; what time it is then.
    fn pass_until(&mut self, now: Nanos, until: Nanos) -> Nanos {
        if !C::JUMPS || until <= now {
            return now;
        }
        self.clock.pass(until.since(now));
        self.clock.now()
    }

    /// Ends the run early if it has to. From then on nothing is released or started; what runs is waited for.
    fn look_at_limits(&mut self, limits: Limits<'_>, now: Nanos) {
        if !self.goes_on() {
            return;
        }
        if limits.stop.load(Ordering::Relaxed) {
            self.ending = Ending::Interrupted;
        } else if let (Some(limit), Some(oldest)) = (limits.abandon_after, self.dispatcher.oldest_arrival())
            && now.since(oldest) > limit
        {
            self.ending = Ending::Overloaded;
        } else if now >= self.look_at {
            self.look_at = now + LOOK;
            if self.is_hopeless(now) {
                self.ending = Ending::Overloaded;
            }
        }
    }

    /// Whether the run has failed whatever is still to come, and its backlog only grows.
    #[cold]
    fn is_hopeless(&mut self, now: Nanos) -> bool {
        let backlog = self.dispatcher.in_flight();
        self.grown = if backlog > self.backlog { self.grown + 1 } else { 0 };
        self.backlog = backlog;
        let Some(late_after) = self.dispatcher.sink().1.late_after() else { return false };
        if self.grown < GROWN_LOOKS || self.next_job.is_none() {
            return false;
        }
        let overdue = self.dispatcher.unfinished().filter(|job| now.since(job.arrival) > late_after).count();
        self.dispatcher.sink().1.is_lost(overdue)
    }

    /// Looks for lanes that have been at a batch for longer than the watchdog waits, and lets another thread take them over.
    #[cold]
    fn watch(&mut self, now: Nanos) {
        let each = Nanos((self.watchdog.0 / WATCHES).max(1));
        if now.since(self.watch_at) > Nanos(each.0 * LATE_WATCHES) {
            self.awake_since = now;
        }
        self.watch_at = now + each;
        for word in 0..self.working.len() {
            for lane in members(word, self.working[word]) {
                let Lane::Worker(worker) = &mut self.lanes[lane] else { continue };
                let begun = self.starts[lane][worker.oldest_slot()];
                let began = begun.started.max(self.clock.at(self.last_done[lane])).max(self.awake_since);
                if now.since(began) <= self.watchdog || worker.has_completion() {
                    continue;
                }
                let queries = self.dispatcher.rows(begun.processor, begun.number).len();
                match worker.take_over(queries, self.watchdog) {
                    // Whoever has no fallback is waited for, but not for ever; whoever only passes the time comes to its end.
                    None if now.since(began) > self.lost_after && !worker.pretends() => {
                        self.batches_working -= worker.give_up() as usize;
                        self.working[word] &= !(1 << (lane % 64));
                        let (processor, waited) = (begun.processor, self.lost_after);
                        fail(&mut self.ending, LiveError::LaneHangs { processor, waited });
                    }
                    None => {}
                    Some(Ok(survived)) => {
                        let fault = lane_fault(begun.processor, self.clock.at(survived.at), survived);
                        self.dispatcher.rerun(begun.processor, begun.number, &Rerun { fault: Some(fault) });
                    }
                    Some(Err(error)) => fail(&mut self.ending, error),
                }
            }
        }
    }

    fn goes_on(&self) -> bool {
        matches!(self.ending, Ending::Complete)
    }

    fn next_arrival(&self) -> Option<Nanos> {
        self.next_job.as_ref().filter(|_| self.goes_on()).map(|job| job.arrival)
    }

    /// Takes in what has happened or is due, and says what that was. Its time in the log is the clock's, not the one it was due
    /// at: under a real clock the difference is the driver's lag.
    ///
    /// The driver may be held up after it has read the clock: a batch that ended since `now` ended when it did, and what is
    /// taken after it comes no earlier.
    fn take_events(&mut self, mut now: Nanos) -> Round {
        let (mut taken, mut due_now) = (Round::default(), 0);
        if self.batches_working > 0 {
            for word in 0..self.working.len() {
                for lane in members(word, completed(self.lanes, word, self.working[word])) {
                    self.take_completions(lane, &mut now, &mut taken);
                }
            }
        }
        while due_now < C::MOST_AT_ONCE
            && let Some(due) = self.queue.pop(self.next_arrival(), now)
        {
            due_now += 1;
            match due {
                Due::Finish(_, processor) => {
                    taken.batches += 1;
                    match self.dispatcher.finish(now, processor) {
                        Ok(ended) => taken.answers += ended as u32,
                        Err(law) => self.fail(LiveError::Law(law)),
                    }
                }
                Due::Wake(_) => {
                    taken.arrivals += 1;
                    let woken = self.dispatcher.wake(now);
                    self.keep_law(woken);
                }
                Due::Arrival => {
                    taken.arrivals += 1;
                    if let Some(job) = self.next_job {
                        self.next_job = self.jobs.next();
                        self.lags.push(now.since(job.arrival));
                        let arrived = self.dispatcher.arrive(now, job);
                        self.keep_law(arrived);
                    }
                }
            }
        }
        taken
    }

    /// Takes the batches that a lane has completed, and counts them and their queries.
    fn take_completions(&mut self, lane: usize, now: &mut Nanos, taken: &mut Round) {
        let processor = ProcessorId(lane as u32);
        let Lane::Worker(worker) = &mut self.lanes[lane] else { return };
        loop {
            let slot = worker.oldest_slot();
            let Some(completion) = worker.take_completion() else { break };
            let Completion { picked_up, worked, host, prepared, device, done, has_failed, again } = completion;
            *now = (*now).max(self.clock.at(done));
            let now = *now;
            self.batches_working -= 1;
            if worker.under_way() == 0 {
                self.working[lane / 64] &= !(1 << (lane % 64));
            }
            let number = self.starts[lane][slot].number;
            if again {
                self.dispatcher.rerun(processor, number, &Rerun { fault: None });
            }
            for survived in if again || has_failed { worker.take_survived() } else { Vec::new() } {
                let fault = Some(lane_fault(processor, self.clock.at(survived.at), survived));
                self.dispatcher.rerun(processor, number, &Rerun { fault });
            }
            taken.batches += 1;
            if has_failed {
                if let Some(error) = worker.take_failure() {
                    fail(&mut self.ending, error);
                }
                continue;
            }
            let class = self.machine.class(processor);
            let begun = self.starts[lane][slot];
            let begin = begun.started.max(self.clock.at(self.last_done[lane]));
            self.last_done[lane] = done;
            let served = ServedBatch {
                out: self.clock.at(picked_up).since(begin),
                worked: Nanos(worked),
                host: Nanos(host),
                prepared: Nanos(prepared),
                device: Nanos(device),
                back: now.since(self.clock.at(done)),
                ..begun
            };
            self.handoffs[class].push(served.handoff());
            if self.sample.keeps(number) {
                self.served.push(served);
            }
            self.worked[class] += Nanos(worked);
            match self.dispatcher.finish(now, processor) {
                Ok(ended) => taken.answers += ended as u32,
                Err(law) => fail(&mut self.ending, LiveError::Law(law)),
            }
        }
    }

    /// Decides what the events lead to, and starts it.
    fn decide(&mut self) {
        // The run ends: what the policy would start now stays unfinished, and is not in the log.
        if !self.goes_on() {
            return;
        }
        let now = self.clock.now();
        let decided = self.dispatcher.decide(now, &mut self.actions);
        self.keep_law(decided);
        if !self.goes_on() {
            return;
        }
        for &action in &self.actions {
            match action {
                Action::WakeAt(at) => self.queue.wake_at(at),
                Action::Start(processor, number) => {
                    let rows = self.dispatcher.rows(processor, number);
                    let lane = processor.index();
                    match &mut self.lanes[lane] {
                        Lane::Worker(worker) => {
                            let idle = match worker.under_way() {
                                0 => now.since(self.clock.at(self.last_done[lane])),
                                _ => Nanos::ZERO,
                            };
                            let busy = self.working.iter().map(|word| word.count_ones()).sum::<u32>();
                            let busy = busy - (self.working[lane / 64] >> (lane % 64) & 1) as u32;
                            let (started, number) = (now, number);
                            let begun =
                                ServedBatch { number, processor, started, idle, busy, ..ServedBatch::default() };
                            self.starts[lane][worker.next_slot()] = begun;
                            let mut until = 0;
                            if worker.pretends() {
                                until = self.clock.since_epoch(self.times.start(processor, rows, now));
                            }
                            let rerun = self.times.take_rerun();
                            worker.order(rows.iter().copied(), until);
                            self.working[lane / 64] |= 1 << (lane % 64);
                            self.batches_working += 1;
                            if let Some(rerun) = rerun {
                                self.dispatcher.rerun(processor, number, &rerun);
                            }
                        }
                        Lane::Recorded => {
                            let finish = self.times.start(processor, rows, now);
                            if let Some(preparing) = self.times.take_preparing() {
                                self.queue.hold(processor, preparing.from, preparing.until);
                            }
                            self.queue.finish_at(finish, processor);
                            if let Some(rerun) = self.times.take_rerun() {
                                self.dispatcher.rerun(processor, number, &rerun);
                            }
                        }
                    }
                }
            }
        }
        self.actions.clear();
    }

    fn keep_law(&mut self, result: Result<(), LawBroken>) {
        if let Err(law) = result {
            self.fail(LiveError::Law(law));
        }
    }

    fn fail(&mut self, error: LiveError) {
        fail(&mut self.ending, error);
    }
}

/// How often a lane is looked at while the watchdog waits for it.
const WATCHES: u64 = 100;
/// A look that comes so many of them too late comes from a driver that was held up itself.
const LATE_WATCHES: u64 = 10;

/// What a lane survived, with its time in the run.
fn lane_fault(processor: ProcessorId, at: Nanos, survived: Survived) -> LaneFault {
    let Survived { kind, queries, is_retired, what, .. } = survived;
    LaneFault { processor, at, kind, queries, is_retired, what }
}

/// An empty vector with room for so many, whose memory is there already: the first touch of a page costs a system call's
/// time. `blank` is not all zeros: such memory would come untouched.
pub(super) fn room_for<T: Clone>(count: usize, blank: T) -> Vec<T> {
    let mut room = vec![blank; count];
    room.clear();
    room
}

/// Ends the run with an error; the first one counts.
#[cold]
fn fail(ending: &mut Ending, error: LiveError) {
    if !matches!(ending, Ending::Failed(_)) {
        *ending = Ending::Failed(error);
    }
}

/// Of the working lanes `bits` of a word, those that have completed something. Whoever sleeps over an order is woken.
///
/// All are looked at before anything is done about any: what a worker has written comes from its core's cache, and so
/// these journeys overlap.
fn completed(lanes: &[Lane], word: usize, bits: u64) -> u64 {
    members(word, bits).fold(0, |done, lane| {
        let Lane::Worker(worker) = &lanes[lane] else { return done };
        worker.wake_if_asleep();
        done | u64::from(worker.has_completion()) << (lane % 64)
    })
}

/// The positions that the bits of a word stand for.
fn members(word: usize, bits: u64) -> impl Iterator<Item = usize> {
    let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|&bits| bits != 0);
    std::iter::successors(Some(bits).filter(|&bits| bits != 0), rest)
        .map(move |bits| word * 64 + bits.trailing_zeros() as usize)
}
