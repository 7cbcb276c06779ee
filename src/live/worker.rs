//! Workers: a thread around each executor, and the fleet of all lanes of a machine.

use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError, bounded};

use super::ending::LiveError;
use super::pinning::Cores;
use super::{QuerySet, RecordedTimes};
use crate::exec::{Executor, Help, Hit, MAX_K};
use crate::ids::{JobId, ProcessorId};
use crate::machine::{Class, Machine, PerClass};
use crate::sched::{Batch, Job};
use crate::time::Nanos;

/// How long an idle worker polls for its next batch before it sleeps. Under load the next one comes within it, and
/// waking a sleeping thread costs tens of microseconds that are no part of the query.
const POLL: Duration = Duration::from_micros(200);

/// How long an idle worker that could help others sleeps between two looks.
const NAP: Duration = Duration::from_micros(100);

/// What stands in the GPU's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuLane {
    /// A GPU.
    Real,
    /// Recorded times.
    Replay,
    /// Nothing.
    None,
}

impl GpuLane {
    /// `real`, `replay` or `none`, as in options and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Replay => "replay",
            Self::None => "none",
        }
    }
}

impl fmt::Display for GpuLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The GPU lanes of a fleet.
pub enum Gpus {
    /// None.
    None,
    /// One for each executor.
    Real(Vec<Box<dyn Executor>>),
    /// This many that take the recorded times.
    Replay(usize, RecordedTimes),
}

impl fmt::Debug for Gpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Real(executors) => write!(f, "Real({})", executors.len()),
            Self::Replay(count, _) => write!(f, "Replay({count})"),
        }
    }
}

/// A worker has finished a batch, or failed.
#[derive(Debug)]
pub(super) struct Completion {
    /// Which lane.
    pub(super) processor: ProcessorId,
    /// How long the worker itself was at it.
    pub(super) worked: Nanos,
    /// Whether all queries were answered, rightly.
    pub(super) result: Result<(), LiveError>,
}

/// How a lane gets its work done.
#[derive(Debug)]
pub(super) enum Lane {
    /// By a thread that takes batches from this channel.
    Worker(Sender<Batch>),
    /// By waiting for the recorded time.
    Replay,
}

/// The lanes of a machine, spawned once and reused from run to run: executors keep their memory and caches.
///
/// Dropping it ends the threads.
#[derive(Debug)]
pub struct Fleet {
    machine: Machine,
    gpu: GpuLane,
    queries: Arc<QuerySet>,
    recorded: RecordedTimes,
    cores: Cores,
    lanes: Vec<Lane>,
    completions: Receiver<Completion>,
    threads: Vec<JoinHandle<()>>,
}

