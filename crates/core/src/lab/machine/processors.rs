//! The processors that do the work: CPU lanes and GPU lanes of this machine, or recorded times in a GPU's place.

use std::sync::Arc;

use crate::base::ids::{DeviceId, ProcessorId};
use crate::base::machine::{Class, FaultPlan, Machine, PlannedFault};
use crate::cost::{ProfileOptions, Workload, profile};
use crate::index::{Bm25, Index};
use crate::lab::{LabError, Progress};
use crate::live::{Faulty, LaneWork, RunClock};
use crate::query::Query;
use crate::search::cpu::multicore::{Cores, FineGrained, adaptive_lanes, inter_lanes};
use crate::search::cpu::{Algorithm, CpuExecutor};
use crate::search::device::{GpuError, list_gpus};
use crate::search::gpu::{GpuExecutor, GpuMemory};
use crate::search::{ExecError, Executor, PIPELINE_DEPTH};

/// What stands in a GPU's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuChoice {
    /// The GPU if there is one, else `none`
    Auto,
    /// The GPU; an error without one
    Real,
    /// A lane that takes the recorded time of each query
    Replay,
    /// No GPU lane
    None,
}

impl GpuChoice {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Real, Self::Replay, Self::None];

    /// The name, as in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Real => "real",
            Self::Replay => "replay",
            Self::None => "none",
        }
    }

    /// Whether this machine has what is insisted on: asked before the work that would be lost without it.
    ///
    /// # Errors
    /// If a GPU is insisted on, and there is none.
    pub fn check(self) -> Result<(), LabError> {
        if self == Self::Real {
            list_gpus().map_err(ExecError::from)?;
        }
        Ok(())
    }

    /// A stream of the first GPU, if it is asked for, or present and not declined.
    ///
    /// # Errors
    /// If it can't be had though it is insisted on, or does not hold the index.
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
            // Unasked, a machine without a GPU is no error: what replaces it is said, and written into every row.
            Err(ExecError::Gpu(GpuError::NoGpu(_))) if self == Self::Auto => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

/// The index on one GPU.
///
/// # Errors
/// As [`GpuExecutor::on_device`].
pub fn gpu_executor(
    device: DeviceId,
    index: &Arc<Index>,
    bm25: Bm25,
    memory: Option<&GpuMemory>,
    progress: &dyn Progress,
) -> Result<GpuExecutor, ExecError> {
    // Nothing is copied where there is no GPU to copy to.
    let began = std::sync::Once::new();
    let copied = |copied_bytes: u64, all_bytes: u64| {
        began.call_once(|| progress.begin("index to the GPU, MiB", 0));
        progress.reach(copied_bytes >> 20, all_bytes >> 20);
    };
    let gpu = GpuExecutor::on_device(device, index, bm25, memory, &copied);
    progress.end();
    gpu
}

/// How CPU cores share queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multicore {
    /// Each core answers whole queries: a processor each
    Inter,
    /// As `inter`, and cores without a query help with long ones
    Adaptive,
    /// All cores answer one query, cut into small tasks: one processor
    Fgqp,
}

impl Multicore {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Inter, Self::Adaptive, Self::Fgqp];

    /// The name, as in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Inter => "inter",
            Self::Adaptive => "adaptive",
            Self::Fgqp => "fgqp",
        }
    }

    /// The CPU lanes that `cores` cores make; the first runs on the machine's core `first_core`.
    ///
    /// # Errors
    /// If the system gives no thread.
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
            // One query at a time: the pool holds no others, whatever its threshold.
            Self::Fgqp => vec![Box::new(FineGrained::new(executor, cores, 0, &machine, first_core)?)],
        })
    }
}

/// Which processors are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// How the CPU finds the best documents.
    pub algorithm: Algorithm,
    /// CPU cores that work.
    pub cpus: usize,
    /// How they share queries.
    pub multicore: Multicore,
    /// What stands in the GPUs' place.
    pub gpu: GpuChoice,
    /// GPUs, by their numbers from 0.
    pub gpus: usize,
    /// Lanes of each, which answer side by side.
    pub streams: usize,
}

