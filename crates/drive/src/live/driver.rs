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
//! The steady state allocates nothing and takes no locks: jobs are made in small groups, buffers are reserved at the
//! start, and each lane has rings of its own. Only lanes that have work are looked at, so idle ones cost nothing.
//! Memory does not grow with the run: times go into [`Histogram`]s, and long runs keep a [sample](Sampled) of batches,
//! rounds and log rows.

mod joins;
mod limits;

use self::limits::{LostRun, Watchdog};

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tandem_model::base::histogram::Histogram;
use tandem_model::base::ids::ProcessorId;
use tandem_model::base::machine::{Class, LaneFault, PerClass};
use tandem_model::base::time::Nanos;
use tandem_model::cost::{BatchLoad, Cost, Decisions, MachineModel, Rerun, ServiceTimes};
use tandem_model::sched::{Action, Dispatcher, Due, EventQueue, Job, LawBroken};

use super::clock::{Clock, thread_time};
use super::ending::{Ending, LiveError};
use super::gaps::{Course, Gap, GapOf, SLACK};
use super::lane_set::{LaneSet, Members};
use super::outcome::{LiveOutcome, Spread};
use super::record::{Record, Sample, Sampled, room_for};
use super::ring::{Completion, Sleeper, Survived};
use super::served::{Round, ServedBatch};
use super::worker_lane::Lane;

/// When to stop before the plan's end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits<'a> {
    /// Set by Ctrl-C.
    pub(super) stop: &'a AtomicBool,
    /// The age of the oldest unfinished job at which the run ends.
    pub(super) abandon_after: Option<Nanos>,
}

/// What a run is driven with.
#[derive(Debug)]
pub(super) struct Setup<'a, T, J, R> {
    pub(super) model: &'a MachineModel,
    pub(super) lanes: &'a mut [Lane],
    /// The profiled costs of the workload's rows.
    pub(super) costs: &'a [PerClass<Cost>],
    /// The driver's own thread, for workers to wake.
    pub(super) sleeper: &'a Sleeper,
    pub(super) times: T,
    pub(super) dispatcher: Dispatcher<(Sampled, R)>,
    /// In order of arrival.
    pub(super) jobs: J,
}

/// Most queries of a run, about, whose work is compared with its prediction.
const WEIGHED: usize = 1 << 17;
/// Jobs that are made at a time.
const GROUP: usize = 32;

/// Drives jobs through the dispatcher to the lanes.
pub(super) fn drive<C: Clock, T: ServiceTimes, J: ExactSizeIterator<Item = Job>, R: Record>(
    start_clock: impl FnOnce() -> C,
    setup: Setup<'_, T, J, R>,
    limits: Limits<'_>,
) -> LiveOutcome {
    let mut driver = Driver::new(setup, start_clock);
    let began = thread_time();
    driver.run(limits);
    let driver_time = thread_time().saturating_sub(began);
    driver.into_outcome(driver_time)
}

struct Driver<'a, C, T, J, R> {
    clock: C,
    /// The driver's own time for its events, under a clock that it must advance.
    decisions: Decisions,
    dispatcher: Dispatcher<(Sampled, R)>,
    times: T,
    /// Jobs not yet released: a group that is there already, from `coming` on, and the rest.
    group: Vec<Job>,
    coming: usize,
    jobs: J,
    /// Recorded completions and the wake-up.
    queue: EventQueue,
    actions: Vec<Action>,
    lanes: Lanes<'a>,
    seen: Statistics,
    watchdog: Watchdog,
    lost_run: LostRun,
    ending: Ending,
}

/// The lanes, with what the driver knows of their batches.
struct Lanes<'a> {
    all: &'a mut [Lane],
    model: &'a MachineModel,
    costs: &'a [PerClass<Cost>],
    sleeper: &'a Sleeper,
    /// The batches under way, by lane and slot of its ring.
    starts: Vec<Vec<ServedBatch>>,
    /// End of each lane's last batch, since the lane pool was made.
    last_done: Vec<u64>,
    /// Lanes whose workers have batches, with the number of their batches.
    working: LaneSet,
    batches_working: usize,
    /// The last end of a query on a CPU worker.
    last_end: Nanos,
}

