//! Runs of policies that serve [queues](crate::sched::FifoQueues), played without a dispatcher.
//!
//! The next step of such a policy is known: a job joins its line when it arrives, and starts on a lane when the jobs
//! before it are finished. For one lane this is Lindley's recursion, for several lanes Kiefer and Wolfowitz's:
//!
//! ```text
//!   start(j) = max(arrival(j), when the first of the line's lanes is free)      finish(j) = start(j) + service(j)
//! ```
//!
//! It is evaluated event by event here: rows are due in order of finish, the dispatcher's own time groups events, and a
//! service time may depend on what runs elsewhere ([`ServiceTimes`]). Rows equal those of the [general
//! loop](super::node), one by one (`tests/it/fifo_queues.rs`), which remains for everything else: batches of more than one
//! query, lanes that fail, load that is shed, clusters, policies of any other form.
//!
//! This loop stays because the general loop, compiled for the policy's type, takes 202 instead of 92 ns per query under
//! `gpu-only` (2.2 times) and 253 instead of 127 ns under `mct` (2.0 times), where 1.3 times was the limit. Both were
//! measured by `tandem bench --what simulator` on 1 CPU and 1 GPU, as medians of three alternating runs.

use std::collections::VecDeque;

use super::table::QueryTable;
use crate::base::ids::{JobId, ProcessorId};
use crate::base::machine::{Class, Machine, PerClass};
use crate::base::time::Nanos;
use crate::cost::{Decisions, ServiceTimes};
use crate::sched::{EventQueue, FifoQueues, LawBroken, LogRow, QueueServers, QueuedJob, Sink};

#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    arrival: Nanos,
    released: Nanos,
    id: JobId,
    row: u32,
    line: u32,
    /// Its estimated time on the line's lanes.
    alone: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct Serving {
    job: Waiting,
    started: Nanos,
    batch: u32,
}

#[derive(Clone, Copy, Debug)]
struct Server {
    class: Class,
    line: Option<u32>,
    place: u32,
    is_idle: bool,
    serving: Serving,
}

#[derive(Clone, Debug)]
struct Queue {
    line: QueueServers,
    jobs: VecDeque<Waiting>,
    class: Class,
    lanes: Vec<ProcessorId>,
    /// Its idle lanes, as bits of 64-bit words.
    idle: Vec<u64>,
}

impl Queue {
    #[inline]
    fn first_idle(&self) -> Option<ProcessorId> {
        let (word, bits) = self.idle.iter().enumerate().find(|(_, bits)| **bits != 0)?;
        self.lanes.get(word * 64 + bits.trailing_zeros() as usize).copied()
    }

    #[inline]
    fn set_idle(&mut self, place: u32, is_idle: bool) {
        let (word, bit) = (&mut self.idle[place as usize / 64], place % 64);
        *word = *word & !(1 << bit) | u64::from(is_idle) << bit;
    }
}

/// The parameters of a run of queues, without its arrivals.
pub(super) struct QueuesRun<'a, T> {
    pub(super) machine: &'a Machine,
    pub(super) table: &'a QueryTable<Nanos>,
    pub(super) times: T,
    /// The dispatcher's own time.
    pub(super) decisions: Decisions,
    pub(super) deadline: Nanos,
}

struct State<'a, T, S> {
    run: QueuesRun<'a, T>,
    servers: Vec<Server>,
    queues: Vec<Queue>,
    /// Jobs waiting in all queues.
    waiting: usize,
    /// Jobs running on all lanes.
    running: usize,
    events: EventQueue,
    batches: u32,
    sink: S,
    /// Lanes to poll, in order, and the number of lanes to poll by class.
    asked: Vec<ProcessorId>,
    asked_of: PerClass<u32>,
    /// Bit c is set if class c must be polled.
    asked_classes: u8,
    line_of: PerClass<usize>,
}

