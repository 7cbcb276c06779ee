//! The lanes of a machine, with their threads.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tandem_engine::search::Executor;
use tandem_model::base::ids::ProcessorId;
use tandem_model::base::machine::{Class, Idle, Machine, PerClass, Processor};
use tandem_model::base::time::Nanos;
use tandem_model::cost::{Cost, MachineModel};

use super::QuerySet;
use super::ending::LiveError;
use super::faults::RunClock;
use super::pinning::Cores;
use super::ring::{Rings, Sleeper, Survived};
use super::worker::Worker;
use super::worker_lane::{CpuAffinity, Lane, Threads, WorkerLane};

/// The work done in the GPU's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuLane {
    /// A real GPU works.
    Real,
    /// Recorded times are played.
    Replay,
    /// The machine has no GPU lane.
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

/// The work behind a lane.
pub enum LaneWork {
    /// An executor, on a thread of its own.
    Executor(Box<dyn Executor>),
    /// An executor with a fallback, which gives equal answers and takes over if the first one fails.
    WithFallback(Box<dyn Executor>, Box<dyn Executor>),
    /// No executor: batches take the recorded times.
    Recorded,
    /// A thread lets the recorded times pass: scheduling costs are real, query costs are known. Hand-over is real too,
    /// so the machine's recorded costs of it are left out.
    TimeWarp,
}

impl fmt::Debug for LaneWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Executor(executor) => write!(f, "Executor({})", executor.device()),
            Self::WithFallback(executor, fallback) => {
                write!(f, "WithFallback({}, {})", executor.device(), fallback.device())
            }
            Self::Recorded => f.write_str("Recorded"),
            Self::TimeWarp => f.write_str("TimeWarp"),
        }
    }
}

/// The lanes of a machine, spawned once and reused from run to run: executors keep their memory and caches.
///
/// Dropping it ends the threads.
#[derive(Debug)]
pub struct LanePool {
    model: MachineModel,
    /// The model without its real parts: the source of recorded times.
    played: MachineModel,
    queries: Arc<QuerySet>,
    /// Costs on recorded lanes, by row of the workload.
    recorded: Vec<PerClass<Cost>>,
    cores: Cores,
    pub(super) lanes: Vec<Lane>,
    driver: Arc<Sleeper>,
    idle: Idle,
    /// Start of the run, from which planned faults count.
    run_clock: RunClock,
    /// Set while threads with a core of their own spin for work.
    spins: Arc<AtomicBool>,
    epoch: Instant,
}

impl LanePool {
    /// Makes the lanes of `model`'s machine, in its order, from the work of each; an executor gets a thread.
    ///
    /// `queries` and `recorded` have an entry for each row of the workload: executors run the first, recorded lanes
    /// take the second. Either may be empty if no lane needs it. Executors of CPU lanes that help each other are numbered in the
    /// order of their lanes.
    ///
    /// # Errors
    /// If the numbers of lanes and processors differ, or the system gives no thread.
    pub fn spawn(
        model: MachineModel,
        work: Vec<LaneWork>,
        queries: Arc<QuerySet>,
        recorded: Vec<PerClass<Cost>>,
    ) -> Result<Self, LiveError> {
        if work.len() != model.machine.len() {
            return Err(LiveError::LaneCount { lanes: work.len(), processors: model.machine.len() });
        }
        let is_gpu = |processor: usize| model.machine.class(ProcessorId(processor as u32)).is_gpu();
        let cores_of = |work: &LaneWork| match work {
            LaneWork::Executor(executor) | LaneWork::WithFallback(executor, _) => executor.num_cores(),
            LaneWork::TimeWarp => 1,
            LaneWork::Recorded => 0,
        };
        let lanes = || work.iter().enumerate();
        let gpus = lanes().filter(|(i, work)| is_gpu(*i) && cores_of(work) > 0).count();
        let busy = lanes().filter(|(i, _)| !is_gpu(*i)).map(|(_, work)| cores_of(work)).sum();
        let mut lane_pool = Self {
            model: MachineModel::default(),
            played: MachineModel::default(),
            queries,
            recorded,
            cores: Cores::share(gpus, busy),
            lanes: Vec::with_capacity(work.len()),
            driver: Arc::default(),
            idle: Idle::Sleep,
            run_clock: RunClock::default(),
            spins: Arc::default(),
            epoch: Instant::now(),
        };
        // Numbers follow the order of the processors within a class.
        let (mut gpu_lane, mut cpu_core) = (0, 0);
        for (i, work) in work.into_iter().enumerate() {
            let (number, step) = if is_gpu(i) { (&mut gpu_lane, 1) } else { (&mut cpu_core, cores_of(&work)) };
            let own = *number;
            *number += step;
            let lane = match work {
                LaneWork::Executor(executor) => lane_pool.spawn_worker(&model, i, Some(executor), None, own)?,
                LaneWork::WithFallback(executor, fallback) => {
                    lane_pool.spawn_worker(&model, i, Some(executor), Some(fallback), own)?
                }
                LaneWork::TimeWarp => lane_pool.spawn_worker(&model, i, None, None, own)?,
                LaneWork::Recorded => Lane::Recorded,
            };
            lane_pool.lanes.push(lane);
        }
        lane_pool.set_model(model);
        Ok(lane_pool)
    }

