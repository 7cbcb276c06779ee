//! The open-loop driver: one thread that releases arrivals, starts batches and takes completions.
//!
//! Its loop is the simulator's, under either clock: it takes in all events that are due, then decides once.
//!
//! ```text
//!   completions of lanes that work ─┐
//!   recorded completions, wake-up  ─┼─▶ finish · wake · arrive ─▶ decide ─▶ orders
//!   arrivals                       ─┘      all that are due         once
//! ```
//!
//! The steady state allocates nothing and takes no locks: jobs are made one at a time, buffers are reserved at the
//! start, and each lane has rings of its own. Only lanes that have work are looked at, so idle ones cost nothing.
//! Memory does not grow with the run: times go into [`Histogram`]s, and long runs keep a [sample](Sampled) of batches,
//! rounds and log rows.

mod joins;
mod limits;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::clock::{Clock, thread_time};
use super::ending::{Ending, LiveError};
use super::record::{Record, Sample, Sampled};
use super::ring::{Completion, Sleeper, Survived};
use super::served::{Round, ServedBatch};
use super::worker_lane::Lane;
use crate::base::histogram::Histogram;
use crate::base::ids::ProcessorId;
use crate::base::machine::{LaneFault, Machine, PerClass};
use crate::base::random::NodeSeed;
use crate::base::time::Nanos;
use crate::cost::machine_profile::DispatcherClock;
use crate::cost::{MachineModel, Rerun, ServiceTimes};
use crate::sched::{Action, Dispatcher, Due, EventQueue, Job, LawBroken, RunLog};

