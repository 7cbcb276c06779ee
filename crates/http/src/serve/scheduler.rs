//! The scheduler of the server: the lab's dispatcher around its executors.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use mio::Waker;
use tandem_core::base::ids::{JobId, ProcessorId, QueryId};
use tandem_core::base::machine::{Class, Machine, PerClass};
use tandem_core::base::time::Nanos;
use tandem_core::corpus::Tokenizer;
use tandem_core::cost::{Cost, MachineModel};
use tandem_core::index::Index;
use tandem_core::query::{Features, Query};
use tandem_core::sched::{Action, Dispatcher, Job, LawBroken, LogRow, PolicyFactory, ShedJob, Sink};
use tandem_core::search::cpu::CpuExecutor;
use tandem_core::search::{Executor, Hit};

use super::body::Asked;
use super::{Reply, ServeOptions, Served};
use crate::HttpError;
use crate::server::{Answer, Exchange};

/// Postings that take as long as a query's fixed costs, in estimates.
const FIXED_POSTINGS: f64 = 2000.0;
/// Weight of a new service time in the mean time per posting.
const WEIGHT: f64 = 0.02;
/// Threads with a core of their own look for work without pause until this time after the last query.
const SPIN: Nanos = Nanos(50_000_000);
/// No time at which the policy wants to be woken.
const NEVER: u64 = u64::MAX;

/// A query for a worker, which sends the answer.
struct Task {
    query: Query,
    asked: Asked,
    postings: f64,
    arrival: Instant,
    reply: Reply,
}

/// Collects dropped jobs.
#[derive(Default)]
struct Dropped(Vec<u32>);

impl Sink for Dropped {
    fn record(&mut self, _: &LogRow) {}

    fn shed(&mut self, job: &ShedJob) {
        self.0.push(job.job.0);
    }
}

/// What the server's thread and the workers share. Whoever brings news asks the policy at once, so that no other thread has to
/// wake up before.
pub(super) struct Scheduler {
    index: Arc<Index>,
    tokenizer: Tokenizer,
    pub(super) options: ServeOptions,
    began: Instant,
    /// Whether there is a core for each thread and for a client.
    may_spin: bool,
    /// Whether the threads spin for work now.
    spins: AtomicBool,
    /// Nanoseconds from the beginning to the last query, and to the time at which the policy wants to be woken.
    last_arrival: AtomicU64,
    wake_at: AtomicU64,
    /// Wakes the server's thread.
    waker: Arc<Waker>,
    /// Why the policy could not decide.
    broken: OnceLock<LawBroken>,
    state: Mutex<State>,
}

pub(super) struct State {
    dispatcher: Dispatcher<Dropped>,
    /// The queries of jobs that no worker has.
    waiting: HashMap<u32, Task>,
    /// Queries without an answer, and why.
    rejected: Vec<(Reply, &'static str)>,
    /// The workers; none once the server has ended.
    orders: Vec<Sender<Vec<Task>>>,
    next_job: u32,
    per_posting_ns: f64,
    latency: Histogram<u64>,
    pub(super) served: Served,
}

impl Scheduler {
    pub(super) fn start(
        index: &Arc<Index>,
        tokenizer: Tokenizer,
        policy: &dyn PolicyFactory,
        options: &ServeOptions,
        waker: Arc<Waker>,
    ) -> Result<Arc<Self>, HttpError> {
        let machine = Machine::new(options.workers, 0);
        let policy =
            policy.build(&MachineModel::from(machine.clone())).map_err(|e| HttpError::Target(e.to_string()))?;
        let executor = CpuExecutor::new(Arc::clone(index), index.built_with());
        let (orders, taken): (Vec<_>, Vec<_>) = machine.processors().map(|_| channel()).unzip();
        let state = State {
            dispatcher: Dispatcher::with_sink(&machine, policy, Dropped::default()),
            waiting: HashMap::new(),
            rejected: Vec::new(),
            orders,
            next_job: 0,
            per_posting_ns: 1.0,
            latency: Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("constant bounds are valid"),
            served: Served::default(),
        };
        let scheduler = Arc::new(Self {
            index: Arc::clone(index),
            tokenizer,
            options: *options,
            began: Instant::now(),
            may_spin: std::thread::available_parallelism().is_ok_and(|cores| cores.get() > options.workers + 1),
            spins: AtomicBool::new(false),
            last_arrival: AtomicU64::new(0),
            wake_at: AtomicU64::new(NEVER),
            waker,
            broken: OnceLock::new(),
            state: Mutex::new(state),
        });
        for ((processor, _), orders) in machine.processors().zip(taken) {
            let (scheduler, executor) = (Arc::clone(&scheduler), executor.clone_for_worker());
            let thread = std::thread::Builder::new().name(format!("worker {processor}"));
            thread.spawn(move || scheduler.work(processor, &orders, executor))?;
        }
        Ok(scheduler)
    }

