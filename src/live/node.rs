//! Prepares a live run: index, queries, their costs, and lanes.

use tandem_drive::lab::{GpuSource, Node, Processors, Wanted, workload_of_index};
use tandem_drive::profile::ProfileOptions;
use tandem_engine::query::Query;
use tandem_model::base::ids::QueryId;
use tandem_model::base::machine::Idle;
use tandem_model::study::Estimates;
use tandem_model::traffic::Trace;

use super::{Arguments, workers};
use crate::defaults::{self, Bars, warn_of_few_cores};
use crate::failure::Failure;
use crate::output::say;

/// Number of queries that are measured without a workload: a few seconds of work.
const QUICK_QUERIES: usize = 200;
/// Number of measurements of each of these queries.
const QUICK_REPEATS: usize = 3;

/// Opens, measures and starts the processors, and prints them. Returns the node and the name of its workload.
pub(super) fn start(arguments: &Arguments, estimates: &Estimates) -> Result<(Node, String), Failure> {
    let (index, log) = arguments.log_of_queries.open("what to ask of this index")?;
    let queries = defaults::read_queries(&log, &arguments.log_of_queries.form(), &index)?;
    let (gpus, streams) = arguments.gpus_and_streams();
    let cpus = workers(arguments)?;
    let wanted = Wanted {
        algorithm: arguments.settings.algorithm,
        cpus,
        multicore: arguments.settings.multicore,
        gpu: arguments.gpu,
        gpus,
        streams,
    };
    let bars = Bars::default();
    let memory = arguments.gpu_memory.open(&arguments.settings, &index, &queries)?;
    let mut processors = Processors::open(wanted, &index, memory.as_ref(), &bars)?;
    let has_gpu = processors.gpu_name().is_some();
    let lanes = processors.num_lanes();
    processors.plan_faults(arguments.faults.plan(&arguments.settings, lanes)?);
    arguments.gpu_memory.needs_gpu(has_gpu)?;
    let (name, workload) = match &arguments.workload {
        Some(path) => workload_of_index(path, arguments.mode, &index)?,
        None => {
            let some = &queries[..queries.len().min(QUICK_QUERIES)];
            check_trace(arguments, some)?;
            let options =
                ProfileOptions { modes: vec![arguments.mode], repeats: QUICK_REPEATS, ..ProfileOptions::default() };
            errln!("no --workload: measuring {} queries {QUICK_REPEATS} times", some.len());
            (String::from("measured now"), processors.profile(some, &index, &options, &bars)?)
        }
    };
    if arguments.settings.time_warp {
        processors.pretend();
    }
    let workload = arguments.settings.with_speed_up(workload);
    let mut node = Node::start(processors, &name, workload, queries, &index, estimates)?;
    // Some of the wanted lanes may be missing.
    arguments.faults.plan(&arguments.settings, node.machine().len())?;
    node.set_idle(Idle::default());
    if let Some((_, file)) = arguments.machine.read(true)? {
        node.set_machine(&file);
    }
    arguments.settings.idle.into_iter().for_each(|idle| node.set_idle(idle));
    warn_of_few_cores(&node);
    say(&format!(
        "{} queries, mode {}; costs: {name}; CPU workers: {}; GPU: {}\n",
        node.workload().rows.len(),
        arguments.mode,
        cpus,
        gpu_in_words(&node),
    ))?;
    Ok((node, name))
}

/// The processor of the GPU lanes, in words.
pub(super) fn gpu_in_words(node: &Node) -> String {
    match node.gpu() {
        GpuSource::Real(device) => device.clone(),
        GpuSource::Replay(source) => format!("REPLAY, no GPU is used: its lane takes {source}"),
        GpuSource::Declined => String::from("none"),
        GpuSource::Missing => String::from("none found (--gpu replay takes recorded times)"),
    }
}

/// Checks the queries of a trace against the workload that will be measured, whose queries are numbered from 0.
fn check_trace(arguments: &Arguments, queries: &[Query]) -> Result<(), Failure> {
    let Some(path) = &arguments.arrivals.trace else { return Ok(()) };
    let count = queries.len();
    let unknown = |query: QueryId| {
        let message = || format!("`query_id` is {query}, and without --workload there are 0 to {} only", count - 1);
        (query.index() >= count).then(message)
    };
    Trace::read_checked(path, unknown)?;
    Ok(())
}