#[derive(Debug)]
pub(super) struct LiveRunResult {
    pub(super) log: RunLog,
    /// Lateness of the release of jobs.
    pub(super) lags: Histogram,
    /// Driver time for each event; the events of a round share its time equally.
    pub(super) decisions: Histogram,
    /// Time to hand batches to workers and back, by class.
    pub(super) handoffs: PerClass<Histogram>,
    /// The driver's rounds that were kept, in order.
    pub(super) rounds: Vec<Round>,
    /// The workers' batches that were kept, in the order in which the driver saw them end.
    pub(super) served: Vec<ServedBatch>,
    /// Jobs that were released but neither finished nor dropped.
    pub(super) unfinished: usize,
    pub(super) worked: PerClass<Nanos>,
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

/// Drives `jobs`, in order of arrival, through the dispatcher to the lanes.
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
    let has_threads = lanes.iter().any(|lane| matches!(lane, Lane::Worker(_)));
    let mut driver = Driver {
        starts: starts.collect(),
        last_done: vec![0; lanes.len()],
        working: vec![0; lanes.len().div_ceil(64)],
        batches_working: 0,
        machine: &model.machine,
        dispatcher_clock: model.dispatcher_time(dispatcher.policy_name()).clock(seed),
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
        // Each job arrives and finishes; decisions are at most as many as events.
        rounds: room_for(
            2 * kept,
            Round { arrivals: u32::MAX, batches: u32::MAX, answers: u32::MAX, time: Nanos::MAX },
        ),
        num_rounds: 0,
        served: room_for(
            if has_threads { kept } else { 0 },
            ServedBatch { number: u32::MAX, started: Nanos::MAX, ..ServedBatch::default() },
        ),
        look_at: limits::LOOK,
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
    /// The driver's own time for its events, under a clock that it must advance.
    dispatcher_clock: DispatcherClock,
    /// Time that a lane may spend on a batch; the next check of it is due at `watch_at`.
    watchdog: Nanos,
    /// Time after which a lane without a fallback is given up.
    lost_after: Nanos,
    watch_at: Nanos,
    /// Start of the time in which the driver has looked as often as it should. A gap means that the whole machine stood
    /// still, lanes included.
    awake_since: Nanos,
    lanes: &'a mut [Lane],
    /// The driver's own thread, for workers to wake.
    sleeper: &'a Sleeper,
    times: T,
    dispatcher: Dispatcher<(Sampled, R)>,
    /// Jobs not yet released: the next one, and the rest.
    next_job: Option<Job>,
    jobs: J,
    /// Recorded completions and the wake-up.
    queue: EventQueue,
    actions: Vec<Action>,
    /// The batches under way, by lane and slot of its ring.
    starts: Vec<Vec<ServedBatch>>,
    /// End of each lane's last batch, since the lane pool was made.
    last_done: Vec<u64>,
    /// Lanes whose workers have batches, as bits, with the number of their batches.
    working: Vec<u64>,
    batches_working: usize,
    lags: Histogram,
    decided: Histogram,
    handoffs: PerClass<Histogram>,
    /// The rounds and batches to keep, and the number of rounds so far.
    sample: Sample,
    rounds: Vec<Round>,
    num_rounds: u32,
    served: Vec<ServedBatch>,
    worked: PerClass<Nanos>,
    ending: Ending,
    /// The next check for a lost run, the jobs in flight at the last one, and the looks in a row that found more of them.
    look_at: Nanos,
    backlog: usize,
    grown: u32,
}

impl<C: Clock, T: ServiceTimes, J: Iterator<Item = Job>, R: Record> Driver<'_, C, T, J, R> {
    fn run(&mut self, limits: Limits<'_>) {
        let mut now = self.clock.now();
        loop {
            self.look_at_limits(limits, now);
            if now >= self.watch_at {
                self.watch(now);
            }
            let taken = self.take_events(now);
            if taken != Round::default() {
                if C::JUMPS {
                    let Round { arrivals, batches, answers, .. } = taken;
                    self.clock.pass(self.dispatcher_clock.end_of_round(now, arrivals, batches, answers).since(now));
                }
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
        // The answers of a pipeline's last batch may still be compared.
        for i in 0..self.lanes.len() {
            let Lane::Worker(lane) = &self.lanes[i] else { continue };
            // The job that it helped with may have failed.
            lane.rings.set_lead(None);
            if let Err(error) = lane.settle() {
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

    fn goes_on(&self) -> bool {
        matches!(self.ending, Ending::Complete)
    }

    fn next_arrival(&self) -> Option<Nanos> {
        self.next_job.as_ref().filter(|_| self.goes_on()).map(|job| job.arrival)
    }

    /// Takes in all events that are due and returns their numbers. The log gets the clock's time, not the due time:
    /// under a real clock the difference is the driver's lag.
    ///
    /// The driver may be held up after it has read the clock. A batch that ended since `now` keeps its own end, and
    /// later events get no earlier time.
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

    /// Takes the batches that a lane has completed, and counts them with their queries.
    fn take_completions(&mut self, lane: usize, now: &mut Nanos, taken: &mut Round) {
        let processor = ProcessorId(lane as u32);
        while let Lane::Worker(worker) = &mut self.lanes[lane] {
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
            self.release_helpers(processor);
            match self.dispatcher.finish(now, processor) {
                Ok(ended) => taken.answers += ended as u32,
                Err(law) => fail(&mut self.ending, LiveError::Law(law)),
            }
        }
    }

    fn decide(&mut self) {
        // The run ends: what the policy would start now stays unfinished and out of the log.
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
                            let lanes = self.dispatcher.shared_lanes(processor);
                            worker.order(rows.iter().copied(), until, lanes);
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
        self.join_lanes(now);
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

/// A survived fault of a lane, with its time in the run.
fn lane_fault(processor: ProcessorId, at: Nanos, survived: Survived) -> LaneFault {
    let Survived { kind, queries, is_retired, what, .. } = survived;
    LaneFault { processor, at, kind, queries, is_retired, what }
}

/// An empty vector with room for `count` items, in memory that is already mapped: the first touch of a page costs as
/// much as a system call. `blank` must not be all zeros, since such memory would come unmapped.
pub(super) fn room_for<T: Clone>(count: usize, blank: T) -> Vec<T> {
    let mut room = vec![blank; count];
    room.clear();
    room
}

/// Ends the run with an error; only the first one counts.
#[cold]
fn fail(ending: &mut Ending, error: LiveError) {
    if !matches!(ending, Ending::Failed(_)) {
        *ending = Ending::Failed(error);
    }
}

/// Returns, of the working lanes `bits` of a word, those that have completed something. A worker that sleeps over an
/// order is woken.
///
/// All lanes are looked at before any completion is handled: each look fetches a cache line from the worker's core, and
/// the fetches overlap.
fn completed(lanes: &[Lane], word: usize, bits: u64) -> u64 {
    members(word, bits).fold(0, |done, lane| {
        let Lane::Worker(worker) = &lanes[lane] else { return done };
        worker.wake_if_asleep();
        done | u64::from(worker.has_completion()) << (lane % 64)
    })
}

fn members(word: usize, bits: u64) -> impl Iterator<Item = usize> {
    let rest = |bits: &u64| Some(bits & (bits - 1)).filter(|&bits| bits != 0);
    std::iter::successors(Some(bits).filter(|&bits| bits != 0), rest)
        .map(move |bits| word * 64 + bits.trailing_zeros() as usize)
}
