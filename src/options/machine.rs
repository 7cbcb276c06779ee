//! Options of the machine: processors, machine file, GPU memory, cluster, failing lanes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tandem_drive::lab::{GpuChoice, HostInfo};
use tandem_engine::index::Index;
use tandem_engine::query::{LogOptions, Query};
use tandem_engine::search::gpu::GpuMemory;
use tandem_model::base::machine::FaultPlan;
use tandem_model::base::time::Nanos;
use tandem_model::cost::{MachineProfile, Workload};
use tandem_model::files::this_machine;
use tandem_model::sim::{ClusterShape, Routing, ShardCosts};
use tandem_model::study::{NamedMachine, read_faults};

use crate::defaults;
use crate::failure::Failure;
use crate::index::bytes;
use crate::options::names::choice;
use crate::output::result;
use crate::settings::Settings;

/// The largest accepted number of processors of a class.
pub(crate) const MAX_PROCESSORS: usize = 1024;

/// Refuses numbers of processors beyond [`MAX_PROCESSORS`]; each number comes with the option that gives it.
pub(crate) fn check_processors(counts: &[(&str, usize)]) -> Result<(), Failure> {
    match counts.iter().find(|(_, count)| *count > MAX_PROCESSORS) {
        Some((option, count)) => Err(Failure::input(format!("{option} is {count}, expected at most {MAX_PROCESSORS}"))),
        None => Ok(()),
    }
}

/// The number of CPU workers of a command that drives this machine: as asked for, or one per core that the driver and GPU
/// lanes leave. More workers than cores are refused unless `is_forced`.
pub(crate) fn workers_here(
    asked: Option<usize>,
    is_forced: bool,
    gpu: GpuChoice,
    (gpus, streams): (usize, usize),
) -> Result<usize, Failure> {
    let host = HostInfo::detect();
    let workers = asked.unwrap_or_else(|| host.workers(host.gpu_lanes(gpu, gpus, streams)));
    check_processors(&[("--cpus", workers)])?;
    if workers > host.cores && !is_forced {
        return Err(Failure::input(format!(
            "--cpus is {workers}, and this machine has {} cores: workers would wait for each other, which lengthens delays \
             (--set force=true drives them nevertheless; `tandem simulate --cpus {workers}` predicts a larger machine)",
            host.cores
        )));
    }
    Ok(workers)
}

/// The default path of the machine profile.
pub(crate) const MACHINE_PROFILE: &str = "out/machine.json";
/// The value of `--machine` for no machine profile.
const NONE: &str = "none";

/// The machine profile that predictions use.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MachineProfileArgument {
    /// Machine profile, written by `profile --machine`: the costs of serving beyond the queries' own service times; or `none`
    /// [default: out/machine.json, if it was measured on this machine]
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
}

impl MachineProfileArgument {
    /// The profile and the name of its file; `None` without one. `costs_are_of_here` says that the queries were measured on
    /// this machine, so that its own profile applies to them.
    pub(crate) fn read(&self, costs_are_of_here: bool) -> Result<Option<(String, MachineProfile)>, Failure> {
        match &self.machine {
            Some(path) if path.as_os_str() == NONE => Ok(None),
            Some(path) => Ok(Some((path.display().to_string(), MachineProfile::read(path)?))),
            None if costs_are_of_here && Path::new(MACHINE_PROFILE).exists() => {
                let file = MachineProfile::read(Path::new(MACHINE_PROFILE))?;
                let is_of_here = file.provenance.get("machine").is_some_and(|machine| *machine == this_machine());
                Ok(is_of_here.then(|| (MACHINE_PROFILE.to_owned(), file)))
            }
            None => Ok(None),
        }
    }

    /// Reads the named file, so that a fault shows before any work.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.read(false).map(|_| ())
    }
}

/// The warnings that a machine profile was measured with queries of other lengths than these workloads', each once, for the
/// answer. They are also results of the command.
pub(crate) fn mismatches<'a>(
    uses: impl IntoIterator<Item = (&'a (String, MachineProfile), &'a Workload)>,
) -> Vec<String> {
    let of = |((name, profile), workload): (&'a (String, MachineProfile), &Workload)| {
        NamedMachine { name, profile }.mismatch(workload)
    };
    let warnings: BTreeSet<String> = uses.into_iter().filter_map(of).collect();
    let warnings = warnings.into_iter().collect();
    result("warnings", &warnings);
    warnings
}

/// The budget of GPU memory for an index.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GpuMemoryArguments {
    /// Budget of GPU memory for the index, such as 2GiB. It holds the most read parts of lists; the GPU reads the others from
    /// host memory [default: room for the whole index]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    gpu_memory: Option<u64>,
}

impl GpuMemoryArguments {
    /// Refuses a budget for a replayed GPU, whose times were measured with the whole index in GPU memory.
    pub(crate) fn needs_gpu(&self, has_gpu: bool) -> Result<(), Failure> {
        if has_gpu {
            return Ok(());
        }
        self.refuse(
            "no GPU is driven, and recorded times were measured with the whole index in GPU memory: leave the option out",
        )
    }