    /// The state, even after a panic of a worker.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the workers, and returns the counts.
    pub(super) fn end(&self) -> Served {
        let mut state = self.state();
        state.orders.clear();
        state.waiting.clear();
        state.served
    }

    /// Answers a request that was not understood.
    pub(super) fn refuse(&self, exchange: Exchange, answer: &Answer) {
        self.state().served.refused += 1;
        exchange.respond(answer);
    }

    fn now(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Takes a query.
    pub(super) fn submit(&self, asked: Asked, deadline_ms: Option<f64>, reply: Reply) {
        let arrived = Instant::now();
        let terms = self.tokenizer.terms(&asked.text);
        let Some(query) = Query::prepare(QueryId(0), "", &terms, &self.index) else {
            self.state().served.answered += 1;
            return reply.send(Answer::hits(&[], &self.index, &asked, Duration::ZERO));
        };
        let postings = FIXED_POSTINGS + Features::of(&query, &self.index).postings as f64;
        let deadline = deadline_ms.map_or(self.options.deadline, Nanos::from_ms);
        self.turn(|state, arrival| {
            if state.dispatcher.in_flight() >= self.options.most_queries {
                state.rejected.push((reply, "too many queries wait"));
                return Ok(());
            }
            self.last_arrival.store(arrival.0, Ordering::Relaxed);
            let cost = Cost::alone(Nanos((postings * state.per_posting_ns) as u64));
            let predicted = PerClass::from_fn(|class| if class == Class::CPU { cost } else { Cost::NEVER });
            let (row, deadline) = (state.next_job, arrival + deadline);
            let (id, query_id, priority) = (JobId(row), QueryId(row), 0);
            state.next_job += 1;
            state.waiting.insert(row, Task { query, asked, postings, arrival: arrived, reply });
            let job = Job { id, query: query_id, row, priority, arrival, deadline, predicted };
            state.dispatcher.arrive(arrival, job)
        });
    }

    /// Lets the dispatcher know what happens now, and acts on what the policy decides.
    fn turn(&self, happens: impl FnOnce(&mut State, Nanos) -> Result<(), LawBroken>) {
        let mut state = self.state();
        let now = self.now();
        let wake_at = happens(&mut state, now).and_then(|()| state.decide(now));
        if let Ok(Some(at)) = wake_at {
            self.wake_at.store(at.0, Ordering::Relaxed);
        }
        let rejected = std::mem::take(&mut state.rejected);
        state.served.rejected += rejected.len() as u64;
        drop(state);
        for (reply, why) in rejected {
            reply.send(Answer::error(429, why));
        }
        if wake_at != Ok(None) {
            let _ = wake_at.map_err(|broken| self.broken.set(broken));
            // The server's thread sleeps at most for a moment without this.
            let _ = self.waker.wake();
        }
    }

    /// Wakes the policy if it is time, and returns how long the server's thread may sleep: not at all while it spins.
    pub(super) fn rest(&self) -> Result<Duration, HttpError> {
        let now = self.now();
        if now.0 >= self.wake_at.load(Ordering::Relaxed) {
            self.turn(|state, now| {
                self.wake_at.store(NEVER, Ordering::Relaxed);
                state.dispatcher.wake(now)
            });
        }
        if let Some(broken) = self.broken.get() {
            return Err(HttpError::Lab(tandem_core::sim::SimError::from(broken.clone()).into()));
        }
        let spins = self.may_spin && now.since(Nanos(self.last_arrival.load(Ordering::Relaxed))) < SPIN;
        self.spins.store(spins, Ordering::Relaxed);
        let sleep = Duration::from_nanos(self.wake_at.load(Ordering::Relaxed).saturating_sub(now.0));
        Ok(if spins { Duration::ZERO } else { sleep })
    }

    /// The loop of a worker, which ends with the server.
    fn work(&self, processor: ProcessorId, orders: &Receiver<Vec<Task>>, mut executor: CpuExecutor) {
        while let Ok(tasks) = self.next_order(orders) {
            let mut search = |Task { query, asked, postings, arrival, .. }: &Task| {
                let (mut hits, began) = (Vec::new(), Instant::now());
                let done = executor.search(query, asked.mode, asked.k, &mut hits);
                (done.map(|_| hits), arrival.elapsed(), began.elapsed().as_nanos() as f64 / postings)
            };
            let found: Vec<_> = tasks.iter().map(&mut search).collect();
            // Other workers may take orders while answers are written.
            self.turn(|state, now| {
                found.iter().for_each(|(done, latency, each)| state.count(done.is_ok(), *latency, *each));
                state.dispatcher.finish(now, processor).map(|_| ())
            });
            for (Task { asked, reply, .. }, (done, latency, _)) in tasks.into_iter().zip(found) {
                let hits = |hits: Vec<Hit>| Answer::hits(&hits, &self.index, &asked, latency);
                reply.send(done.map_or_else(|why| Answer::error(500, &why.to_string()), hits));
            }
        }
    }

    fn next_order(&self, orders: &Receiver<Vec<Task>>) -> Result<Vec<Task>, RecvError> {
        while self.spins.load(Ordering::Relaxed) {
            if let Ok(tasks) = orders.try_recv() {
                return Ok(tasks);
            }
            std::hint::spin_loop();
        }
        orders.recv()
    }

    /// Counters in Prometheus' text form.
    pub(super) fn metrics(&self) -> String {
        let State { dispatcher, orders, latency, served, .. } = &*self.state();
        let Served { answered, rejected, refused } = *served;
        let mut text = String::new();
        for (name, kind, help, value) in [
            ("queries_answered_total", "counter", "Answered queries.", answered),
            ("queries_rejected_total", "counter", "Rejected queries.", rejected),
            ("requests_refused_total", "counter", "Requests that were not understood.", refused),
            ("queries_in_flight", "gauge", "Queries that wait or run.", dispatcher.in_flight() as u64),
            ("workers", "gauge", "Workers.", orders.len() as u64),
        ] {
            text += &format!("# HELP tandem_{name} {help}\n# TYPE tandem_{name} {kind}\ntandem_{name} {value}\n");
        }
        let name = "tandem_query_latency_seconds";
        text += &format!("# HELP {name} Time from arrival to answer.\n# TYPE {name} summary\n");
        for quantile in [0.5, 0.9, 0.99, 0.999] {
            let seconds = latency.value_at_quantile(quantile) as f64 / 1e6;
            text += &format!("{name}{{quantile=\"{quantile}\"}} {seconds}\n");
        }
        let sum = latency.mean() * latency.len() as f64 / 1e6;
        text + &format!("{name}_sum {sum}\n{name}_count {}\n", latency.len())
    }
}

impl State {
    /// Counts a query that a worker has finished.
    fn count(&mut self, is_answered: bool, latency: Duration, per_posting_ns: f64) {
        self.served.answered += u64::from(is_answered);
        self.served.rejected += u64::from(!is_answered);
        self.per_posting_ns += WEIGHT * (per_posting_ns - self.per_posting_ns);
        self.latency.saturating_record(latency.as_micros() as u64);
    }

    /// Asks the policy, and returns when it wants to be woken.
    fn decide(&mut self, now: Nanos) -> Result<Option<Nanos>, LawBroken> {
        let (mut actions, mut wake_at) = (Vec::new(), None);
        self.dispatcher.decide(now, &mut actions)?;
        for action in actions {
            match action {
                Action::WakeAt(at) => wake_at = Some(at),
                Action::Start(processor, number) => {
                    let jobs = self.dispatcher.rows(processor, number).iter();
                    let tasks = jobs.filter_map(|job| self.waiting.remove(job)).collect();
                    // There are no workers once the server has ended.
                    let _ = self.orders.get(processor.index()).map(|orders| orders.send(tasks));
                }
            }
        }
        let dropped = std::mem::take(&mut self.dispatcher.sink_mut().0);
        let dropped = dropped.iter().filter_map(|job| self.waiting.remove(job));
        self.rejected.extend(dropped.map(|task| (task.reply, "the answer would be late")));
        Ok(wake_at)
    }
}