    /// A lane pool without threads: every processor takes recorded times.
    #[must_use]
    pub fn recorded(model: MachineModel, recorded: Vec<PerClass<Cost>>) -> Self {
        let lanes = model.machine.processors().map(|_| Lane::Recorded).collect();
        let (queries, cores, driver) = (Arc::default(), Cores::default(), Arc::default());
        let played = model.clone();
        let (idle, spins, run_clock) = (Idle::Sleep, Arc::default(), RunClock::default());
        let epoch = Instant::now();
        Self { model, played, queries, recorded, cores, lanes, driver, idle, run_clock, spins, epoch }
    }

    fn spawn_worker(
        &mut self,
        model: &MachineModel,
        position: usize,
        executor: Option<Box<dyn Executor>>,
        fallback: Option<Box<dyn Executor>>,
        number: usize,
    ) -> Result<Lane, LiveError> {
        let processor = ProcessorId(position as u32);
        let Processor { class, depth, .. } = model.machine.processor(processor);
        let rings = Arc::new(Rings::new(depth, model.most_queries(class)));
        let cores = self.cores.clone();
        let worker = Worker {
            processor,
            class,
            queries: Arc::clone(&self.queries),
            rings: Arc::clone(&rings),
            driver: Arc::clone(&self.driver),
            epoch: self.epoch,
            depth: depth as usize,
            driver_sleeps: !cores.driver_owns_core(),
            owns_core: if class.is_gpu() { cores.gpu_owns_core() } else { cores.worker_owns_core(number) },
            spins: Arc::clone(&self.spins),
            thread: 0,
            taken: 0,
            completed: 0,
            again: 0,
            without_memory: 0,
            last_done: 0,
        };
        let (pretends, had_fallback) = (executor.is_none(), fallback.is_some());
        fallback.into_iter().for_each(|fallback| rings.keep_fallback(fallback));
        let affinity = CpuAffinity { cores, is_gpu: class.is_gpu(), number };
        let (own, own_affinity) = (worker.clone(), affinity.clone());
        let serve = move || {
            own_affinity.apply();
            match executor {
                Some(executor) => own.serve(executor),
                None => own.pretend(),
            }
        };
        let thread = std::thread::Builder::new().name(format!("{class} worker {processor}")).spawn(serve);
        let current = Some(thread.map_err(|e| LiveError::NoThread(e.to_string()))?);
        let threads = Box::new(Threads { had_fallback, affinity, worker, current });
        Ok(Lane::Worker(WorkerLane { rings, ordered: 0, seen: 0, pretends, is_lost: false, threads }))
    }

    /// Lets each executor run its queries in turn for about `time`: caches fill, clock frequencies rise, and wrong
    /// answers show before any measurement.
    ///
    /// # Errors
    /// The first error of any executor, even of one that has a fallback.
    pub fn warm_up(&mut self, time: Duration) -> Result<(), LiveError> {
        self.check_lanes()?;
        let lanes = u32::from(self.model.parallelism.is_some());
        let began = Instant::now();
        for row in 0..self.queries.len() as u32 {
            if began.elapsed() >= time {
                break;
            }
            for lane in workers(&mut self.lanes) {
                lane.order(std::iter::once(row), 0, lanes);
            }
            for lane in workers(&mut self.lanes) {
                settle(lane, self.model.faults.lost_after)?;
            }
        }
        Ok(())
    }