/// The processors that there are, each ready to answer.
pub struct Processors {
    wanted: Wanted,
    /// Lane by lane; where no CPU is to work, one that is only measured.
    cpus: Vec<Box<dyn Executor>>,
    /// Device by device, stream by stream.
    gpus: Vec<Box<dyn Executor>>,
    cpu_name: String,
    /// Whether their lanes only let predicted times pass.
    pretend: bool,
    /// What fails, and when; and what that counts from.
    faults: FaultPlan,
    run_clock: RunClock,
    /// What lanes go on with that fail: the CPU.
    fallback: CpuExecutor,
}

impl std::fmt::Debug for Processors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Processors").field("wanted", &self.wanted).field("gpus", &self.gpus.len()).finish()
    }
}

impl Processors {
    /// Makes them for an index, with no more of it in each GPU's memory than `memory` allows.
    ///
    /// # Errors
    /// If a GPU that is insisted on can't be had, or a core.
    pub fn open(
        wanted: Wanted,
        index: &Arc<Index>,
        memory: Option<&GpuMemory>,
        progress: &dyn Progress,
    ) -> Result<Self, LabError> {
        let cpu = CpuExecutor::new(Arc::clone(index), index.built_with()).with_algorithm(wanted.algorithm);
        let gpus = gpu_lanes(&wanted, index, memory, progress)?;
        // The driver has the first core, the GPUs' lanes the next.
        let mut cpus = wanted.multicore.lanes(&cpu, wanted.cpus, 1 + gpus.len())?;
        if cpus.is_empty() {
            cpus.push(Box::new(cpu.clone_for_worker()));
        }
        let (cpu_name, faults, run_clock) = (cpu.device(), FaultPlan::default(), RunClock::default());
        Ok(Self { wanted, cpus, gpus, cpu_name, pretend: false, faults, run_clock, fallback: cpu })
    }

    /// What queries cost on a CPU lane and on a GPU lane: a lane of several cores is measured with all of them.
    ///
    /// # Errors
    /// If a query fails, or the processors' answers differ.
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

    /// Their lanes are only to let pass the times that batches are predicted to take.
    pub fn pretend(&mut self) {
        self.pretend = true;
    }

    /// Lanes fail as planned, counted from the beginning of each run. An executor that was retired stays so in the runs after;
    /// lanes that take recorded times fail in each.
    pub fn plan_faults(&mut self, faults: FaultPlan) {
        self.faults = faults;
    }

    /// What fails, and when.
    pub(in crate::lab) fn faults(&self) -> &FaultPlan {
        &self.faults
    }

    /// What planned faults count from.
    pub(in crate::lab) fn run_clock(&self) -> RunClock {
        self.run_clock.clone()
    }

    /// How many lanes there will be with a thread or recorded times.
    #[must_use]
    pub fn num_lanes(&self) -> usize {
        let cpus = if self.wanted.cpus == 0 { 0 } else { self.cpus.len() };
        cpus + self.wanted.gpus * self.wanted.streams
    }

    /// What was asked for.
    #[must_use]
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// What the CPU is called.
    #[must_use]
    pub fn cpu_name(&self) -> &str {
        &self.cpu_name
    }

    /// What the GPUs are called; `None` without one.
    #[must_use]
    pub fn gpu_name(&self) -> Option<String> {
        let name = self.gpus.first()?.device();
        Some(match (self.wanted.gpus, self.wanted.streams) {
            (1, 1) => name,
            (gpus, 1) => format!("{gpus} x {name}"),
            (gpus, streams) => format!("{gpus} x {name}, {streams} streams each"),
        })
    }

    /// The machine that they make, CPU lanes first, and what does the work of each lane. `replays`: lanes that take
    /// recorded times stand in the GPUs' place.
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
                // Cores that share queries wait for each other: where one fails, all do.
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

/// How many batches a GPU lane holds: one that replays recorded times as many as a real one.
pub const GPU_LANE_DEPTH: u32 = PIPELINE_DEPTH as u32;

/// The lanes of the GPUs wanted; none where they are not to be had and nobody insists.
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
