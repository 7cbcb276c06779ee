//! Starts this machine: opens its processors, and measures query costs or reads those of an earlier run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tandem_drive::lab::{
    GpuChoice, HostInfo, Multicore, Node, Processors, Wanted, asked, kept_workload, workload_of_index,
};
use tandem_drive::profile::ProfileOptions;
use tandem_engine::index::Index;
use tandem_engine::query::{LogOptions, Query};
use tandem_model::base::machine::Idle;
use tandem_model::cost::Workload;
use tandem_model::files::Provenance;
use tandem_model::study::Estimates;

use super::DrivenArguments;
use crate::defaults::{self, Bars, warn_of_few_cores};
use crate::failure::Failure;
use crate::options::machine::{mismatches, workers_here};

/// Number of measured runs per query.
const REPEATS: usize = 3;

/// The requested processors of this machine, or all.
pub(super) fn wanted(arguments: &DrivenArguments) -> Result<Wanted, Failure> {
    let host = HostInfo::detect();
    let gpus = match arguments.gpu {
        GpuChoice::None => 0,
        GpuChoice::Replay => arguments.gpus.map_or(1, usize::from),
        GpuChoice::Auto | GpuChoice::Real => arguments.gpus.map_or(host.gpus, usize::from),
    };
    let cpus = workers_here(arguments.cpus, arguments.settings.force, arguments.gpu, (gpus, 1))?;
    if cpus == 0 && (gpus == 0 || arguments.gpu == GpuChoice::Replay) {
        return Err(Failure::input("nothing to drive: --cpus is 0, and there is no GPU"));
    }
    let gpu = match arguments.gpu {
        GpuChoice::Replay => GpuChoice::Replay,
        _ if gpus == 0 => GpuChoice::None,
        _ => GpuChoice::Real,
    };
    let (algorithm, multicore) = (arguments.search.algorithm, Multicore::Inter);
    Ok(Wanted { algorithm, cpus, multicore, gpu, gpus, streams: 1 })
}

/// Opens the processors, measures missing costs, and starts the workers. Returns the node and the number of queries in the
/// log.
pub(super) fn start(
    arguments: &DrivenArguments,
    index: &Arc<Index>,
    (log, form): (&Path, &LogOptions),
    out: &Path,
) -> Result<(Node, usize), Failure> {
    let mut queries = defaults::read_queries(log, form, index)?;
    let log_queries = queries.len();
    let memory = arguments.gpu_memory.open(&arguments.settings, index, &queries)?;
    let mut processors = Processors::open(wanted(arguments)?, index, memory.as_ref(), &Bars::default())?;
    arguments.gpu_memory.needs_gpu(processors.gpu_name().is_some())?;
    let limit = arguments.limit as usize;
    let (name, workload, held_out) = match &arguments.workload {
        Some(path) => {
            let (name, workload) = workload_of_index(path, arguments.search.mode, index)?;
            (name, workload, 0)
        }
        None => {
            queries.truncate(2 * limit);
            let (name, workload) = costs(arguments, &mut processors, &queries, index, log, out)?;
            (name, workload, queries.len().saturating_sub(limit))
        }
    };
    let workload = arguments.settings.with_speed_up(workload);
    let mut node = Node::start(processors, &name, workload, queries, index, &Estimates::default())?;
    // Fewer queries are no sample.
    if held_out >= limit / 4 {
        node.hold_out(held_out);
    }
    node.set_idle(Idle::default());
    if let Some(file) = arguments.machine.read(true)? {
        errln!("machine profile: {}", file.0);
        mismatches([(&file, node.workload())]).iter().for_each(|warning| errln!("warning: {warning}"));
        node.set_machine(&file.1);
    }
    warn_of_few_cores(&node);
    Ok((node, log_queries))
}

/// The costs of these queries on this machine: kept by an earlier run, or measured now and kept.
fn costs(
    arguments: &DrivenArguments,
    processors: &mut Processors,
    queries: &[Query],
    index: &Arc<Index>,
    log: &Path,
    out: &Path,
) -> Result<(String, Workload), Failure> {
    let path: PathBuf = out.join("here.workload.csv");
    let name = path.display().to_string();
    // Costs of an earlier run are valid if all of these agree.
    let same = Provenance::new()
        .with("machine", tandem_model::files::this_machine())
        .with("index", format!("{:016x}", index.fingerprint()))
        .with("queries", asked(log, queries))
        .with("limit", arguments.limit)
        .with("modes", arguments.search.mode)
        .with("k", arguments.search.k)
        .with("algorithm", arguments.search.algorithm.name())
        .with("gpu", processors.gpu_name().unwrap_or_else(|| String::from("none")));
    // Queries cost more where rows are host-resident.
    let memory = || arguments.gpu_memory.named(&arguments.settings).unwrap_or_else(|| String::from("all of the index"));
    let same = if processors.gpu_name().is_some() { same.with("gpu memory", memory()) } else { same };
    if let Some(kept) = kept_workload(&path, &same) {
        errln!("costs: {name}, kept by an earlier run (delete it to measure again)");
        return Ok((name, kept));
    }
    errln!("measuring {} queries {REPEATS} times", queries.len());
    let options = ProfileOptions {
        modes: vec![arguments.search.mode],
        k: arguments.search.k,
        repeats: REPEATS,
        ..ProfileOptions::default()
    };
    let mut workload = processors.profile(queries, index, &options, &Bars::default())?;
    let measured = &workload.provenance;
    let mut provenance = Provenance::new().with_command_and_machine();
    for key in ["cpu", "docs", "repeats", "seed"] {
        provenance = measured.get(key).into_iter().fold(provenance, |all, value| all.with(key, value));
    }
    for key in ["index", "queries", "limit", "modes", "k", "algorithm", "gpu", "gpu memory"] {
        provenance = same.get(key).into_iter().fold(provenance, |all, value| all.with(key, value));
    }
    workload.provenance = provenance;
    workload.write(&path)?;
    Ok((name, workload))
}