    /// The queries per second that the lanes of each class answer if each of them always holds as many batches as it can, for
    /// about `time`: what they can do without dispatcher and policy. A batch has `queries` queries, in the order of their rows.
    ///
    /// # Errors
    /// The first error of any executor, even of one that has a fallback.
    pub fn flood(&mut self, queries: &PerClass<u32>, time: Duration) -> Result<PerClass<f64>, LiveError> {
        self.check_lanes()?;
        let (rows, shared) = (self.queries.len() as u32, u32::from(self.model.parallelism.is_some()));
        let (mut next, mut answered) = (0, PerClass::<f64>::default());
        let began = Instant::now();
        while began.elapsed() < time {
            for (lane, (_, processor)) in self.lanes.iter_mut().zip(self.model.machine.processors()) {
                let Lane::Worker(lane) = lane else { continue };
                let batch = queries[processor.class];
                lane.wake_if_asleep();
                if lane.take_completion().is_some() {
                    answered[processor.class] += f64::from(batch);
                }
                if lane.under_way() < processor.depth {
                    lane.order((0..batch).map(|at| (next + at) % rows), 0, if batch == 1 { shared } else { 0 });
                    next = (next + batch) % rows;
                }
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        workers(&mut self.lanes).try_for_each(|lane| settle(lane, self.model.faults.lost_after))?;
        Ok(answered.map(|queries| queries / seconds))
    }

    /// Refuses a run if an earlier one gave a lane up: its thread may still be at an old batch.
    pub(super) fn check_lanes(&self) -> Result<(), LiveError> {
        let is_lost = |lane: &Lane| matches!(lane, Lane::Worker(worker) if worker.is_lost());
        let Some(lost) = self.lanes.iter().position(is_lost) else { return Ok(()) };
        Err(LiveError::LaneHangs { processor: ProcessorId(lost as u32), waited: self.model.faults.lost_after })
    }

    /// The machine model of the pool.
    #[must_use]
    pub fn model(&self) -> &MachineModel {
        &self.model
    }

    /// Replaces the costs of the machine, as measured since then; recorded lanes take them.
    ///
    /// # Panics
    /// If the machine is another.
    pub fn set_model(&mut self, model: MachineModel) {
        assert_eq!(model.machine.len(), self.lanes.len(), "a lane pool's processors stay what they are");
        self.played = model.clone();
        for (processor, Processor { class, .. }) in model.machine.processors() {
            if matches!(&self.lanes[processor.index()], Lane::Worker(lane) if lane.pretends) {
                self.played.handoff[class] = Nanos::ZERO;
                self.played.lanes[class] =
                    self.played.lanes[class].take().map(|lanes| Arc::new(lanes.without_hand_over()));
            }
        }
        self.model = model;
    }

    /// Its processors.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.model.machine
    }

    /// Sets the behaviour of idle threads; a new pool's threads sleep.
    pub fn set_idle(&mut self, idle: Idle) {
        self.idle = idle;
    }

    /// The behaviour of idle threads.
    #[must_use]
    pub fn idle(&self) -> Idle {
        self.idle
    }

    /// Sets the clock that is started with each run; faulty executors share it.
    pub fn set_run_clock(&mut self, clock: RunClock) {
        self.run_clock = clock;
    }

    pub(super) fn run_clock(&self) -> RunClock {
        self.run_clock.clone()
    }

    /// Marks the start or end of a run; threads that spin during runs are woken.
    pub(super) fn set_running(&mut self, is_running: bool) {
        self.spins.store(is_running && self.idle == Idle::Spin, Ordering::Relaxed);
        if is_running {
            workers(&mut self.lanes).for_each(|lane| lane.rings.worker.wake());
        }
    }

    /// Whether a processor's batches take recorded times.
    ///
    /// # Panics
    /// If the machine has no such processor.
    #[must_use]
    pub fn is_recorded(&self, processor: ProcessorId) -> bool {
        match &self.lanes[processor.index()] {
            Lane::Worker(lane) => lane.pretends,
            Lane::Recorded => true,
        }
    }

    /// Whether a processor has no thread: its batches take recorded times in the driver's own queue.
    ///
    /// # Panics
    /// If the machine has no such processor.
    #[must_use]
    pub fn is_replayed(&self, processor: ProcessorId) -> bool {
        matches!(&self.lanes[processor.index()], Lane::Recorded)
    }

    /// Lanes whose own executors have failed permanently.
    #[must_use]
    pub fn retired(&self) -> Vec<ProcessorId> {
        let lanes = (0..).map(ProcessorId).zip(&self.lanes);
        let retired = lanes.filter(|(_, lane)| matches!(lane, Lane::Worker(lane) if lane.is_retired()));
        retired.map(|(processor, _)| processor).collect()
    }

    /// The work done in the GPU's place: a real GPU's if any lane has one.
    #[must_use]
    pub fn gpu(&self) -> GpuLane {
        let mut gpus = self.machine().processors().filter(|(_, processor)| processor.class.is_gpu()).peekable();
        if gpus.peek().is_none() {
            GpuLane::None
        } else if gpus.all(|(processor, _)| self.is_recorded(processor)) {
            GpuLane::Replay
        } else {
            GpuLane::Real
        }
    }

    /// Whether the driver and each CPU worker have a core. Otherwise they take time from each other, and measured
    /// delays are too long.
    #[must_use]
    pub fn has_cores_enough(&self) -> bool {
        self.lanes.iter().all(|lane| matches!(lane, Lane::Recorded)) || self.cores.are_enough()
    }

    /// Time of a fixed loop on all workers' cores at once: the fastest of some rounds, averaged over the cores. Zero
    /// without workers.
    #[must_use]
    pub fn fixed_loop(&self) -> Nanos {
        let cores = self.cores();
        let taken: Vec<u64> = std::thread::scope(|scope| {
            let round = |core| {
                cores.pin_worker(core);
                (0..LOOP_ROUNDS).map(|_| timed_loop()).min().unwrap_or(0)
            };
            let threads: Vec<_> = (0..cores.busy()).map(|core| scope.spawn(move || round(core))).collect();
            threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
        });
        Nanos(taken.iter().sum::<u64>() / taken.len().max(1) as u64)
    }

    pub(super) fn cores(&self) -> &Cores {
        &self.cores
    }

    pub(super) fn queries(&self) -> &QuerySet {
        &self.queries
    }

    pub(super) fn epoch(&self) -> Instant {
        self.epoch
    }

    pub(super) fn driver(&self) -> &Arc<Sleeper> {
        &self.driver
    }

    /// Cost of the query in a row on a recorded lane of `class`; `None` if unknown.
    pub(super) fn recorded_cost(&self, row: u32, class: Class) -> Option<Cost> {
        self.recorded.get(row as usize).map(|costs| costs[class]).filter(|cost| *cost != Cost::NEVER)
    }

    /// The parts that a run borrows separately: the model, the source of recorded times, recorded costs and lanes.
    pub(super) fn parts(&mut self) -> (&MachineModel, &MachineModel, &[PerClass<Cost>], &mut [Lane]) {
        (&self.model, &self.played, &self.recorded, &mut self.lanes)
    }
}

/// Waits for all batches of a lane and for the comparison of their answers.
fn settle(lane: &mut WorkerLane, waited: Nanos) -> Result<(), LiveError> {
    let processor = lane.threads.worker.processor;
    let mut since = Instant::now();
    while lane.under_way() > 0 {
        if lane.take_completion().is_some() {
            since = Instant::now();
            continue;
        }
        lane.wake_if_asleep();
        std::thread::yield_now();
        if since.elapsed().as_nanos() > u128::from(waited.0) {
            lane.give_up();
            return Err(LiveError::LaneHangs { processor, waited });
        }
    }
    lane.settle()?;
    match lane.take_survived().pop() {
        Some(Survived { what, .. }) => Err(LiveError::LaneFailed { processor, what }),
        None => Ok(()),
    }
}

/// The lanes with threads.
fn workers(lanes: &mut [Lane]) -> impl Iterator<Item = &mut WorkerLane> {
    lanes.iter_mut().filter_map(|lane| match lane {
        Lane::Worker(lane) => Some(lane),
        Lane::Recorded => None,
    })
}

impl Drop for LanePool {
    fn drop(&mut self) {
        workers(&mut self.lanes).for_each(|lane| lane.rings.close());
        for thread in workers(&mut self.lanes).filter_map(|lane| lane.threads.current.take()) {
            let _ = thread.join();
        }
    }
}

/// Rounds of the fixed loop, and steps of each: some milliseconds in all.
const LOOP_ROUNDS: u32 = 5;
const LOOP_STEPS: u64 = 2_000_000;

/// Nanoseconds of a fixed loop that reads no memory.
fn timed_loop() -> u64 {
    let began = Instant::now();
    let mixed =
        (0..LOOP_STEPS).fold(1_u64, |state, step| state.rotate_left(5).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ step);
    std::hint::black_box(mixed);
    began.elapsed().as_nanos() as u64
}
