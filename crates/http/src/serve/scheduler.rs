//! The scheduler of the server: the lab's dispatcher around its executors.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tandem_core::base::ids::{JobId, ProcessorId, QueryId};
use tandem_core::base::machine::{Class, Machine, PerClass};
use tandem_core::base::time::Nanos;
use tandem_core::corpus::Tokenizer;
use tandem_core::cost::{Cost, MachineModel};
use tandem_core::index::Index;
use tandem_core::query::{Features, Mode, Query};
use tandem_core::sched::{Action, Dispatcher, Job, LawBroken, LogRow, PolicyFactory, ShedJob, Sink};
use tandem_core::search::Executor;
use tandem_core::search::cpu::CpuExecutor;
use tokio::sync::{Notify, oneshot};

use super::body::{Answer, Asked};
use super::{ServeOptions, Served, Shared};
use crate::HttpError;

/// Postings that take as long as a query's fixed costs, in estimates.
const FIXED_POSTINGS: f64 = 2000.0;
/// Weight of a new service time in the mean time per posting.
const WEIGHT: f64 = 0.02;
/// Threads with a core of their own look for work without pause until this time after the last query.
const SPIN: Nanos = Nanos(10_000_000);
/// Longest sleep of the scheduler.
const SLEEP: Duration = Duration::from_secs(60);

/// A query for a worker.
struct Task {
    query: Query,
    asked: Asked,
    mode: Mode,
    postings: f64,
    arrival: Instant,
}

struct Done {
    answer: Answer,
    latency: Duration,
    per_posting_ns: f64,
}

/// The number of a batch, with a part for each of its jobs.
type Batch<T> = (u32, Vec<T>);

/// Collects dropped jobs.
#[derive(Default)]
struct Dropped(Vec<u32>);

impl Sink for Dropped {
    fn record(&mut self, _: &LogRow) {}

    fn shed(&mut self, job: &ShedJob) {
        self.0.push(job.job.0);
    }
}

pub(super) struct Scheduler {
    index: Arc<Index>,
    tokenizer: Tokenizer,
    options: ServeOptions,
    began: Instant,
    dispatcher: Dispatcher<Dropped>,
    orders: Vec<Sender<Batch<Task>>>,
    done: Receiver<(ProcessorId, Batch<Done>)>,
    /// Wakes the scheduler.
    news: Arc<Notify>,
    /// Whether each thread has a core, and a client another one.
    may_spin: bool,
    /// Whether the workers spin for work now.
    spins: Arc<AtomicBool>,
    waiting: HashMap<u32, (oneshot::Sender<Answer>, Option<Task>)>,
    next_job: u32,
    last_arrival: Nanos,
    wake_at: Option<Nanos>,
    /// A law that was broken by an arrival.
    broken: Option<LawBroken>,
    per_posting_ns: f64,
    latency: Histogram<u64>,
    served: Served,
}

impl Scheduler {
    pub(super) fn start(
        index: &Arc<Index>,
        tokenizer: Tokenizer,
        policy: &dyn PolicyFactory,
        options: &ServeOptions,
    ) -> Result<Self, HttpError> {
        let machine = Machine::new(options.workers, 0);
        let policy =
            policy.build(&MachineModel::from(machine.clone())).map_err(|e| HttpError::Target(e.to_string()))?;
        let executor = CpuExecutor::new(Arc::clone(index), index.built_with());
        let (finished, done) = channel();
        let (news, spins) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
        let mut orders = Vec::new();
        for (processor, _) in machine.processors() {
            let (order, taken) = channel();
            let (mut executor, finished, news) = (executor.clone_for_worker(), finished.clone(), Arc::clone(&news));
            let (index, spins) = (Arc::clone(index), Arc::clone(&spins));
            let worker = std::thread::Builder::new().name(format!("worker {processor}"));
            worker.spawn(move || {
                while let Some((number, tasks)) = next_order(&taken, &spins) {
                    let done = tasks.iter().map(|task| search(&mut executor, task, &index)).collect();
                    if finished.send((processor, (number, done))).is_err() {
                        break;
                    }
                    news.notify_one();
                }
            })?;
            orders.push(order);
        }
        Ok(Self {
            index: Arc::clone(index),
            tokenizer,
            options: *options,
            began: Instant::now(),
            dispatcher: Dispatcher::with_sink(&machine, policy, Dropped::default()),
            orders,
            done,
            news,
            may_spin: std::thread::available_parallelism().is_ok_and(|cores| cores.get() > options.workers + 1),
            spins,
            waiting: HashMap::new(),
            next_job: 0,
            last_arrival: Nanos::ZERO,
            wake_at: None,
            broken: None,
            per_posting_ns: 1.0,
            latency: Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("constant bounds are valid"),
            served: Served::default(),
        })
    }

