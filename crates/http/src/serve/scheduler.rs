//! The scheduler of the server: the lab's dispatcher around its executors.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tandem_engine::corpus::Tokenizer;
use tandem_engine::index::Index;
use tandem_engine::query::Query;
use tandem_engine::search::cpu::CpuExecutor;
use tandem_engine::search::{Executor, Hit};
use tandem_model::base::ids::{JobId, ProcessorId, QueryId};
use tandem_model::base::machine::{Class, Machine, PerClass};
use tandem_model::base::time::Nanos;
use tandem_model::cost::{Cost, MachineModel};
use tandem_model::sched::{Action, Dispatcher, Job, LawBroken, LogRow, PolicyFactory, ShedJob, Sink};
use tokio::sync::{Notify, oneshot};

use super::body::{Answer, Asked};
use super::{ServeOptions, Served};
use crate::HttpError;

/// Most terms of a query.
const MOST_TERMS: usize = 1024;
/// Postings that take as long as a query's fixed costs, in estimates.
const FIXED_POSTINGS: f64 = 2000.0;
/// Weight of a new service time in the mean time per posting.
const WEIGHT: f64 = 0.02;
/// Threads with a core of their own look for work without pause until this time after the last query.
const SPIN: Nanos = Nanos(50_000_000);
/// Longest sleep of the scheduler.
const SLEEP: Duration = Duration::from_secs(60);

/// A query for a worker, which sends the answer.
struct Task {
    query: Query,
    asked: Asked,
    postings: f64,
    arrival: Instant,
    reply: oneshot::Sender<Answer>,
}

/// Latency of a query, and time per posting in nanoseconds; `None` if the executor failed.
type Times = Option<(Duration, f64)>;

/// Collects dropped jobs.
#[derive(Default)]
struct Dropped(Vec<u32>);

impl Sink for Dropped {
    fn record(&mut self, _: &LogRow) {}

    fn shed(&mut self, job: &ShedJob) {
        self.0.push(job.job.0);
    }
}

/// What the server's thread and the workers share. A worker that has finished a query decides itself what runs next, so
/// that no other thread has to wake up before.
pub(super) struct Scheduler {
    index: Arc<Index>,
    tokenizer: Tokenizer,
    pub(super) options: ServeOptions,
    began: Instant,
    /// Whether there is a core for each thread and for a client.
    may_spin: bool,
    /// Whether the workers spin for work now.
    spins: AtomicBool,
    /// Wakes the server's thread.
    news: Notify,
    state: Mutex<State>,
}

pub(super) struct State {
    dispatcher: Dispatcher<Dropped>,
    /// Jobs that the dispatcher does not know yet.
    arrived: Vec<Job>,
    /// The queries of jobs that no worker has.
    waiting: HashMap<u32, Task>,
    /// The workers; none once the server has ended.
    orders: Vec<Sender<Vec<Task>>>,
    next_job: u32,
    last_arrival: Nanos,
    wake_at: Option<Nanos>,
    per_posting_ns: f64,
    latency: Histogram<u64>,
    pub(super) served: Served,
    /// Why a worker could not decide.
    broken: Option<LawBroken>,
}

impl Scheduler {
    pub(super) fn start(
        index: &Arc<Index>,
        tokenizer: Tokenizer,
        policy: &dyn PolicyFactory,
        options: &ServeOptions,
    ) -> Result<Arc<Self>, HttpError> {
        let machine = Machine::new(options.workers, 0);
        let policy =
            policy.build(&MachineModel::from(machine.clone())).map_err(|e| HttpError::Target(e.to_string()))?;
        let executor = CpuExecutor::new(Arc::clone(index), index.built_with());
        let (orders, taken): (Vec<_>, Vec<_>) = machine.processors().map(|_| channel()).unzip();
        let state = State {
            dispatcher: Dispatcher::with_sink(&machine, policy, Dropped::default()),
            arrived: Vec::new(),
            waiting: HashMap::new(),
            orders,
            next_job: 0,
            last_arrival: Nanos::ZERO,
            wake_at: None,
            per_posting_ns: 1.0,
            latency: Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("constant bounds are valid"),
            served: Served::default(),
            broken: None,
        };
        let scheduler = Arc::new(Self {
            index: Arc::clone(index),
            tokenizer,
            options: options.clone(),
            began: Instant::now(),
            may_spin: std::thread::available_parallelism().is_ok_and(|cores| cores.get() > options.workers + 1),
            spins: AtomicBool::new(false),
            news: Notify::new(),
            state: Mutex::new(state),
        });
        for ((processor, _), orders) in machine.processors().zip(taken) {
            let worker = Worker { processor, orders, scheduler: Arc::clone(&scheduler) };
            let (executor, thread) = (executor.clone_for_worker(), std::thread::Builder::new());
            thread.name(format!("worker {processor}")).spawn(move || worker.work(executor))?;
        }
        Ok(scheduler)
    }

