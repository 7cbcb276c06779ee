//! The node that is validated: its index made or opened, its queries profiled here, its models fitted.

use std::path::PathBuf;
use std::sync::Arc;

use super::tables::models;
use super::{Arguments, workers};
use crate::Failure;
use crate::defaults::{self, Bars, synthetic_index, warn_of_few_cores};
use crate::options::SearchArguments;
use tandem_core::base::machine::{Class, Idle};
use tandem_core::cost::{ProfileOptions, TrainOptions, Workload, train};
use tandem_core::files::Provenance;
use tandem_core::index::Index;
use tandem_core::lab::{Estimates, GpuSource, Multicore, Node, Processors, Wanted, adopt_machine, workload_of_index};
use tandem_core::query::{Mode, Query};
use tandem_report::number::counted;

/// A node at work, and what its files say of it.
pub(super) struct Validated {
    pub(super) node: Node,
    index: String,
    seed: u64,
    mode: Mode,
    k: usize,
    /// Index, mode and k, in words.
    what: String,
    /// The budget of GPU memory.
    memory: Option<String>,
}

impl Validated {
    /// Makes or opens the index, measures the queries on this machine or reads what was measured, starts the workers, prints how wrong
    /// models are.
    pub(super) fn start(arguments: &Arguments) -> Result<Self, Failure> {
        let (index, queries, index_name) = open(arguments)?;
        let bars = Bars::default();
        let memory = arguments.gpu_memory.open(&arguments.settings, &index, &queries)?;
        let mut processors = Processors::open(wanted(arguments)?, &index, memory.as_ref(), &bars)?;
        let (name, workload) = costs(arguments, &mut processors, &queries, &index)?;
        let node = at_work(arguments, processors, &name, workload, (queries, &index))?;
        if let GpuSource::Replay(source) = node.gpu() {
            outln!("No GPU here: the GPU's lane, whose rows say `replay`, REPLAYS\n  {source}.");
        }
        warn_of_few_cores(&node);
        let options = TrainOptions::default();
        let fitted = train(node.workload(), &options)?;
        fitted.write(&arguments.out.join("model.json"))?;
        outln!("\n{}", models(&fitted, node.workload(), options.folds));
        let SearchArguments { mode, k, .. } = arguments.search;
        let what = format!("{index_name}, mode {mode}, top {k}");
        let index = format!("{:016x} ({index_name})", index.fingerprint());
        let memory = arguments.gpu_memory.named(&arguments.settings);
        Ok(Self { node, index, seed: arguments.seed, mode, k, what, memory })
    }

    /// The lines at the head of every file.
    pub(super) fn provenance(&self) -> Provenance {
        let gpu = match self.node.gpu() {
            GpuSource::Real(name) => name.clone(),
            GpuSource::Replay(source) => format!("replay of {source}"),
            GpuSource::Declined | GpuSource::Missing => "none".to_owned(),
        };
        let provenance = Provenance::new().with_command_and_machine();
        let provenance = provenance.with("seed", self.seed).with("mode", self.mode).with("k", self.k);
        let provenance = provenance.with("index", &self.index).with("gpu", gpu);
        self.memory.iter().fold(provenance, |all, memory| all.with("gpu memory", memory))
    }

    pub(super) fn title(&self) -> String {
        let gpu = match self.node.gpu() {
            GpuSource::Real(name) => format!(" + {name}"),
            GpuSource::Replay(_) => " + replayed GPU".to_owned(),
            GpuSource::Declined | GpuSource::Missing => String::new(),
        };
        let workers = counted(self.node.machine().count(Class::CPU), "worker", "workers");
        format!("{}, {workers} on {}{gpu}", self.what, self.node.cpu_name())
    }

    pub(super) fn print_gpu_note(&self) {
        if let GpuSource::Replay(source) = self.node.gpu() {
            outln!(
                "The GPU was not here. Rows that say `replay` put in its place a lane that takes\n  {source};\n\
                 what ran on the CPU was executed and measured on this machine.\n"
            );
        }
    }
}

/// The processors that are asked for.
fn wanted(arguments: &Arguments) -> Result<Wanted, Failure> {
    let (gpus, streams) = arguments.gpus.counts();
    let (algorithm, multicore) = (arguments.search.algorithm, Multicore::Inter);
    Ok(Wanted { algorithm, cpus: workers(arguments)?, multicore, gpu: arguments.gpu, gpus, streams })
}

/// What the queries cost: as a file says, or measured now and kept. And where that is from.
fn costs(
    arguments: &Arguments,
    processors: &mut Processors,
    queries: &[Query],
    index: &Arc<Index>,
) -> Result<(String, Workload), Failure> {
    arguments.gpu_memory.needs_gpu(processors.gpu_name().is_some())?;
    if let Some(path) = &arguments.workload {
        return Ok(workload_of_index(path, arguments.search.mode, index)?);
    }
    let options = ProfileOptions {
        modes: vec![arguments.search.mode],
        k: arguments.search.k,
        repeats: usize::from(arguments.repeats),
        seed: arguments.seed,
        ..ProfileOptions::default()
    };
    let mut workload = processors.profile(queries, index, &options, &Bars::default())?;
    workload.provenance = workload.provenance.with_command_and_machine();
    workload.write(&kept(arguments))?;
    Ok((String::from(KEPT), workload))
}

/// Where costs are kept that were measured now.
const KEPT: &str = "here.workload.csv";

fn kept(arguments: &Arguments) -> PathBuf {
    arguments.out.join(KEPT)
}

/// Starts the workers, with what is known of the machine.
fn at_work(
    arguments: &Arguments,
    processors: Processors,
    name: &str,
    workload: Workload,
    (queries, index): (Vec<Query>, &Arc<Index>),
) -> Result<Node, Failure> {
    let mut node = Node::start(processors, name, workload, queries, index, &Estimates::default())?;
    node.set_idle(Idle::default());
    match arguments.machine.read(true)? {
        Some((name, file)) => {
            outln!("What serving costs beyond what queries take alone: {name}.");
            adopt_machine(&mut node, &file, &Bars::default())?;
            if arguments.workload.is_none() {
                node.workload().write(&kept(arguments))?;
            }
        }
        None => outln!("No machine file (`tandem profile --machine`): predictions reckon with backlogs."),
    }
    Ok(node)
}

/// The index, its queries, and what to call it.
fn open(arguments: &Arguments) -> Result<(Arc<Index>, Vec<Query>, String), Failure> {
    let (index, log, name): (_, PathBuf, _) = match (&arguments.index, &arguments.queries) {
        (Some(index), Some(queries)) => (Arc::new(Index::open(index)?), queries.clone(), index.display().to_string()),
        _ => {
            let (index, queries) = synthetic_index(&arguments.out.join("index"), arguments.docs, arguments.seed)?;
            (index, queries, format!("synthetic, {} documents", arguments.docs))
        }
    };
    let mut queries = defaults::read_queries(&log, &arguments.form.options(), &index)?;
    if arguments.workload.is_none() {
        queries.truncate(arguments.limit as usize);
    }
    outln!(
        "Index: {name}, {} terms, {} postings. {} queries, mode {}, top {}.",
        index.num_terms(),
        index.num_postings(),
        queries.len(),
        arguments.search.mode,
        arguments.search.k
    );
    Ok((index, queries, name))
}
