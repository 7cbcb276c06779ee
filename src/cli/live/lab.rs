//! What a live run needs before it starts: index, queries, their costs, and the lanes.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Arguments;
use crate::cli::options::GpuChoice;
use crate::cli::output::say;
use crate::cli::{Failure, defaults};
use crate::cost::{MachineModel, ProfileOptions, Workload, profile, replay_gpu_times};
use crate::exec::Executor;
use crate::exec::cpu::CpuExecutor;
use crate::ids::QueryId;
use crate::index::Index;
use crate::live::{Fleet, GpuLane, LaneWork, LiveQuery, QuerySet};
use crate::machine::{Class, Machine};
use crate::query::{Features, Query, Trace};

/// So many queries are measured where no workload is named: a few seconds' work.
const QUICK_QUERIES: usize = 200;
/// And so often each.
const QUICK_REPEATS: usize = 3;

/// A replayed GPU lane is as deep as a real one.
const RECORDED_DEPTH: u32 = 2;

/// Everything that runs share.
pub(super) struct Lab {
    pub(super) fleet: Fleet,
    /// The rows in the mode asked for, with the GPU's times where a GPU or its replay takes part.
    pub(super) workload: Workload,
    pub(super) workload_name: String,
    /// What stands in the GPU's place, in words.
    pub(super) gpu_words: String,
}

impl Lab {
    /// Opens, measures and spawns what the arguments ask for, and says what it is.
    pub(super) fn set_up(arguments: &Arguments) -> Result<Self, Failure> {
        let (index, log) = arguments.log_of_queries.open("what to ask of this index")?;
        let queries = defaults::read_queries(&log, &index)?;
        let cpu = CpuExecutor::new(Arc::clone(&index), index.built_with()).with_algorithm(arguments.algorithm);
        let mut gpu = arguments.gpu.executor(&index)?;
        // The driver has the first core, the GPU's lane the second.
        let first_core = 1 + usize::from(gpu.is_some());
        let mut cpus = arguments.multicore.lanes(&cpu, &index, arguments.cpus, first_core)?;
        let (workload_name, mut workload) = match &arguments.workload {
            Some(path) => (path.display().to_string(), read_workload(arguments, path.clone(), &index)?),
            None => {
                // A lane of several cores is measured with all of them; without a lane, costs are those of a core.
                let first = if cpus.is_empty() { Box::new(cpu.clone_for_worker()) } else { cpus.remove(0) };
                let mut executors: Vec<Box<dyn Executor>> = vec![first];
                executors.extend(gpu.take());
                let workload = quick_profile(arguments, &mut executors, &queries, &index)?;
                gpu = executors.pop_if(|executor| executor.class() == Class::GPU);
                if arguments.cpus > 0 {
                    cpus.append(&mut executors);
                }
                (String::from("measured now"), workload)
            }
        };
        let (lane, gpu_words) = match &gpu {
            Some(gpu) => (GpuLane::Real, gpu.device()),
            None => replay(arguments, &workload_name, &mut workload)?,
        };
        if arguments.cpus == 0 && lane != GpuLane::Real {
            return Err(Failure::input("nothing real to drive: this machine has no GPU, and --cpus is 0"));
        }
        let set = query_set(&workload, &workload_name, queries, &index)?;
        let gpus = usize::from(lane == GpuLane::Real);
        let (machine, work) = lanes(cpus, lane, gpu);
        let model = MachineModel { batches: workload.batches.batch_costs(), ..machine.into() };
        let fleet = Fleet::spawn(model, work, Arc::new(set), workload.costs())?;
        if !fleet.has_cores_enough() {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            errln!(
                "warning: {} CPU workers, {} GPU lanes and the driver share {cores} cores: delays come out too long \
                 (--cpus {} leaves each a core)",
                arguments.cpus,
                gpus,
                cores.saturating_sub(1 + gpus),
            );
        }
        say(&format!(
            "{} queries, mode {}; costs: {workload_name}; CPU workers: {}; GPU: {gpu_words}\n",
            workload.rows.len(),
            arguments.mode,
            arguments.cpus,
        ))?;
        Ok(Self { fleet, workload, workload_name, gpu_words })
    }
}