    /// The state, even after a panic of a worker.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the workers, and returns the counts.
    pub(super) fn end(&self) -> Served {
        let mut state = self.state();
        state.orders.clear();
        state.served
    }

    /// Queries that wait or run.
    pub(super) fn in_flight(&self) -> usize {
        let state = self.state();
        state.dispatcher.in_flight() + state.arrived.len()
    }

    fn now(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Takes a query. The answer comes through the channel.
    pub(super) fn submit(&self, asked: Asked, deadline: Option<Nanos>) -> oneshot::Receiver<Answer> {
        let (reply, answer) = oneshot::channel();
        let terms = self.tokenizer.terms(&asked.text);
        if terms.len() > MOST_TERMS {
            self.state().served.refused += 1;
            let why = format!("{} terms, expected at most {MOST_TERMS}", terms.len());
            let _ = reply.send(Answer::error(400, &why));
            return answer;
        }
        let query = Query::prepare(QueryId(0), "", &terms, &self.index);
        let mut state = self.state();
        let Some(query) = query.filter(|_| asked.k > 0) else {
            state.served.answered += 1;
            let _ = reply.send(Answer::hits(&[], &self.index, &asked, Duration::ZERO));
            return answer;
        };
        if state.dispatcher.in_flight() + state.arrived.len() >= self.options.most_queries {
            state.reject(reply, "too many queries wait");
            return answer;
        }
        let (arrival, row) = (self.now(), state.next_job);
        let postings = FIXED_POSTINGS + query.features(&self.index).postings as f64;
        let cost = Cost::alone(Nanos((postings * state.per_posting_ns) as u64));
        let predicted = PerClass::from_fn(|class| if class == Class::CPU { cost } else { Cost::NEVER });
        let deadline = arrival + deadline.unwrap_or(self.options.deadline);
        let (id, query_id) = (JobId(row), QueryId(row));
        state.arrived.push(Job { id, query: query_id, row, priority: 0, arrival, deadline, predicted });
        state.waiting.insert(row, Task { query, asked, postings, arrival: Instant::now(), reply });
        (state.last_arrival, state.next_job) = (arrival, row + 1);
        self.news.notify_one();
        answer
    }

    /// Takes what has arrived and what `finished`, and decides. Returns how long the server's thread may sleep; not at all
    /// while it spins.
    fn turn(&self, finished: Option<(ProcessorId, Vec<Times>)>) -> Result<Option<Duration>, LawBroken> {
        let mut state = self.state();
        let now = self.now();
        state.turn(now, finished)?;
        let spins = self.may_spin && (state.dispatcher.in_flight() > 0 || now.since(state.last_arrival) < SPIN);
        self.spins.store(spins, Ordering::Relaxed);
        let sleep = state.wake_at.map_or(SLEEP, |at| Duration::from_nanos(at.since(now).0));
        Ok(Some(sleep).filter(|_| !spins))
    }

    /// The end of a worker's order.
    fn finish(&self, processor: ProcessorId, times: Vec<Times>) {
        match self.turn(Some((processor, times))) {
            Ok(sleep) if sleep.is_none_or(|sleep| sleep == SLEEP) => return,
            Ok(_) => {}
            Err(broken) => self.state().broken = Some(broken),
        }
        self.news.notify_one();
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
    fn turn(&mut self, now: Nanos, finished: Option<(ProcessorId, Vec<Times>)>) -> Result<(), LawBroken> {
        if let Some(broken) = self.broken.take() {
            return Err(broken);
        }
        let mut has_news = !self.arrived.is_empty();
        if let Some((processor, times)) = finished {
            has_news = true;
            self.dispatcher.finish(now, processor)?;
            self.served.rejected += times.iter().filter(|times| times.is_none()).count() as u64;
            for (latency, per_posting_ns) in times.into_iter().flatten() {
                self.served.answered += 1;
                self.per_posting_ns += WEIGHT * (per_posting_ns - self.per_posting_ns);
                self.latency.saturating_record(latency.as_micros() as u64);
            }
        }
        if self.wake_at.take_if(|at| *at <= now).is_some() {
            has_news = true;
            self.dispatcher.wake(now)?;
        }
        for job in self.arrived.drain(..) {
            self.dispatcher.arrive(now, &job)?;
        }
        if has_news { self.decide(now) } else { Ok(()) }
    }

    fn decide(&mut self, now: Nanos) -> Result<(), LawBroken> {
        let mut actions = Vec::new();
        self.dispatcher.decide(now, &mut actions)?;
        for action in actions {
            match action {
                Action::WakeAt(at) => self.wake_at = Some(at),
                Action::Start(processor, number) => {
                    let jobs = self.dispatcher.rows(processor, number).iter();
                    let tasks = jobs.filter_map(|job| self.waiting.remove(job)).collect();
                    // Without an order, the queries of an ended server are answered by its end.
                    let _ = self.orders.get(processor.index()).map(|orders| orders.send(tasks));
                }
            }
        }
        for job in std::mem::take(&mut self.dispatcher.sink_mut().0) {
            if let Some(task) = self.waiting.remove(&job) {
                self.reject(task.reply, "the answer would be late");
            }
        }
        Ok(())
    }

    fn reject(&mut self, reply: oneshot::Sender<Answer>, why: &str) {
        self.served.rejected += 1;
        let _ = reply.send(Answer::error(429, why));
    }
}

/// The loop of the server's thread, which ends only by an error.
pub(super) async fn turn_again(scheduler: Arc<Scheduler>) -> Result<(), HttpError> {
    loop {
        let sleep = scheduler.turn(None);
        match sleep.map_err(|e| HttpError::Study(tandem_model::sim::SimError::from(e).into()))? {
            // Meanwhile, the runtime looks at the sockets.
            None => tokio::task::yield_now().await,
            Some(sleep) => drop(tokio::time::timeout(sleep, scheduler.news.notified()).await),
        }
    }
}

struct Worker {
    processor: ProcessorId,
    orders: Receiver<Vec<Task>>,
    scheduler: Arc<Scheduler>,
}

impl Worker {
    fn work(self, mut executor: CpuExecutor) {
        while let Some(tasks) = self.next_order() {
            let mut search = |Task { query, asked, postings, arrival, .. }: &Task| {
                let (mut hits, began) = (Vec::new(), Instant::now());
                let done = executor.search(query, asked.mode, asked.k, &mut hits);
                (done.map(|_| hits), arrival.elapsed(), began.elapsed().as_nanos() as f64 / postings)
            };
            let found: Vec<_> = tasks.iter().map(&mut search).collect();
            // Other workers may take orders while answers are written.
            let times = found.iter().map(|(done, latency, each)| done.is_ok().then_some((*latency, *each))).collect();
            self.scheduler.finish(self.processor, times);
            for (Task { asked, reply, .. }, (done, latency, _)) in tasks.into_iter().zip(found) {
                let hits = |hits: Vec<Hit>| Answer::hits(&hits, &self.scheduler.index, &asked, latency);
                // The client may have left.
                let _ = reply.send(done.map_or_else(|why| Answer::error(500, &why.to_string()), hits));
            }
        }
    }

    /// The next order; `None` once the server has ended.
    fn next_order(&self) -> Option<Vec<Task>> {
        loop {
            match self.orders.try_recv() {
                Err(TryRecvError::Empty) if self.scheduler.spins.load(Ordering::Relaxed) => std::hint::spin_loop(),
                Err(TryRecvError::Empty) => return self.orders.recv().ok(),
                order => return order.ok(),
            }
        }
    }
}