/// What a run measures.
struct Statistics {
    lags: Histogram,
    decided: Histogram,
    handoffs: PerClass<Histogram>,
    /// The rounds and batches to keep, and the number of rounds so far.
    sample: Sample,
    /// The batches whose work is compared with its prediction.
    weighed: Sample,
    rounds: Vec<Round>,
    num_rounds: u32,
    served: Vec<ServedBatch>,
    worked: PerClass<Nanos>,
    course: Course,
    /// The third of the run, by released jobs, and the number of planned ones.
    third: usize,
    planned: usize,
}

impl Statistics {
    /// Counts a job that is released at `now`, late by `lag`.
    #[inline]
    fn release(&mut self, lag: Nanos, now: Nanos) {
        self.third += usize::from(self.lags.len() == (self.third + 1) * self.planned.max(3) / 3);
        self.lags.push(lag);
        let third = &mut self.course.thirds[self.third];
        (third.lag, third.ended) = (third.lag.max(lag), now);
    }
}

impl<'a, C: Clock, T: ServiceTimes, J: ExactSizeIterator<Item = Job>, R: Record> Driver<'a, C, T, J, R> {
    /// Reserves all memory of the run, then starts its clock.
    fn new(setup: Setup<'a, T, J, R>, start_clock: impl FnOnce() -> C) -> Self {
        let Setup { model, lanes: all, costs, sleeper, times, dispatcher, jobs } = setup;
        let (planned, sample) = (jobs.len(), dispatcher.sink().0.sample());
        let kept = dispatcher.sink().0.expected(planned);
        let starts = all.iter().map(|lane| match lane {
            Lane::Worker(lane) => vec![ServedBatch::default(); lane.slots()],
            Lane::Recorded => Vec::new(),
        });
        let has_threads = all.iter().any(|lane| matches!(lane, Lane::Worker(_)));
        let seen = Statistics {
            lags: Histogram::ready(),
            decided: Histogram::ready(),
            handoffs: PerClass::from_fn(|class| {
                let has_class = has_threads && model.machine.count(class) > 0;
                if has_class { Histogram::ready() } else { Histogram::default() }
            }),
            sample,
            weighed: Sample::of(planned, WEIGHED),
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
            worked: PerClass::default(),
            course: Course::new(),
            third: 0,
            planned,
        };
        let num_lanes = all.len();
        let lanes = Lanes {
            starts: starts.collect(),
            all,
            model,
            costs,
            sleeper,
            last_done: vec![0; num_lanes],
            working: LaneSet::of(num_lanes),
            batches_working: 0,
            last_end: Nanos::ZERO,
        };
        let mut driver = Self {
            decisions: model.decisions(dispatcher.policy_name()),
            dispatcher,
            times,
            group: Vec::with_capacity(GROUP),
            coming: 0,
            jobs,
            queue: EventQueue::new(),
            actions: Vec::with_capacity(2 * num_lanes + 1),
            lanes,
            seen,
            watchdog: Watchdog::of(&model.faults),
            lost_run: LostRun::default(),
            ending: Ending::Complete,
            clock: start_clock(),
        };
        driver.take_group();
        driver
    }

    fn into_outcome(self, driver_time: Duration) -> LiveOutcome {
        let ended = self.clock.now();
        let Self { mut dispatcher, seen, ending, lanes, .. } = self;
        let Statistics { lags, decided, handoffs, rounds, served, worked, mut course, planned, .. } = seen;
        let workers = lanes.all.iter().filter(|lane| matches!(lane, Lane::Worker(_))).count();
        course.lane_time = Nanos(ended.0 * workers as u64);
        let open: Vec<Job> = dispatcher.unfinished().copied().collect();
        open.iter().for_each(|job| dispatcher.sink_mut().1.unanswered(job, ended.since(job.arrival)));
        LiveOutcome {
            log: dispatcher.into_sink().0.into_log(),
            ending,
            lag: Spread::of(&lags),
            decision: Spread::of(&decided),
            handoff: PerClass::from_fn(|class| Spread::of(&handoffs[class])),
            served,
            rounds,
            worked,
            driver_time,
            course,
            unreleased: planned - lags.len(),
            unfinished: open.len(),
        }
    }
}