impl Fleet {
    /// Spawns a worker for each executor in `cpus` and in `gpus`.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn spawn(queries: Arc<QuerySet>, cpus: Vec<Box<dyn Executor>>, gpus: Gpus) -> Result<Self, LiveError> {
        let (gpu, gpu_executors, replayed, recorded) = match gpus {
            Gpus::None => (GpuLane::None, Vec::new(), 0, RecordedTimes::default()),
            Gpus::Real(executors) => (GpuLane::Real, executors, 0, RecordedTimes::default()),
            Gpus::Replay(count, recorded) => (GpuLane::Replay, Vec::new(), count, recorded),
        };
        let machine = Machine::new(cpus.len(), gpu_executors.len() + replayed);
        let cores = Cores::share(cpus.iter().map(|cpu| cpu.num_cores()).sum());
        let (done, completions) = bounded(machine.len().max(1));
        let mut lanes = Vec::with_capacity(machine.len());
        let mut threads = Vec::new();
        let mut core = 0;
        for executor in cpus.into_iter().chain(gpu_executors) {
            let (own_core, cores) = (core, cores.clone());
            core += executor.num_cores();
            let processor = ProcessorId(lanes.len() as u32);
            let (orders, inbox) = bounded(1);
            let worker = Worker { processor, executor, queries: Arc::clone(&queries), hits: Vec::with_capacity(MAX_K) };
            let done = done.clone();
            let thread = std::thread::Builder::new()
                .name(format!("{} worker {processor}", machine.class(processor)))
                .spawn(move || {
                    cores.pin_worker(own_core);
                    worker.serve(&inbox, &done);
                })
                .map_err(|e| LiveError::NoThread(e.to_string()))?;
            lanes.push(Lane::Worker(orders));
            threads.push(thread);
        }
        lanes.resize_with(machine.len(), || Lane::Replay);
        Ok(Self { machine, gpu, queries, recorded, cores, lanes, completions, threads })
    }

    /// A fleet without threads: every processor of `machine` takes the recorded times.
    #[must_use]
    pub fn replayed(machine: Machine, recorded: RecordedTimes) -> Self {
        let gpu = if machine.count(Class::GPU) > 0 { GpuLane::Replay } else { GpuLane::None };
        let lanes = machine.processors().map(|_| Lane::Replay).collect();
        let (_, completions) = bounded(1);
        let (queries, cores, threads) = (Arc::default(), Cores::default(), Vec::new());
        Self { machine, gpu, queries, recorded, cores, lanes, completions, threads }
    }

    /// Lets every worker run queries, each its next one, for about `time`: caches fill and clocks rise, and a wrong
    /// answer shows before anything is measured.
    ///
    /// # Errors
    /// The first that an executor reports.
    pub fn warm_up(&mut self, time: Duration) -> Result<(), LiveError> {
        let began = Instant::now();
        let workers: Vec<&Sender<Batch>> = self
            .lanes
            .iter()
            .filter_map(|lane| match lane {
                Lane::Worker(orders) => Some(orders),
                Lane::Replay => None,
            })
            .collect();
        let mut outcome = Ok(());
        for query in self.queries.iter() {
            if outcome.is_err() || began.elapsed() >= time {
                break;
            }
            let (arrival, deadline, predicted) = (Nanos::ZERO, Nanos::MAX, PerClass::default());
            let job = Job { id: JobId(0), query: query.id, arrival, deadline, predicted };
            let sent = workers.iter().filter(|orders| orders.send(Batch::One(job)).is_ok()).count();
            for completion in self.completions.iter().take(sent) {
                outcome = outcome.and(completion.result);
            }
        }
        outcome
    }

    /// Its processors.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// What stands in the GPU's place.
    #[must_use]
    pub fn gpu(&self) -> GpuLane {
        self.gpu
    }

    /// Whether there are cores enough: one for the driver and one for each CPU worker. If not, they take time from each
    /// other and delays come out too long.
    #[must_use]
    pub fn has_cores_enough(&self) -> bool {
        self.threads.is_empty() || self.cores.driver_owns_core()
    }

    pub(super) fn cores(&self) -> &Cores {
        &self.cores
    }

    pub(super) fn completions(&self) -> &Receiver<Completion> {
        &self.completions
    }

    pub(super) fn lane(&self, processor: ProcessorId) -> &Lane {
        &self.lanes[processor.index()]
    }

    pub(super) fn recorded(&self) -> &RecordedTimes {
        &self.recorded
    }

    pub(super) fn queries(&self) -> &QuerySet {
        &self.queries
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        // Workers end when their channel closes.
        self.lanes.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// What a worker thread owns.
struct Worker {
    processor: ProcessorId,
    executor: Box<dyn Executor>,
    queries: Arc<QuerySet>,
    hits: Vec<Hit>,
}

impl Worker {
    fn serve(mut self, inbox: &Receiver<Batch>, done: &Sender<Completion>) {
        while let Some(batch) = next_batch(inbox, self.executor.as_mut()) {
            let started = Instant::now();
            // A panic in an executor must end the run with an error, not leave the driver waiting for ever.
            let run = std::panic::AssertUnwindSafe(|| self.run(&batch));
            let result = std::panic::catch_unwind(run).unwrap_or(Err(LiveError::WorkerPanicked(self.processor)));
            let worked = Nanos(started.elapsed().as_nanos() as u64);
            if done.send(Completion { processor: self.processor, worked, result }).is_err() {
                return;
            }
        }
    }

    fn run(&mut self, batch: &Batch) -> Result<(), LiveError> {
        for job in batch.jobs() {
            let processor = self.processor;
            let live = self.queries.get(job.query).ok_or(LiveError::UnknownQuery(job.query))?;
            self.executor
                .search(&live.query, live.mode, self.queries.k(), &mut self.hits)
                .map_err(|error| LiveError::Executor { query: job.query, processor, error })?;
            let kind = self.executor.class();
            self.queries.check(job.query, &self.hits).map_err(|difference| LiveError::WrongAnswer {
                query: job.query,
                kind,
                difference,
            })?;
        }
        Ok(())
    }
}

/// The next batch: polled for a while, then slept for; an executor that can help others does so meanwhile. `None` when
/// the fleet is dropped.
fn next_batch(inbox: &Receiver<Batch>, executor: &mut dyn Executor) -> Option<Batch> {
    let mut idle = Instant::now();
    loop {
        match inbox.try_recv() {
            Ok(batch) => return Some(batch),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) => {}
        }
        let is_tired = idle.elapsed() > POLL;
        match executor.help() {
            Help::Given => idle = Instant::now(),
            Help::Never if is_tired => return inbox.recv().ok(),
            Help::NotNow if is_tired => match inbox.recv_timeout(NAP) {
                Ok(batch) => return Some(batch),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            },
            Help::Never | Help::NotNow => std::hint::spin_loop(),
        }
    }
}