    /// The budget as result files name it; `None` without one.
    pub(crate) fn named(&self, settings: &Settings) -> Option<String> {
        let bytes = self.gpu_memory?;
        let log = settings.gpu_memory_log.as_ref();
        let log = log.map_or(String::new(), |log| format!(", learned from {}", log.display()));
        Some(format!("{bytes} bytes{log}"))
    }

    /// The budget, with the expected reads of the log's queries; `None` without one.
    pub(crate) fn open(
        &self,
        settings: &Settings,
        index: &Arc<Index>,
        queries: &[Query],
    ) -> Result<Option<GpuMemory>, Failure> {
        match &settings.gpu_memory_log {
            Some(log) if self.gpu_memory.is_some() => {
                Ok(self.learned(index, &defaults::read_queries(log, &LogOptions::default(), index)?))
            }
            _ => Ok(self.learned(index, queries)),
        }
    }

    /// Refuses a budget, for the reason `why`.
    pub(crate) fn refuse(&self, why: &str) -> Result<(), Failure> {
        match self.gpu_memory {
            Some(_) => Err(Failure::input(format!("--gpu-memory: {why}"))),
            None => Ok(()),
        }
    }

    /// The budget, with the expected reads of these queries; `None` without one.
    pub(crate) fn learned(&self, index: &Arc<Index>, queries: &[Query]) -> Option<GpuMemory> {
        self.gpu_memory.map(|bytes| GpuMemory::new(bytes, index, queries))
    }
}

/// How queries are spread over equal machines.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct RoutingArgument {
    /// Choice of the machine of a shard for a query: `least-outstanding`, the one with the fewest unanswered queries, which an
    /// ideal balancer knows without delay; `round-robin`; `random`
    #[arg(long, value_name = "HOW", value_parser = choice::<Routing>(), default_value = Routing::default().name(), hide_possible_values = true)]
    pub(crate) routing: Routing,
}

/// A cluster of the machine that is simulated.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClusterArguments {
    /// Shards, each on its own machine with the costs of the workload; a query waits for the slowest shard
    #[arg(long, value_name = "N", default_value_t = 1)]
    shards: usize,
    /// Machines per shard; a query goes to one of them
    #[arg(long, value_name = "N", default_value_t = 1)]
    replicas: usize,
    #[command(flatten)]
    routing: RoutingArgument,
}

impl ClusterArguments {
    /// The cluster, checked; it may be a single machine.
    pub(crate) fn shape(&self, settings: &Settings) -> Result<ClusterShape, Failure> {
        let (routing, costs) = (self.routing.routing, settings.shard_costs);
        let shape = ClusterShape { shards: self.shards, replicas: self.replicas, routing, costs };
        check_nodes(self.shards, self.replicas)?;
        Ok(shape)
    }
}

/// Refuses more machines than [`MAX_PROCESSORS`], and none.
pub(crate) fn check_nodes(shards: usize, replicas: usize) -> Result<(), Failure> {
    for (option, count) in [("--shards", shards), ("--replicas", replicas)] {
        if count == 0 {
            return Err(Failure::input(format!("{option} is 0, expected at least 1")));
        }
    }
    match shards.checked_mul(replicas) {
        Some(nodes) if nodes <= MAX_PROCESSORS => Ok(()),
        _ => Err(Failure::input(format!(
            "--shards {shards} with --replicas {replicas} is too much: expected at most {MAX_PROCESSORS} machines in all"
        ))),
    }
}

/// `4 shards of 3 replicas (12 machines)`.
pub(crate) fn cluster_in_words(shape: &ClusterShape) -> String {
    let costs = match shape.costs {
        ShardCosts::Alike(spread) => format!("costs alike to a factor of e^{spread}"),
        ShardCosts::Independent => String::from("costs independent"),
    };
    let ClusterShape { shards, replicas, routing, .. } = shape;
    format!(
        "a cluster of {} such machines: {shards} x {replicas}, {}, {costs}; the broker costs nothing",
        shape.nodes(),
        routing.name()
    )
}

/// The lanes that fail.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FaultArguments {
    /// Fault plan: a CSV file with the columns `at_ms,processor,fault,lasts_ms`. A fault is `error`, `panic`, `hang`, `stall`
    /// or `memory`; the last two have a duration. Lanes are numbered from 0, CPU workers first
    #[arg(long, value_name = "FILE")]
    pub(crate) faults: Option<PathBuf>,
}

impl FaultArguments {
    /// The plan for a machine of `lanes` lanes. Without a file no lane fails.
    pub(crate) fn plan(&self, settings: &Settings, lanes: usize) -> Result<FaultPlan, Failure> {
        let faults = self.faults.as_deref().map(|path| read_faults(path, lanes)).transpose()?;
        Ok(FaultPlan::new(faults.unwrap_or_default(), Nanos::from_ms(settings.watchdog_ms)))
    }
}
