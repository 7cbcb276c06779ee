//! Options that several commands share, from text to what the library takes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Failure, defaults};
use crate::cost::{Workload, shipped};
use crate::exec::cpu::CpuExecutor;
use crate::exec::cpu::multicore::{
    Cores, DocumentPartitioned, FineGrained, PartitionedIndex, adaptive_lanes, inter_lanes,
};
use crate::exec::gpu::GpuExecutor;
use crate::exec::{ExecError, Executor};
use crate::files::InputError;
use crate::gpu::{GpuError, list_gpus};
use crate::index::Index;
use crate::machine::Machine;
use crate::query::Mode;
use crate::report::number;
use crate::sched::{PolicyKind, PolicyOptions};
use crate::time::Nanos;

/// A deadline of a day.
const MAX_DEADLINE_MS: f64 = 86_400_000.0;

/// What stands in the GPU's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum GpuChoice {
    /// The GPU if there is one, else `replay` where there are recorded times, else `none`
    Auto,
    /// The GPU; an error without one
    Real,
    /// A lane that takes the recorded time of each query
    Replay,
    /// No GPU lane
    None,
}

impl GpuChoice {
    /// Whether this machine has what is insisted on: asked before the work that would be lost without it.
    pub(super) fn check(self) -> Result<(), Failure> {
        if self == Self::Real {
            list_gpus()?;
        }
        Ok(())
    }

    /// The GPU, if it is asked for, or present and not declined.
    pub(super) fn executor(self, index: &Arc<Index>) -> Result<Option<Box<dyn Executor>>, Failure> {
        Ok(self.gpu(index)?.map(|gpu| Box::new(gpu) as Box<dyn Executor>))
    }

    /// As [`GpuChoice::executor`], where several streams are wanted.
    pub(super) fn gpu(self, index: &Arc<Index>) -> Result<Option<GpuExecutor>, Failure> {
        if matches!(self, Self::Replay | Self::None) {
            return Ok(None);
        }
        match defaults::gpu_executor(index, index.built_with()) {
            Ok(gpu) => Ok(Some(gpu)),
            // Unasked, a machine without a GPU is no error: what replaces it is said, and written into every row.
            Err(ExecError::Gpu(GpuError::NoGpu(_))) if self == Self::Auto => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

/// How CPU cores share queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Multicore {
    /// Each core answers whole queries: a processor each
    Inter,
    /// As `inter`, and cores without a query help with long ones
    Adaptive,
    /// All cores answer one query, each on its range of the documents: one processor
    DocpUi,
    /// As `docp-ui`, each core with an index of its range
    DocpPi,
    /// All cores answer one query, cut into small tasks: one processor
    Fgqp,
}

impl Multicore {
    /// The CPU lanes that `cores` cores make; the first runs on the machine's core `first_core`.
    pub(super) fn lanes(
        self,
        executor: &CpuExecutor,
        index: &Index,
        cores: usize,
        first_core: usize,
    ) -> Result<Vec<Box<dyn Executor>>, Failure> {
        let machine = Cores::of_this_machine();
        if cores == 0 {
            return Ok(Vec::new());
        }
        Ok(match self {
            Self::Inter => inter_lanes(executor, cores),
            Self::Adaptive => adaptive_lanes(executor, cores),
            Self::DocpUi => vec![Box::new(DocumentPartitioned::unified(executor, cores, &machine, first_core)?)],
            Self::DocpPi => {
                let parts = PartitionedIndex::build(index, cores, |_| true)?;
                vec![Box::new(DocumentPartitioned::physical(executor, &parts, &machine, first_core)?)]
            }
            // One query at a time: the pool holds no others, whatever its threshold.
            Self::Fgqp => vec![Box::new(FineGrained::new(executor, cores, 0, &machine, first_core)?)],
        })
    }
}

/// `--policy`: those named, each once, or all that the machine can run.
pub(super) fn policies(
    named: &[PolicyKind],
    options: &PolicyOptions,
    machine: &Machine,
) -> Result<Vec<PolicyKind>, Failure> {
    options.check()?;
    if named.is_empty() {
        return Ok(PolicyKind::ALL.into_iter().filter(|kind| kind.build(options, machine).is_ok()).collect());
    }
    let mut policies = Vec::new();
    for &kind in named {
        kind.build(options, machine)?;
        if !policies.contains(&kind) {
            policies.push(kind);
        }
    }
    Ok(policies)
}

/// `-k`, checked.
pub(super) fn check_k(k: usize) -> Result<(), Failure> {
    Ok(crate::exec::check_k(k)?)
}

/// `--deadline-ms`, checked.
pub(super) fn deadline(deadline_ms: f64) -> Result<Nanos, Failure> {
    let deadline = Nanos::from_ms(deadline_ms);
    // Below a nanosecond there is no deadline to speak of; NaN fails both comparisons.
    if !(deadline_ms <= MAX_DEADLINE_MS && deadline > Nanos::ZERO) {
        let expected = format!("expected above 0 and at most {MAX_DEADLINE_MS}");
        return Err(Failure::input(format!("--deadline-ms is {deadline_ms}, {expected}")));
    }
    Ok(deadline)
}

/// The index and the query log: those that the user names, or the defaults; `purpose` is what a log is missed for.
pub(super) fn index_and_log(
    index: Option<&Path>,
    queries: Option<&Path>,
    purpose: &str,
) -> Result<(Arc<Index>, PathBuf), Failure> {
    match (index, queries) {
        (Some(index), Some(queries)) => Ok((Arc::new(Index::open(index)?), queries.to_owned())),
        (Some(_), None) => Err(Failure::input(format!("{purpose}? name a query log: --queries FILE"))),
        (None, queries) => {
            let (index, its_queries) = defaults::default_index()?;
            Ok((index, queries.map_or(its_queries, Path::to_owned)))
        }
    }
}

/// A workload and its name: the file, or else the shipped one of that name; left out, the first of those that ship.
pub(super) fn workload(name: Option<&str>) -> Result<(String, Workload), Failure> {
    match name {
        None => shipped::default_workload().map(|(name, workload)| (name.to_owned(), workload)).map_err(Failure::from),
        Some(name) => Ok((name.to_owned(), workload_named(name)?)),
    }
}

/// As [`workload`], its rows of `mode` only: at least one.
pub(super) fn workload_in(name: Option<&str>, mode: Mode) -> Result<(String, Workload), Failure> {
    let (name, workload) = workload(name)?;
    let rows = workload.only(mode);
    if rows.rows.is_empty() {
        let has = |mode: &Mode| workload.rows.iter().any(|row| row.mode == *mode);
        let modes: Vec<&str> = Mode::ALL.into_iter().filter(has).map(Mode::name).collect();
        return Err(Failure::input(format!("{name}: no queries in mode {mode} (it has {})", modes.join(", "))));
    }
    Ok((name, rows))
}

fn workload_named(name: &str) -> Result<Workload, InputError> {
    let path = Path::new(name);
    if path.exists() {
        return Workload::read(path);
    }
    // A name with an extension is surely meant as a file: its absence is then what to report.
    shipped::workload(name).or_else(|e| if path.extension().is_some() { Workload::read(path) } else { Err(e) })
}

/// Where the log of a run goes: `log.csv` if it is the only run, else a file of its own in the folder `log`.
pub(super) fn log_path(out: &Path, is_single: bool, policy: PolicyKind, rate_qps: f64, seed: u64) -> PathBuf {
    if is_single {
        return out.join("log.csv");
    }
    let rate = number::text(rate_qps, 9);
    out.join("log").join(format!("{policy}-{rate}qps-seed{seed}.csv"))
}
