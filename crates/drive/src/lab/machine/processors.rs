//! The processors of a run: CPU lanes and GPU lanes of this machine, or recorded times that replace a GPU.

use std::sync::Arc;

use tandem_engine::index::{Bm25, Index};
use tandem_engine::query::Query;
use tandem_engine::search::cpu::multicore::{Cores, FineGrained, adaptive_lanes, inter_lanes};
use tandem_engine::search::cpu::{Algorithm, CpuExecutor};
use tandem_engine::search::device::{GpuError, list_gpus};
use tandem_engine::search::gpu::{GpuExecutor, GpuMemory};
use tandem_engine::search::{ExecError, Executor, PIPELINE_DEPTH};
use tandem_model::base::ids::{DeviceId, ProcessorId};
use tandem_model::base::machine::{Class, FaultPlan, Machine, PlannedFault};
use tandem_model::base::named::named_enum;
use tandem_model::cost::Workload;
use tandem_model::study::{GPU_LANE_DEPTH, Progress};

use crate::lab::LabError;
use crate::live::{Faulty, LaneWork, RunClock};
use crate::profile::{ProfileOptions, profile};

named_enum! {
    /// The source of GPU lanes.
    pub enum GpuChoice {
        Auto = "auto": "The GPU if the machine has one, else none",
        Real = "real": "The GPU; an error if the machine has none",
        Replay = "replay": "A simulated GPU lane that takes the recorded time of each query",
        None = "none": "No GPU lane",
    }
}

impl GpuChoice {
    /// Checks for a required GPU before any work that its absence would waste.
    ///
    /// # Errors
    /// If a GPU is required and there is none.
    pub fn check(self) -> Result<(), LabError> {
        if self == Self::Real {
            list_gpus().map_err(ExecError::from)?;
        }
        Ok(())
    }

    /// A stream of the first GPU, if the choice allows one and there is one.
    ///
    /// # Errors
    /// If a required GPU is not available, or a GPU cannot hold the index.
    pub fn executor(
        self,
        index: &Arc<Index>,
        memory: Option<&GpuMemory>,
        progress: &dyn Progress,
    ) -> Result<Option<GpuExecutor>, LabError> {
        if matches!(self, Self::Replay | Self::None) {
            return Ok(None);
        }
        match gpu_executor(DeviceId(0), index, index.built_with(), memory, progress) {
            Ok(gpu) => Ok(Some(gpu)),
            // With `auto`, a missing GPU is no error. Every output row names what replaces it.
            Err(ExecError::Gpu(GpuError::NoGpu(_))) if self == Self::Auto => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

/// An executor with the index on one GPU.
///
/// # Errors
/// The errors of [`GpuExecutor::on_device`].
pub fn gpu_executor(
    device: DeviceId,
    index: &Arc<Index>,
    bm25: Bm25,
    memory: Option<&GpuMemory>,
    progress: &dyn Progress,
) -> Result<GpuExecutor, ExecError> {
    // The step begins with the first copied byte, and not at all without a GPU.
    let began = std::sync::Once::new();
    let copied = |copied_bytes: u64, all_bytes: u64| {
        began.call_once(|| progress.begin("index to the GPU, MiB", 0));
        progress.reach(copied_bytes >> 20, all_bytes >> 20);
    };
    let gpu = GpuExecutor::on_device(device, index, bm25, memory, &copied);
    progress.end();
    gpu
}

named_enum! {
    /// The method by which CPU cores share queries.
    pub enum Multicore {
        Inter = "inter": "Each core answers whole queries and is one processor",
        Adaptive = "adaptive": "Like `inter`, but idle cores help with long queries",
        Fgqp = "fgqp": "All cores answer one query, cut into small tasks, and are one processor",
    }
}

impl Multicore {
    /// The CPU lanes of `cores` cores, starting with core `first_core`.
    ///
    /// # Errors
    /// If a thread cannot start.
    pub fn lanes(
        self,
        executor: &CpuExecutor,
        cores: usize,
        first_core: usize,
    ) -> Result<Vec<Box<dyn Executor>>, LabError> {
        let machine = Cores::of_this_machine();
        if cores == 0 {
            return Ok(Vec::new());
        }
        Ok(match self {
            Self::Inter => inter_lanes(executor, cores),
            Self::Adaptive => adaptive_lanes(executor, cores),
            // The pool holds one query at a time, so that the threshold has no effect.
            Self::Fgqp => vec![Box::new(FineGrained::new(executor, cores, &machine, first_core)?)],
        })
    }
}

/// The requested processors.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The algorithm for top-k retrieval on the CPU.
    pub algorithm: Algorithm,
    /// Number of CPU cores that serve queries.
    pub cpus: usize,
    /// The method by which they share queries.
    pub multicore: Multicore,
    /// The source of GPU lanes.
    pub gpu: GpuChoice,
    /// Number of GPUs; their ids start at 0.
    pub gpus: usize,
    /// Number of concurrent lanes of each GPU.
    pub streams: usize,
}

/// The processors, ready to answer queries.
pub struct Processors {
    wanted: Wanted,
    /// Executors of CPU lanes. Without CPU workers there is one, which is only profiled.
    cpus: Vec<Box<dyn Executor>>,
    /// Executors of GPU lanes, ordered by device, then stream.
    gpus: Vec<Box<dyn Executor>>,
    cpu_name: String,
    /// Whether lanes only wait for the predicted times.
    pretend: bool,
    /// The planned faults, and the clock that they follow.
    faults: FaultPlan,
    run_clock: RunClock,
    /// The executor that takes over after a lane fault.
    fallback: CpuExecutor,
}

impl std::fmt::Debug for Processors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Processors").field("wanted", &self.wanted).field("gpus", &self.gpus.len()).finish()
    }
}