/// The machine's processors with what does their work: CPU workers, then the GPU's lane, which prepares a batch while
/// another runs.
pub(in crate::cli) fn lanes(
    cpus: Vec<Box<dyn Executor>>,
    lane: GpuLane,
    gpu: Option<Box<dyn Executor>>,
) -> (Machine, Vec<LaneWork>) {
    let machine = Machine::default().with_cpus(cpus.len());
    let mut work: Vec<LaneWork> = cpus.into_iter().map(LaneWork::Executor).collect();
    match (lane, gpu) {
        (GpuLane::Real, Some(mut gpu)) => {
            let depth = gpu.pipeline().map_or(1, |pipeline| pipeline.depth());
            work.push(LaneWork::Executor(gpu));
            (machine.with_gpus(1, 1, depth as u32), work)
        }
        (GpuLane::Replay, _) => {
            work.push(LaneWork::Recorded);
            (machine.with_gpus(1, 1, RECORDED_DEPTH), work)
        }
        _ => (machine, work),
    }
}

/// Recorded times in the GPU's place, unless they are declined or there are none and nobody insists.
fn replay(arguments: &Arguments, name: &str, workload: &mut Workload) -> Result<(GpuLane, String), Failure> {
    if arguments.gpu == GpuChoice::None {
        return Ok((GpuLane::None, String::from("none")));
    }
    if workload.rows.iter().all(|row| row.measured[Class::GPU].is_some()) {
        let device = workload.provenance.get("gpu").unwrap_or("a GPU");
        return Ok((GpuLane::Replay, format!("none used; its lane replays the times recorded on {device} in {name}")));
    }
    match replay_gpu_times(workload) {
        Ok(recorded) => Ok((GpuLane::Replay, format!("none used; its lane replays {recorded}"))),
        Err(e) if arguments.gpu == GpuChoice::Replay => Err(e.into()),
        Err(_) => Ok((GpuLane::None, String::from("none here, and no recorded times to replay in its place"))),
    }
}

/// The rows of the mode asked for, if they were measured on this index.
fn read_workload(arguments: &Arguments, path: PathBuf, index: &Index) -> Result<Workload, Failure> {
    let workload = Workload::read(&path)?;
    let here = format!("{:016x}", index.fingerprint());
    if let Some(there) = workload.provenance.get("index").filter(|&there| there != here) {
        let fault = format!("{}: measured on index {there}, this one is {here}", path.display());
        return Err(Failure::input(format!("{fault} (profile it: `tandem profile`)")));
    }
    let rows = workload.only(arguments.mode);
    if rows.rows.is_empty() {
        return Err(Failure::input(format!("{}: no queries in mode {}", path.display(), arguments.mode)));
    }
    Ok(rows)
}

fn quick_profile(
    arguments: &Arguments,
    executors: &mut [Box<dyn Executor>],
    queries: &[Query],
    index: &Index,
) -> Result<Workload, Failure> {
    let queries = &queries[..queries.len().min(QUICK_QUERIES)];
    if let Some(path) = &arguments.arrivals.trace {
        // The workload's queries will be numbered so: what it won't have is known before they are measured.
        let count = queries.len();
        let unknown = |query: QueryId| {
            let message = || format!("`query_id` is {query}, and without --workload there are 0 to {} only", count - 1);
            (query.index() >= count).then(message)
        };
        Trace::read_checked(path, unknown)?;
    }
    let options = ProfileOptions { modes: vec![arguments.mode], repeats: QUICK_REPEATS, ..ProfileOptions::default() };
    errln!("no --workload: measuring {} queries {QUICK_REPEATS} times", queries.len());
    let bar = defaults::progress("profile", options.searches(executors.len(), queries.len()));
    let workload = profile(executors, queries, index, &options, &mut |done| bar.set_position(done));
    bar.finish_and_clear();
    Ok(workload?)
}

/// The workload's queries as workers run them.
fn query_set(workload: &Workload, name: &str, queries: Vec<Query>, index: &Index) -> Result<QuerySet, Failure> {
    let k = workload.provenance.get("k").and_then(|k| k.parse().ok()).unwrap_or(ProfileOptions::default().k);
    let by_log_id: HashMap<u32, Query> = queries.into_iter().map(|query| (query.id.0, query)).collect();
    let live = workload.rows.iter().map(|row| {
        let query =
            by_log_id.get(&row.log_id).filter(|query| Features::of(query, index).postings == row.features.postings);
        let query = query.cloned().ok_or_else(|| {
            let query = format!("query {} (number {} of its log)", row.query_id, row.log_id);
            Failure::input(format!(
                "{name}: {query} is not in this query log; name the log that was profiled: --queries"
            ))
        })?;
        Ok(LiveQuery { id: row.query_id, query, mode: row.mode, results: Some(row.results) })
    });
    Ok(QuerySet::new(k, live.collect::<Result<Vec<_>, Failure>>()?))
}