    pub(super) fn served(&self) -> Served {
        self.served
    }

    pub(super) fn refuse(&mut self) {
        self.served.refused += 1;
    }

    fn now(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Takes a query. The answer comes through the channel.
    pub(super) fn submit(&mut self, asked: Asked, deadline: Option<Nanos>) -> oneshot::Receiver<Answer> {
        let (reply, answer) = oneshot::channel();
        let terms = self.tokenizer.terms(&asked.text);
        let Some(query) = Query::prepare(QueryId(0), "", &terms, &self.index) else {
            self.reply(reply, Answer::hits(&[], &self.index, &asked, Duration::ZERO));
            return answer;
        };
        if self.dispatcher.in_flight() >= self.options.most_queries {
            self.reply(reply, Answer::error(429, "too many queries wait"));
            return answer;
        }
        let (now, number) = (self.now(), self.next_job);
        let postings = FIXED_POSTINGS + Features::of(&query, &self.index).postings as f64;
        let cost = Cost::alone(Nanos((postings * self.per_posting_ns) as u64));
        let predicted = PerClass::from_fn(|class| if class == Class::CPU { cost } else { Cost::NEVER });
        let deadline = now + deadline.unwrap_or(self.options.deadline);
        let (id, query_id) = (JobId(number), QueryId(number));
        let job = Job { id, query: query_id, row: number, priority: 0, arrival: now, deadline, predicted };
        let mode = asked.mode.unwrap_or(self.options.mode);
        let task = Task { query, asked, mode, postings, arrival: Instant::now() };
        self.waiting.insert(number, (reply, Some(task)));
        self.last_arrival = now;
        self.next_job += 1;
        self.broken = self.dispatcher.arrive(now, job).and_then(|()| self.decide(now)).err();
        self.news.notify_one();
        answer
    }

    /// Takes completions, and decides. Returns how long the scheduler may sleep; not at all while it spins.
    fn turn(&mut self) -> Result<Option<Duration>, LawBroken> {
        self.broken.take().map_or(Ok(()), Err)?;
        let now = self.now();
        let is_due = self.wake_at.take_if(|at| *at <= now).is_some();
        if is_due {
            self.dispatcher.wake(now)?;
        }
        let mut has_news = is_due;
        while let Ok((processor, (number, done))) = self.done.try_recv() {
            let jobs = self.dispatcher.rows(processor, number).to_vec();
            self.dispatcher.finish(now, processor)?;
            for (job, Done { answer, latency, per_posting_ns }) in jobs.into_iter().zip(done) {
                self.per_posting_ns += WEIGHT * (per_posting_ns - self.per_posting_ns);
                self.latency.saturating_record(latency.as_micros() as u64);
                self.reply_to(job, answer);
            }
            has_news = true;
        }
        if has_news {
            self.decide(now)?;
        }
        let spins = self.may_spin && (self.dispatcher.in_flight() > 0 || now.since(self.last_arrival) < SPIN);
        self.spins.store(spins, Ordering::Relaxed);
        let sleep = self.wake_at.map_or(SLEEP, |at| Duration::from_nanos(at.since(now).0));
        Ok(Some(sleep).filter(|_| !spins))
    }

    fn decide(&mut self, now: Nanos) -> Result<(), LawBroken> {
        let mut actions = Vec::new();
        self.dispatcher.decide(now, &mut actions)?;
        for action in actions {
            match action {
                Action::WakeAt(at) => self.wake_at = Some(at),
                Action::Start(processor, number) => {
                    let jobs = self.dispatcher.rows(processor, number);
                    let tasks = jobs.iter().filter_map(|job| self.waiting.get_mut(job)?.1.take()).collect();
                    // A worker ends only with the scheduler.
                    let _ = self.orders[processor.index()].send((number, tasks));
                }
            }
        }
        for job in std::mem::take(&mut self.dispatcher.sink_mut().0) {
            self.reply_to(job, Answer::error(429, "the answer would be late"));
        }
        Ok(())
    }

    fn reply_to(&mut self, job: u32, answer: Answer) {
        if let Some((reply, _)) = self.waiting.remove(&job) {
            self.reply(reply, answer);
        }
    }

    fn reply(&mut self, reply: oneshot::Sender<Answer>, answer: Answer) {
        *(if answer.status == 200 { &mut self.served.answered } else { &mut self.served.rejected }) += 1;
        // The client may have left.
        let _ = reply.send(answer);
    }

    /// Counters in Prometheus' text form.
    pub(super) fn metrics(&self) -> String {
        let Served { answered, rejected, refused } = self.served;
        let mut text = String::new();
        for (name, kind, help, value) in [
            ("queries_answered_total", "counter", "Answered queries.", answered),
            ("queries_rejected_total", "counter", "Rejected queries.", rejected),
            ("requests_refused_total", "counter", "Requests that were not understood.", refused),
            ("queries_in_flight", "gauge", "Queries that wait or run.", self.dispatcher.in_flight() as u64),
            ("workers", "gauge", "Workers.", self.orders.len() as u64),
        ] {
            text += &format!("# HELP tandem_{name} {help}\n# TYPE tandem_{name} {kind}\ntandem_{name} {value}\n");
        }
        let name = "tandem_query_latency_seconds";
        text += &format!("# HELP {name} Time from arrival to answer.\n# TYPE {name} summary\n");
        for quantile in [0.5, 0.9, 0.99, 0.999] {
            let seconds = self.latency.value_at_quantile(quantile) as f64 / 1e6;
            text += &format!("{name}{{quantile=\"{quantile}\"}} {seconds}\n");
        }
        let sum = self.latency.mean() * self.latency.len() as f64 / 1e6;
        text + &format!("{name}_sum {sum}\n{name}_count {}\n", self.latency.len())
    }
}

/// The loop of the scheduler, which ends only by an error.
pub(super) async fn turn_again(shared: Shared) -> Result<(), HttpError> {
    let news = Arc::clone(&shared.borrow().news);
    loop {
        let sleep = shared.borrow_mut().turn();
        match sleep.map_err(|e| HttpError::Lab(tandem_core::sim::SimError::from(e).into()))? {
            // Meanwhile, the runtime looks at the sockets.
            None => tokio::task::yield_now().await,
            Some(sleep) => drop(tokio::time::timeout(sleep, news.notified()).await),
        }
    }
}

/// The next order of a worker; `None` once the scheduler has ended.
fn next_order(orders: &Receiver<Batch<Task>>, spins: &AtomicBool) -> Option<Batch<Task>> {
    loop {
        match orders.try_recv() {
            Ok(order) => return Some(order),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if spins.load(Ordering::Relaxed) => std::hint::spin_loop(),
            Err(TryRecvError::Empty) => return orders.recv().ok(),
        }
    }
}

fn search(executor: &mut CpuExecutor, task: &Task, index: &Index) -> Done {
    let Task { query, asked, mode, postings, arrival } = task;
    let (mut hits, began) = (Vec::new(), Instant::now());
    let done = executor.search(query, *mode, asked.k, &mut hits);
    let per_posting_ns = began.elapsed().as_nanos() as f64 / postings;
    let latency = arrival.elapsed();
    let answer = match done {
        Ok(_) => Answer::hits(&hits, index, asked, latency),
        Err(why) => Answer::error(500, &why.to_string()),
    };
    Done { answer, latency, per_posting_ns }
}
