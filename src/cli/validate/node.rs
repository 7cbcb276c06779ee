//! The node that is validated: its index made or opened, its queries profiled here, its models fitted.

use std::path::PathBuf;
use std::sync::Arc;

use super::tables::models;
use super::{Arguments, workers};
use crate::cli::Failure;
use crate::cli::defaults::{self, Bars, synthetic_index, warn_of_few_cores};
use crate::cost::{ProfileOptions, TrainOptions, train};
use crate::files::Provenance;
use crate::index::Index;
use crate::lab::{Estimates, GpuSource, Multicore, Node, Processors, Wanted, adopt_machine};
use crate::machine::{Class, Idle};
use crate::query::{Mode, Query};
use crate::report::number::counted;

/// A node at work, and what its files say of it.
pub(super) struct Validated {
    pub(super) node: Node,
    index: String,
    seed: u64,
    mode: Mode,
    k: usize,
    /// Index, mode and k, in words.
    what: String,
}

impl Validated {
    /// Makes or opens the index, profiles the queries on this machine, starts the workers, prints how wrong models are.
    pub(super) fn start(arguments: &Arguments) -> Result<Self, Failure> {
        let (index, queries, index_name) = open(arguments)?;
        let (gpus, streams) = arguments.gpus.counts();
        let wanted = Wanted {
            algorithm: arguments.search.algorithm,
            cpus: workers(arguments)?,
            multicore: Multicore::Inter,
            gpu: arguments.gpu,
            gpus,
            streams,
        };
        let bars = Bars::default();
        let memory = arguments.gpu_memory.open(&index, &queries)?;
        let mut processors = Processors::open(wanted, &index, memory.as_ref(), &bars)?;
        arguments.gpu_memory.needs_gpu(processors.gpu_name().is_some())?;
        let options = ProfileOptions {
            modes: vec![arguments.search.mode],
            k: arguments.search.k,
            repeats: usize::from(arguments.repeats),
            seed: arguments.seed,
            ..ProfileOptions::default()
        };
        let mut workload = processors.profile(&queries, &index, &options, &bars)?;
        workload.provenance = workload.provenance.with_command_and_machine();
        let kept = arguments.out.join("here.workload.csv");
        workload.write(&kept)?;
        let mut node = Node::start(processors, "here.workload.csv", workload, queries, &index, &Estimates::default())?;
        node.set_idle(Idle::default());
        match arguments.machine.read(true)? {
            Some((name, file)) => {
                outln!("What serving costs beyond what queries take alone: {name}.");
                adopt_machine(&mut node, &file, &bars)?;
                node.workload().write(&kept)?;
            }
            None => outln!("No machine file (`tandem profile --machine`): predictions reckon with backlogs."),
        }
        if let GpuSource::Replay(source) = node.gpu() {
            outln!("No GPU here: the GPU's lane, whose rows say `replay`, REPLAYS\n  {source}.");
        }
        warn_of_few_cores(&node);
        let options = TrainOptions::default();
        let fitted = train(node.workload(), &options)?;
        fitted.write(&arguments.out.join("model.json"))?;
        outln!("\n{}", models(&fitted, node.workload(), options.folds));
        let what = format!("{index_name}, mode {}, top {}", arguments.search.mode, arguments.search.k);
        let index = format!("{:016x} ({index_name})", index.fingerprint());
        Ok(Self { node, index, seed: arguments.seed, mode: arguments.search.mode, k: arguments.search.k, what })
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
        provenance.with("index", &self.index).with("gpu", gpu)
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

/// The index, its queries, and what to call it.
fn open(arguments: &Arguments) -> Result<(Arc<Index>, Vec<Query>, String), Failure> {
    let (index, log, name): (_, PathBuf, _) = match (&arguments.index, &arguments.queries) {
        (Some(index), Some(queries)) => (Arc::new(Index::open(index)?), queries.clone(), index.display().to_string()),
        _ => {
            let (index, queries) = synthetic_index(&arguments.out.join("index"), arguments.docs, arguments.seed)?;
            (index, queries, format!("synthetic, {} documents", arguments.docs))
        }
    };
    let mut queries = defaults::read_queries(&log, &index)?;
    queries.truncate(arguments.limit as usize);
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