impl Processors {
    /// Opens the processors on an index; `memory` limits the part of it on each GPU.
    ///
    /// # Errors
    /// If a required GPU or a core is not available.
    pub fn open(
        wanted: Wanted,
        index: &Arc<Index>,
        memory: Option<&GpuMemory>,
        progress: &dyn Progress,
    ) -> Result<Self, LabError> {
        let cpu = CpuExecutor::new(Arc::clone(index), index.built_with()).with_algorithm(wanted.algorithm);
        let gpus = gpu_lanes(&wanted, index, memory, progress)?;
        // The driver runs on the first core, GPU lanes on the next ones.
        let mut cpus = wanted.multicore.lanes(&cpu, wanted.cpus, 1 + gpus.len())?;
        if cpus.is_empty() {
            cpus.push(Box::new(cpu.clone_for_worker()));
        }
        let (cpu_name, faults, run_clock) = (cpu.device(), FaultPlan::default(), RunClock::default());
        Ok(Self { wanted, cpus, gpus, cpu_name, pretend: false, faults, run_clock, fallback: cpu })
    }

    /// Profiles queries on one CPU lane and one GPU lane. A lane of several cores uses all of them.
    ///
    /// # Errors
    /// If a query fails, or the answers of the processors differ.
    pub fn profile(
        &mut self,
        queries: &[Query],
        index: &Index,
        options: &ProfileOptions,
        progress: &dyn Progress,
    ) -> Result<Workload, LabError> {
        let mut one_of_each: Vec<Box<dyn Executor>> = vec![self.cpus.remove(0)];
        one_of_each.extend((!self.gpus.is_empty()).then(|| self.gpus.remove(0)));
        let searches = options.searches(one_of_each.len(), queries.len());
        progress.begin("profile", searches);
        let workload = profile(&mut one_of_each, queries, index, options, &mut |done| progress.reach(done, searches));
        progress.end();
        for executor in one_of_each {
            let lanes = if executor.class() == Class::GPU { &mut self.gpus } else { &mut self.cpus };
            lanes.insert(0, executor);
        }
        Ok(workload?)
    }

    /// Makes all lanes wait for the predicted times instead of answering queries.
    pub fn pretend(&mut self) {
        self.pretend = true;
    }

    /// Plans faults with times from the start of each run. Real executors stay retired in later runs.
    pub fn plan_faults(&mut self, faults: FaultPlan) {
        self.faults = faults;
    }

    pub(in crate::lab) fn faults(&self) -> &FaultPlan {
        &self.faults
    }

    /// The clock that planned faults follow.
    pub(in crate::lab) fn run_clock(&self) -> RunClock {
        self.run_clock.clone()
    }