/// Plays arrivals through the queues of a policy until every query has been answered, or until `enough`.
/// [`drive`](super::drive) does this for any policy.
///
/// # Errors
/// If arrivals go back in time.
pub(super) fn play_queues<S: Sink, T: ServiceTimes>(
    run: QueuesRun<'_, T>,
    name: &str,
    policy: &mut dyn FifoQueues,
    mut arrivals: impl Iterator<Item = (Nanos, u32)>,
    sink: S,
    enough: impl Fn(&S) -> bool,
) -> Result<S, LawBroken> {
    let decisions = run.decisions;
    let is_serial = policy.is_serial();
    let mut state = State::new(run, policy.queues(), sink);
    let mut stream = Stream { next: arrivals.next(), next_id: JobId(0), last: Nanos::ZERO, arrivals };
    let mut free_at = Nanos::ZERO;
    loop {
        let (finish, arrival) = (state.next_finish_at(), stream.next_at());
        let due = finish.min(arrival);
        if due == Nanos::MAX && state.running == 0 && stream.next.is_none() {
            return Ok(state.sink);
        }
        let now = due.max(free_at);
        let (mut finishes, mut arrived) = if finish <= arrival { (1, 0) } else { (0, 1) };
        // Mostly an event comes alone, and its effect is known.
        if finish <= arrival {
            let processor = state.finish(now);
            if enough(&state.sink) {
                return Ok(state.sink);
            }
            policy.finished(processor, now);
            if state.next_finish_at().min(arrival) > now {
                free_at = decisions.end_of_round(now, 0, 1, 1);
                match state.waiting {
                    0 => {}
                    _ if is_serial => state.start_oldest(policy, free_at),
                    _ => state.start_next(policy, processor, free_at),
                }
                continue;
            }
            if state.waiting > 0 {
                state.asked.push(processor);
            }
        } else {
            let job = stream.take(name, &state, policy, now)?;
            if !is_serial && finish.min(stream.next_at()) > now {
                free_at = decisions.end_of_round(now, 1, 0, 0);
                state.start_or_join(policy, job, free_at);
                continue;
            }
            state.join(is_serial, job);
        }
        loop {
            // Completions go before arrivals of the same time, as in `EventQueue`.
            let (finish, arrival) = (state.next_finish_at(), stream.next_at());
            if finish.min(arrival) > now {
                break;
            }
            if finish <= arrival {
                finishes += 1;
                let processor = state.finish(now);
                if enough(&state.sink) {
                    return Ok(state.sink);
                }
                policy.finished(processor, now);
                if state.waiting > 0 {
                    state.asked.push(processor);
                }
            } else {
                arrived += 1;
                let job = stream.take(name, &state, policy, now)?;
                state.join(is_serial, job);
            }
        }
        free_at = decisions.end_of_round(now, arrived, finishes, finishes);
        if is_serial {
            state.asked.clear();
            state.start_oldest(policy, free_at);
        } else {
            state.start_asked(policy, free_at);
        }
    }
}

struct Stream<A> {
    next: Option<(Nanos, u32)>,
    next_id: JobId,
    last: Nanos,
    arrivals: A,
}

impl<A: Iterator<Item = (Nanos, u32)>> Stream<A> {
    /// The time of the next arrival; [`Nanos::MAX`] without one.
    #[inline(always)]
    fn next_at(&self) -> Nanos {
        self.next.map_or(Nanos::MAX, |(arrival, _)| arrival)
    }

    /// The next arrival, which the dispatcher takes in now, with the line that it joins.
    #[inline(always)]
    fn take<T, S>(
        &mut self,
        name: &str,
        state: &State<'_, T, S>,
        policy: &mut dyn FifoQueues,
        now: Nanos,
    ) -> Result<Waiting, LawBroken> {
        let (arrival, row) = self.next.unwrap_or_default();
        if arrival < self.last {
            return Err(LawBroken::arrivals_went_back(name, now, self.last, arrival));
        }
        self.last = arrival;
        let id = self.next_id;
        self.next_id.0 += 1;
        self.next = self.arrivals.next();
        let alone = state.run.table.estimate(row);
        let line = policy.join(QueuedJob { id, row, alone }, now);
        let alone = alone[state.queues[line].class];
        Ok(Waiting { arrival, released: now, id, row, line: line as u32, alone })
    }
}

impl<'a, T: ServiceTimes, S: Sink> State<'a, T, S> {
    fn new(run: QueuesRun<'a, T>, lines: Vec<QueueServers>, sink: S) -> Self {
        let machine = run.machine;
        let serves = |line: &QueueServers, processor: ProcessorId, class: Class| match *line {
            QueueServers::Class(of) => of == class,
            QueueServers::Lane(lane) => lane == processor,
        };
        let servers = machine.processors().map(|(id, processor)| {
            let line = lines.iter().position(|line| serves(line, id, processor.class));
            let line = line.map(|line| line as u32);
            Server { class: processor.class, line, place: 0, is_idle: true, serving: Serving::default() }
        });
        let mut servers: Vec<Server> = servers.collect();
        let queues = lines.iter().enumerate().map(|(i, &line)| {
            let class = match line {
                QueueServers::Class(class) => class,
                QueueServers::Lane(lane) => machine.class(lane),
            };
            let lanes = servers.iter().enumerate().filter(|(_, server)| server.line == Some(i as u32));
            let lanes: Vec<ProcessorId> = lanes.map(|(lane, _)| ProcessorId(lane as u32)).collect();
            let mut queue =
                Queue { line, jobs: VecDeque::new(), class, idle: vec![0; lanes.len().div_ceil(64)], lanes };
            (0..queue.lanes.len() as u32).for_each(|place| queue.set_idle(place, true));
            queue
        });
        let queues: Vec<Queue> = queues.collect();
        for lanes in queues.iter().map(|queue| &queue.lanes) {
            (0..).zip(lanes).for_each(|(place, lane)| servers[lane.index()].place = place);
        }
        let of_class = |class| lines.iter().position(|&line| line == QueueServers::Class(class)).unwrap_or_default();
        Self {
            line_of: PerClass::from_fn(of_class),
            queues,
            servers,
            run,
            waiting: 0,
            running: 0,
            events: EventQueue::new(),
            batches: 0,
            sink,
            asked: Vec::new(),
            asked_of: PerClass::default(),
            asked_classes: 0,
        }
    }