impl<C: Clock, T: ServiceTimes, J: Iterator<Item = Job>, R: Record> Driver<'_, C, T, J, R> {
    fn run(&mut self, limits: Limits<'_>) {
        let mut now = self.clock.now();
        loop {
            self.look_at_limits(limits, now);
            if now >= self.watchdog.look_at {
                self.watch(now);
            }
            let taken = self.take_events(now);
            if taken != Round::default() {
                if C::JUMPS {
                    let Round { arrivals, batches, answers, .. } = taken;
                    self.clock.pass(self.decisions.end_of_round(now, arrivals, batches, answers).since(now));
                }
                self.decide();
                let end = self.clock.now();
                let round = Round { time: end.since(now), ..taken };
                self.note_round(round);
                self.note_gap(now + round.explained(), end);
                now = end;
                continue;
            }
            let due = self.queue.peek().unwrap_or(Nanos::MAX).min(self.next_arrival().unwrap_or(Nanos::MAX));
            let is_busy = self.lanes.batches_working > 0;
            if due == Nanos::MAX && !is_busy {
                break;
            }
            let lanes = &self.lanes;
            let has_completion = || (0..lanes.working.words()).any(|word| !lanes.completed(word).is_empty());
            let due = if is_busy { due.min(self.watchdog.look_at) } else { due };
            let explained = self.clock.wait(now, due, lanes.sleeper, is_busy, has_completion);
            now = self.clock.now();
            self.note_gap(explained, now);
        }
        // The answers of a pipeline's last batch may still be compared.
        for i in 0..self.lanes.all.len() {
            let Lane::Worker(lane) = &self.lanes.all[i] else { continue };
            // The job that it helped with may have failed.
            lane.rings.set_lead(None);
            if let Err(error) = lane.settle() {
                self.fail(error);
            }
        }
    }

    fn note_round(&mut self, round: Round) {
        let (events, seen) = (u64::from(round.events()), &mut self.seen);
        seen.decided.add(Nanos(round.time.0 / events.max(1)), events);
        if seen.sample.keeps(seen.num_rounds) {
            seen.rounds.push(round);
        }
        seen.num_rounds = seen.num_rounds.wrapping_add(1);
    }

    /// Notes a gap of the driver, if it read the clock at `now` long after what it did was `explained`.
    #[inline]
    fn note_gap(&mut self, explained: Nanos, now: Nanos) {
        if let Some(gap) = Gap::after(GapOf::Driver, explained, now).filter(|_| self.clock.owns_core()) {
            self.note(gap);
        }
    }

    #[cold]
    fn note(&mut self, gap: Gap) {
        self.seen.course.note(self.seen.third, gap);
        self.dispatcher.sink_mut().1.gap(&gap);
    }

    fn goes_on(&self) -> bool {
        matches!(self.ending, Ending::Complete)
    }

    fn next_arrival(&self) -> Option<Nanos> {
        self.group.get(self.coming).filter(|_| self.goes_on()).map(|job| job.arrival)
    }

    /// Takes in all events that are due and returns their numbers. The log gets the clock's time, not the due time:
    /// under a real clock the difference is the driver's lag.
    ///
    /// The driver may be held up after it has read the clock. A batch that ended since `now` keeps its own end, and
    /// later events get no earlier time.
    fn take_events(&mut self, mut now: Nanos) -> Round {
        let (mut taken, mut due_now) = (Round::default(), 0);
        if self.lanes.batches_working > 0 {
            for word in 0..self.lanes.working.words() {
                for lane in self.lanes.completed(word) {
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
                    // No other event is due before the first of these.
                    let before = self.queue.peek().unwrap_or(Nanos::MAX);
                    self.release(now);
                    taken.arrivals += 1;
                    while due_now < C::MOST_AT_ONCE
                        && self.next_arrival().is_some_and(|arrival| arrival <= now && arrival < before)
                    {
                        self.release(now);
                        taken.arrivals += 1;
                        due_now += 1;
                    }
                }
            }
        }
        taken
    }

    /// Releases the next job.
    #[inline]
    fn release(&mut self, now: Nanos) {
        let Some(job) = self.group.get(self.coming) else { return };
        self.coming += 1;
        self.seen.release(now.since(job.arrival), now);
        let arrived = self.dispatcher.arrive(now, job);
        self.keep_law(arrived);
        if self.coming == self.group.len() {
            self.take_group();
        }
    }

    /// Makes the next jobs. They are read later, since reading a job that is still being written stalls the processor.
    fn take_group(&mut self) {
        self.coming = 0;
        self.group.clear();
        self.group.extend(self.jobs.by_ref().take(GROUP));
    }

    /// Takes the batches that a lane has completed, and counts them with their queries.
    fn take_completions(&mut self, lane: usize, now: &mut Nanos, taken: &mut Round) {
        let processor = ProcessorId(lane as u32);
        while let Lane::Worker(worker) = &mut self.lanes.all[lane] {
            let slot = worker.oldest_slot();
            let Some(completion) = worker.take_completion() else { break };
            let Completion { picked_up, worked, host, prepared, device, done, has_failed, again } = completion;
            let ended = self.clock.at(done);
            *now = (*now).max(ended);
            let now = *now;
            let begun = self.lanes.starts[lane][slot];
            self.note_end(&begun, ended);
            self.lanes.batches_working -= 1;
            let Lane::Worker(worker) = &mut self.lanes.all[lane] else { break };
            if worker.under_way() == 0 {
                self.lanes.working.remove(lane);
            }
            let number = begun.number;
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
            let class = self.lanes.model.machine.class(processor);
            let begin = begun.started.max(self.clock.at(self.lanes.last_done[lane]));
            self.lanes.last_done[lane] = done;
            let served = ServedBatch {
                out: self.clock.at(picked_up).since(begin),
                worked: Nanos(worked),
                host: Nanos(host),
                prepared: Nanos(prepared),
                device: Nanos(device),
                back: now.since(ended),
                ..begun
            };
            let seen = &mut self.seen;
            seen.handoffs[class].push(served.handoff());
            if seen.sample.keeps(number) {
                seen.served.push(served);
            }
            if seen.weighed.keeps(number) {
                let rows = self.dispatcher.rows(processor, number);
                if let Some((work, predicted)) = self.lanes.work(&served, class, rows)
                    && self.dispatcher.helpers(processor).is_empty()
                {
                    let (of_third, of_predicted) = &mut seen.course.thirds[seen.third].work[class];
                    *of_third += work;
                    *of_predicted += predicted;
                }
            }
            seen.worked[class] += Nanos(worked);
            seen.course.thirds[seen.third].worked[class] += Nanos(worked);
            self.release_helpers(processor);
            match self.dispatcher.finish(now, processor) {
                Ok(ended) => taken.answers += ended as u32,
                Err(law) => fail(&mut self.ending, LiveError::Law(law)),
            }
        }
    }

    /// Notes the end of a batch, and the gap of all CPU workers before it.
    #[inline]
    fn note_end(&mut self, begun: &ServedBatch, ended: Nanos) {
        if self.lanes.shows_gaps(begun.processor) {
            if Gap::after(GapOf::Lanes, self.lanes.last_end, ended).is_some()
                && let Some(gap) = self.gap_of_lanes(begun, ended)
            {
                self.note(gap);
            }
            self.lanes.last_end = self.lanes.last_end.max(ended);
        }
    }

    /// The time for which no CPU worker ended anything before the batch `begun` ended, less what the queries under way
    /// explain.
    #[cold]
    fn gap_of_lanes(&self, begun: &ServedBatch, ended: Nanos) -> Option<Gap> {
        let lanes = &self.lanes;
        let explained = |batch: &ServedBatch| {
            let class = lanes.model.machine.class(batch.processor);
            let alone = |&row: &u32| lanes.costs.get(row as usize).map_or(Nanos::MAX, |costs| costs[class].alone);
            let rows = self.dispatcher.rows(batch.processor, batch.number);
            let alone = rows.iter().map(alone).fold(Nanos::ZERO, |sum, alone| sum + alone);
            let begin = batch.started.max(self.clock.at(lanes.last_done[batch.processor.index()]));
            begin + Nanos(alone.0.saturating_mul(SLACK))
        };
        let others = (0..lanes.working.words()).flat_map(|word| lanes.working.of_word(word)).filter_map(|lane| {
            let Lane::Worker(worker) = &lanes.all[lane] else { return None };
            let is_other = lane != begun.processor.index() && lanes.shows_gaps(ProcessorId(lane as u32));
            is_other.then(|| explained(&lanes.starts[lane][worker.oldest_slot()]))
        });
        Gap::after(GapOf::Lanes, others.fold(lanes.last_end.max(explained(begun)), Nanos::max), ended)
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
        for at in 0..self.actions.len() {
            match self.actions[at] {
                Action::WakeAt(at) => self.queue.wake_at(at),
                Action::Start(processor, number) => match self.lanes.all[processor.index()] {
                    Lane::Worker(_) => self.start_on_worker(processor, number, now),
                    Lane::Recorded => self.start_recorded(processor, number, now),
                },
            }
        }
        self.actions.clear();
        self.join_lanes(now);
    }

    /// Hands a batch to the thread of its lane.
    fn start_on_worker(&mut self, processor: ProcessorId, number: u32, now: Nanos) {
        let (lane, lanes) = (processor.index(), &mut self.lanes);
        let Lane::Worker(worker) = &mut lanes.all[lane] else { return };
        let idle = match worker.under_way() {
            0 => now.since(self.clock.at(lanes.last_done[lane])),
            _ => Nanos::ZERO,
        };
        let busy = lanes.working.len() - u32::from(lanes.working.contains(lane));
        let begun = ServedBatch { number, processor, started: now, idle, busy, ..ServedBatch::default() };
        lanes.starts[lane][worker.next_slot()] = begun;
        let rows = self.dispatcher.rows(processor, number);
        let mut until = 0;
        if worker.pretends() {
            until = self.clock.since_epoch(self.times.start(processor, rows, now));
        }
        let rerun = self.times.take_rerun();
        worker.order(rows.iter().copied(), until, self.dispatcher.shared_lanes(processor));
        lanes.working.insert(lane);
        lanes.batches_working += 1;
        if let Some(rerun) = rerun {
            self.dispatcher.rerun(processor, number, &rerun);
        }
    }

    /// Lets the recorded times of a batch pass in the event queue.
    fn start_recorded(&mut self, processor: ProcessorId, number: u32, now: Nanos) {
        let finish = self.times.start(processor, self.dispatcher.rows(processor, number), now);
        if let Some(preparing) = self.times.take_preparing() {
            self.queue.hold(processor, preparing.from, preparing.until);
        }
        self.queue.finish_at(finish, processor);
        if let Some(rerun) = self.times.take_rerun() {
            self.dispatcher.rerun(processor, number, &rerun);
        }
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

impl Lanes<'_> {
    /// The working lanes of a word that have completed something. A worker that sleeps over an order is woken.
    ///
    /// All lanes are looked at before any completion is handled: each look fetches a cache line from the worker's core,
    /// and the fetches overlap.
    #[inline]
    fn completed(&self, word: usize) -> Members {
        self.working.filtered(word, |lane| match &self.all[lane] {
            Lane::Worker(worker) => {
                worker.wake_if_asleep();
                worker.has_completion()
            }
            Lane::Recorded => false,
        })
    }

    /// The work of a batch, and what was predicted for it; `None` without a profiled time. Of an overlapping batch it is the
    /// device's: its thread works on others meanwhile.
    fn work(&self, served: &ServedBatch, class: Class, rows: &[u32]) -> Option<(Nanos, Nanos)> {
        let load = rows.iter().try_fold(BatchLoad::default(), |load, &row| {
            let cost = self.costs.get(row as usize)?[class];
            (cost != Cost::NEVER).then(|| load.with(cost))
        })?;
        let time = self.model.batch_time(class, &load);
        let is_of_device = served.overlaps() && load.queries > 1;
        Some(if is_of_device { (served.device, time.device) } else { (served.worked, time.total()) })
    }

    /// Whether a lane that ends nothing shows a gap of the machine: a core works on its queries.
    #[inline]
    fn shows_gaps(&self, lane: ProcessorId) -> bool {
        let is_worker = matches!(&self.all[lane.index()], Lane::Worker(worker) if !worker.pretends());
        is_worker && !self.model.machine.class(lane).is_gpu()
    }
}

/// A survived fault of a lane, with its time in the run.
fn lane_fault(processor: ProcessorId, at: Nanos, survived: Survived) -> LaneFault {
    let Survived { kind, queries, is_retired, what, .. } = survived;
    LaneFault { processor, at, kind, queries, is_retired, what }
}

/// Ends the run with an error; only the first one counts.
#[cold]
fn fail(ending: &mut Ending, error: LiveError) {
    if !matches!(ending, Ending::Failed(_)) {
        *ending = Ending::Failed(error);
    }
}
