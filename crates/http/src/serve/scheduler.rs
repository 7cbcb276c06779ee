//! The scheduler of the server: the lab's dispatcher around its executors.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tandem_core::base::ids::{JobId, ProcessorId, QueryId};
use tandem_core::base::machine::{Class, Machine, PerClass};
use tandem_core::base::time::Nanos;
use tandem_core::corpus::Tokenizer;
use tandem_core::cost::{Cost, MachineModel};
use tandem_core::index::Index;
use tandem_core::query::{Features, Mode, Query};
use tandem_core::sched::{Action, Dispatcher, Job, LogRow, ShedJob, Sink};
use tandem_core::search::cpu::CpuExecutor;
use tandem_core::search::{Executor, Hit};

use super::body::Asked;
use super::{ServeOptions, Served};
use crate::HttpError;

/// Postings that take as long as a query's fixed costs, in estimates.
const FIXED_POSTINGS: f64 = 2000.0;
/// Weight of a new service time in the mean time per posting.
const WEIGHT: f64 = 0.02;
/// Time per posting before anything was measured, in nanoseconds.
const FIRST_NS: f64 = 1.0;

/// The outcome of a query.
#[derive(Debug)]
pub(super) enum Reply {
    /// External ids with scores, best first.
    Hits(Vec<(String, f32)>),
    Rejected,
    Failed(String),
}

type Cell = Rc<RefCell<Option<Reply>>>;

/// A query for a worker.
struct Task {
    query: Query,
    mode: Mode,
    k: usize,
}

/// A finished batch.
struct Completion {
    processor: ProcessorId,
    number: u32,
    results: Vec<Result<Vec<Hit>, String>>,
}

struct Waiting {
    reply: Cell,
    /// The connection.
    number: usize,
    task: Option<Task>,
    postings: f64,
    arrival: Nanos,
}

/// Collects dropped jobs and service times.
#[derive(Default)]
struct Ended {
    dropped: Vec<u32>,
    service: Vec<(JobId, Nanos)>,
}

impl Sink for Ended {
    fn record(&mut self, row: &LogRow) {
        self.service.push((row.job, row.finished.since(row.started)));
    }

    fn shed(&mut self, job: &ShedJob) {
        self.dropped.push(job.job.0);
    }
}

pub(super) struct Scheduler {
    index: Arc<Index>,
    tokenizer: Tokenizer,
    deadline: Nanos,
    most_queries: usize,
    mode: Mode,
    began: Instant,
    dispatcher: Dispatcher<Ended>,
    actions: Vec<Action>,
    orders: Vec<Sender<(u32, Vec<Task>)>>,
    done: Receiver<Completion>,
    waiting: HashMap<u32, Waiting>,
    next_job: u32,
    wake_at: Option<Nanos>,
    per_posting_ns: f64,
    latency: Histogram<u64>,
    served: Served,
    /// Connections with new replies.
    ready: Vec<usize>,
}