    /// Number of lanes, with or without a thread of their own.
    #[must_use]
    pub fn num_lanes(&self) -> usize {
        let cpus = if self.wanted.cpus == 0 { 0 } else { self.cpus.len() };
        cpus + self.wanted.gpus * self.wanted.streams
    }

    /// The request that these processors meet.
    #[must_use]
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The name of the CPU.
    #[must_use]
    pub fn cpu_name(&self) -> &str {
        &self.cpu_name
    }

    /// The name of the GPUs; `None` without one.
    #[must_use]
    pub fn gpu_name(&self) -> Option<String> {
        let name = self.gpus.first()?.device();
        Some(match (self.wanted.gpus, self.wanted.streams) {
            (1, 1) => name,
            (gpus, 1) => format!("{gpus} x {name}"),
            (gpus, streams) => format!("{gpus} x {name}, {streams} streams each"),
        })
    }

    /// The machine, with CPU lanes first, and the work of each lane. `replays` adds lanes with recorded times.
    #[must_use]
    pub fn into_lanes(mut self, replays: bool) -> (Machine, Vec<LaneWork>) {
        if self.wanted.cpus == 0 {
            self.cpus.clear();
        }
        let Wanted { gpus, streams, .. } = self.wanted;
        let machine = Machine::default().with_cpus(self.cpus.len());
        let depth = match self.gpus.first_mut() {
            Some(gpu) => gpu.pipeline().map_or(1, |pipeline| pipeline.depth() as u32),
            None => GPU_LANE_DEPTH,
        };
        let (faults, run_clock, fallback) = (&self.faults, &self.run_clock, &self.fallback);
        let work_of = |(lane, executor): (usize, Box<dyn Executor>)| {
            let of_lane: Vec<PlannedFault> = faults.of(ProcessorId(lane as u32)).collect();
            match (self.pretend, of_lane.is_empty()) {
                (true, _) => LaneWork::TimeWarp,
                // Cores that share queries wait for each other, so that one failure stops all.
                (false, true) if executor.num_cores() > 1 => LaneWork::Executor(executor),
                (false, true) => LaneWork::WithFallback(executor, Box::new(fallback.clone_for_worker())),
                (false, false) => {
                    let faulty = Faulty::new(executor, of_lane, run_clock.clone());
                    LaneWork::WithFallback(Box::new(faulty), Box::new(fallback.clone_for_worker()))
                }
            }
        };
        let num_cpus = self.cpus.len();
        let mut work: Vec<LaneWork> = self.cpus.into_iter().enumerate().map(work_of).collect();
        if !self.gpus.is_empty() {
            work.extend((num_cpus..).zip(self.gpus).map(work_of));
        } else if replays {
            work.extend((0..gpus * streams).map(|_| LaneWork::Recorded));
        } else {
            return (machine, work);
        }
        (machine.with_gpus(gpus, streams, depth), work)
    }
}

const _: () = assert!(GPU_LANE_DEPTH as usize == PIPELINE_DEPTH);

/// The GPU lanes; none if there is no GPU and none is required.
fn gpu_lanes(
    wanted: &Wanted,
    index: &Arc<Index>,
    memory: Option<&GpuMemory>,
    progress: &dyn Progress,
) -> Result<Vec<Box<dyn Executor>>, LabError> {
    let mut lanes: Vec<Box<dyn Executor>> = Vec::new();
    if wanted.gpus * wanted.streams == 0 {
        return Ok(lanes);
    }
    let Some(first) = wanted.gpu.executor(index, memory, progress)? else { return Ok(lanes) };
    let mut next = Some(first);
    for device in 0..wanted.gpus as u32 {
        let gpu = match next.take() {
            Some(first) => first,
            None => gpu_executor(DeviceId(device), index, index.built_with(), memory, progress)?,
        };
        let others: Vec<GpuExecutor> =
            (1..wanted.streams).map(|_| gpu.for_another_stream()).collect::<Result<_, _>>()?;
        lanes.push(Box::new(gpu));
        lanes.extend(others.into_iter().map(|other| Box::new(other) as Box<dyn Executor>));
    }
    Ok(lanes)
}