    /// The time of the next completion; [`Nanos::MAX`] if no lane works.
    #[inline(always)]
    fn next_finish_at(&self) -> Nanos {
        self.events.next_finish().map_or(Nanos::MAX, |(at, _)| at)
    }

    /// Adds a job to its queue and marks the lanes to poll.
    #[inline]
    fn join(&mut self, is_serial: bool, job: Waiting) {
        self.waiting += 1;
        if is_serial {
            self.queues[0].jobs.push_back(job);
            return;
        }
        let queue = &mut self.queues[job.line as usize];
        queue.jobs.push_back(job);
        match queue.line {
            QueueServers::Class(class) => {
                self.asked_of[class] += 1;
                self.asked_classes |= 1 << class.index();
            }
            QueueServers::Lane(lane) => self.asked.push(lane),
        }
    }

    #[inline]
    fn finish(&mut self, now: Nanos) -> ProcessorId {
        let processor = self.events.next_finish().map_or(ProcessorId(0), |(_, processor)| processor);
        self.events.pop_finish();
        let server = &mut self.servers[processor.index()];
        server.is_idle = true;
        let Server { class, line, place, serving: Serving { job, started, batch }, .. } = *server;
        if let Some(line) = line {
            self.queues[line as usize].set_idle(place, true);
        }
        self.running -= 1;
        self.sink.record(&LogRow {
            job: job.id,
            query: self.run.table.id(job.row),
            arrival: job.arrival,
            released: job.released,
            started,
            finished: now,
            processor,
            class,
            batch,
            deadline: job.arrival + self.run.deadline,
            priority: 0,
            predicted: *self.run.table.estimate(job.row),
            stolen: false,
            again: false,
            lanes: 1,
            helped: Nanos::ZERO,
        });
        processor
    }

    /// Starts a job that has come alone if one of its line's lanes is idle; otherwise it waits.
    #[inline]
    fn start_or_join(&mut self, policy: &mut dyn FifoQueues, job: Waiting, now: Nanos) {
        self.waiting += 1;
        let queue = &mut self.queues[job.line as usize];
        match queue.first_idle() {
            Some(processor) => self.start(policy, processor, job, now),
            None => queue.jobs.push_back(job),
        }
    }

    /// Starts the first job of its line on a lane that has become idle alone.
    #[inline]
    fn start_next(&mut self, policy: &mut dyn FifoQueues, processor: ProcessorId, now: Nanos) {
        let Some(line) = self.servers[processor.index()].line else { return };
        let jobs = &mut self.queues[line as usize].jobs;
        let Some(job) = jobs.pop_front() else { return };
        // Rows of a long line have left the cache since their jobs came.
        if let Some(next) = jobs.front() {
            self.run.table.prefetch(next.row);
        }
        self.start(policy, processor, job, now);
    }

    /// Starts jobs on the lanes to poll, in the dispatcher's order: first lanes asked by name, then lanes asked by
    /// class.
    #[inline]
    fn start_asked(&mut self, policy: &mut dyn FifoQueues, now: Nanos) {
        for i in 0..self.asked.len() {
            let processor = self.asked[i];
            let Server { line, is_idle, .. } = self.servers[processor.index()];
            if let Some(line) = line
                && is_idle
                && let Some(job) = self.queues[line as usize].jobs.pop_front()
            {
                self.start(policy, processor, job, now);
            }
        }
        self.asked.clear();
        while self.asked_classes != 0 {
            let class = Class::ALL[self.asked_classes.trailing_zeros() as usize];
            self.asked_classes &= self.asked_classes - 1;
            let mut left = std::mem::take(&mut self.asked_of[class]);
            let line = self.line_of[class];
            while left > 0
                && let Some(processor) = self.queues[line].first_idle()
                && let Some(job) = self.queues[line].jobs.pop_front()
            {
                self.start(policy, processor, job, now);
                left -= 1;
            }
        }
    }

    /// Starts the oldest job if no job runs. All jobs wait in the first queue, whichever line they have joined.
    #[inline]
    fn start_oldest(&mut self, policy: &mut dyn FifoQueues, now: Nanos) {
        if self.running > 0 {
            return;
        }
        let Some(&job) = self.queues[0].jobs.front() else { return };
        if let Some(processor) = self.queues[job.line as usize].first_idle() {
            self.queues[0].jobs.pop_front();
            self.start(policy, processor, job, now);
        }
    }

    #[inline(always)]
    fn start(&mut self, policy: &mut dyn FifoQueues, processor: ProcessorId, job: Waiting, now: Nanos) {
        let server = &mut self.servers[processor.index()];
        server.is_idle = false;
        server.serving = Serving { job, started: now, batch: self.batches };
        let (line, place) = (server.line, server.place);
        if let Some(line) = line {
            self.queues[line as usize].set_idle(place, false);
        }
        self.batches += 1;
        self.waiting -= 1;
        self.running += 1;
        policy.started(processor, job.alone, now);
        self.events.finish_at(self.run.times.start(processor, &[job.row], now), processor);
    }
}