impl Scheduler {
    pub(super) fn start(
        index: &Arc<Index>,
        tokenizer: Tokenizer,
        options: &ServeOptions<'_>,
        waker: &Arc<mio::Waker>,
    ) -> Result<Self, HttpError> {
        let machine = Machine::new(options.workers, 0);
        let model = MachineModel::from(machine.clone());
        let policy = options.policy.build(&model).map_err(|e| HttpError::Target(e.to_string()))?;
        let executor = CpuExecutor::new(Arc::clone(index), index.built_with());
        let (finished, done) = channel();
        let mut orders = Vec::new();
        for (processor, _) in machine.processors() {
            let (order, taken) = channel();
            let (mut executor, finished, waker) = (executor.clone_for_worker(), finished.clone(), Arc::clone(waker));
            let worker = std::thread::Builder::new().name(format!("worker {processor}"));
            worker.spawn(move || work(&mut executor, processor, &taken, &finished, &waker))?;
            orders.push(order);
        }
        Ok(Self {
            index: Arc::clone(index),
            tokenizer,
            deadline: options.deadline,
            most_queries: options.most_queries,
            mode: options.mode,
            began: Instant::now(),
            dispatcher: Dispatcher::with_sink(&machine, policy, Ended::default()),
            actions: Vec::new(),
            orders,
            done,
            waiting: HashMap::new(),
            next_job: 0,
            wake_at: None,
            per_posting_ns: FIRST_NS,
            latency: Histogram::new_with_bounds(1, 3_600_000_000, 3).expect("constant bounds are valid"),
            served: Served::default(),
            ready: Vec::new(),
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

    /// Time until the policy must be polled again.
    pub(super) fn next_wake(&self) -> Option<Duration> {
        self.wake_at.map(|at| Duration::from_nanos(at.since(self.now()).0))
    }

    /// Takes a query of a connection. The cell holds its reply once it is known.
    pub(super) fn submit(&mut self, number: usize, asked: &Asked, deadline: Option<Nanos>) -> Cell {
        let reply: Cell = Rc::default();
        let terms = self.tokenizer.terms(&asked.text);
        let Some(query) = Query::prepare(QueryId(0), "", &terms, &self.index) else {
            *reply.borrow_mut() = Some(Reply::Hits(Vec::new()));
            self.served.answered += 1;
            return reply;
        };
        if self.dispatcher.in_flight() >= self.most_queries {
            *reply.borrow_mut() = Some(Reply::Rejected);
            self.served.rejected += 1;
            return reply;
        }
        let now = self.now();
        let postings = FIXED_POSTINGS + Features::of(&query, &self.index).postings as f64;
        let cost = Cost::alone(Nanos((postings * self.per_posting_ns) as u64));
        let predicted = PerClass::from_fn(|class| if class == Class::CPU { cost } else { Cost::NEVER });
        let job = self.next_job;
        let deadline = now + deadline.unwrap_or(self.deadline);
        let arrived = self.dispatcher.arrive(
            now,
            Job { id: JobId(job), query: QueryId(job), row: job, priority: 0, arrival: now, deadline, predicted },
        );
        if let Err(broken) = arrived {
            *reply.borrow_mut() = Some(Reply::Failed(broken.to_string()));
            return reply;
        }
        self.next_job += 1;
        let task = Some(Task { query, mode: asked.mode.unwrap_or(self.mode), k: asked.k });
        let waiting = Waiting { reply: Rc::clone(&reply), number, task, postings, arrival: now };
        self.waiting.insert(job, waiting);
        reply
    }

    /// Takes completions, decides, and hands out orders. Returns the connections with new replies.
    pub(super) fn turn(&mut self) -> Result<Vec<usize>, HttpError> {
        let broken = |e: tandem_core::sched::LawBroken| HttpError::Lab(tandem_core::sim::SimError::from(e).into());
        let now = self.now();
        while let Ok(Completion { processor, number, results }) = self.done.try_recv() {
            let jobs = self.dispatcher.rows(processor, number).to_vec();
            self.dispatcher.finish(now, processor).map_err(broken)?;
            for (job, result) in jobs.into_iter().zip(results) {
                let reply = match result {
                    Ok(hits) => {
                        let id = |hit: &Hit| (self.index.external_id(hit.doc).into_owned(), hit.score);
                        Reply::Hits(hits.iter().map(id).collect())
                    }
                    Err(why) => Reply::Failed(why),
                };
                self.reply(job, reply, now);
            }
        }
        if self.wake_at.is_some_and(|at| at <= now) {
            self.wake_at = None;
            self.dispatcher.wake(now).map_err(broken)?;
        }
        let mut actions = std::mem::take(&mut self.actions);
        self.dispatcher.decide(now, &mut actions).map_err(broken)?;
        for action in actions.drain(..) {
            match action {
                Action::WakeAt(at) => self.wake_at = Some(at),
                Action::Start(processor, number) => {
                    let jobs = self.dispatcher.rows(processor, number);
                    let tasks = jobs.iter().filter_map(|job| self.waiting.get_mut(job)?.task.take()).collect();
                    // A worker ends only with the scheduler.
                    let _ = self.orders[processor.index()].send((number, tasks));
                }
            }
        }
        self.actions = actions;
        for job in std::mem::take(&mut self.dispatcher.sink_mut().dropped) {
            self.reply(job, Reply::Rejected, now);
        }
        Ok(std::mem::take(&mut self.ready))
    }

    fn reply(&mut self, job: u32, reply: Reply, now: Nanos) {
        let service = std::mem::take(&mut self.dispatcher.sink_mut().service);
        for (job, time) in service {
            if let Some(waiting) = self.waiting.get(&job.0) {
                let each = time.0 as f64 / waiting.postings;
                self.per_posting_ns += WEIGHT * (each - self.per_posting_ns);
            }
        }
        let Some(waiting) = self.waiting.remove(&job) else { return };
        match reply {
            Reply::Hits(_) => {
                self.served.answered += 1;
                self.latency.saturating_record(now.since(waiting.arrival).0 / 1000);
            }
            Reply::Rejected | Reply::Failed(_) => self.served.rejected += 1,
        }
        *waiting.reply.borrow_mut() = Some(reply);
        self.ready.push(waiting.number);
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

/// The loop of a worker. It ends with the scheduler.
fn work(
    executor: &mut CpuExecutor,
    processor: ProcessorId,
    orders: &Receiver<(u32, Vec<Task>)>,
    finished: &Sender<Completion>,
    waker: &mio::Waker,
) {
    while let Ok((number, tasks)) = orders.recv() {
        let mut search = |task: &Task| {
            let mut hits = Vec::new();
            let done = executor.search(&task.query, task.mode, task.k, &mut hits);
            done.map(|_| hits).map_err(|e| e.to_string())
        };
        let results = tasks.iter().map(&mut search).collect();
        if finished.send(Completion { processor, number, results }).is_err() || waker.wake().is_err() {
            return;
        }
    }
}
