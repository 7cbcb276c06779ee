//! `tandem index profile`: what indexing takes, job by job, for `tandem index simulate`.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::build::TextArguments;
use crate::build::Indexer;
use crate::cli::Failure;
use crate::cli::output::{result, result_file};
use crate::corpus::Collection;
use crate::files::{Provenance, check_writable};
use crate::gpu::{GpuError, list_gpus};
use crate::papers::trie::{TrieIndexer, TrieOptions, TrieReport, parse_in_company, trace_of};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    text: TextArguments,
    /// File of the jobs, such as x.index.csv
    #[arg(short, long, value_name = "FILE")]
    out: PathBuf,
    /// Text of a run; 1 GiB at most
    #[arg(long, value_name = "BYTES", value_parser = super::parameters::bytes, default_value = "64MiB")]
    run: u64,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    check_writable(&arguments.out)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let parsed = parse_in_company(cores, |parsers| parse(arguments, parsers))?;
    let on_cpu = measure(arguments, 1, 0)?;
    let on_gpu = match list_gpus() {
        Ok(_) => Some(measure(arguments, 0, 1)?),
        Err(GpuError::NoGpu(reason)) => {
            errln!("no GPU to measure on: {reason}");
            None
        }
        Err(e) => return Err(e.into()),
    };
    if let Some(reason) = on_gpu.as_ref().and_then(|report| report.lost.first()) {
        return Err(Failure::failed(reason.clone()));
    }
    let trace = trace_of(&parsed, &on_cpu, on_gpu.as_ref());
    trace.write(&arguments.out, &Provenance::new().with_command_and_machine())?;
    outln!("runs       {:>15}", trace.runs.len());
    outln!("jobs a run {:>15}", trace.num_groups());
    outln!("GPU        {:>15}", if on_gpu.is_some() { "measured" } else { "none" });
    outln!("jobs       {}", arguments.out.display());
    result_file("jobs", &arguments.out);
    result(
        "indexing",
        json!({"runs": trace.runs.len(), "groups": trace.num_groups(), "has_gpu_times": on_gpu.is_some()}),
    );
    Ok(())
}

/// Indexes the text by the trie, with one parser, and throws the lists away.
fn measure(arguments: &Arguments, cpu_indexers: usize, gpus: usize) -> Result<TrieReport, Failure> {
    let options = arguments.text.checked(None, None)?;
    let trie = TrieOptions { parsers: 1, cpu_indexers, gpus, buffer_bytes: Some(arguments.run), keeps_work: true };
    let mut trie = TrieIndexer::new(trie)?;
    let collection = Collection::open_all(arguments.text.inputs.clone(), 1)?;
    let folder = arguments.out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let dir = tempfile::tempdir_in(folder.unwrap_or(Path::new(".")))?;
    trie.invert(collection, dir.path(), &options, &|_| ())?;
    Ok(trie.report().clone())
}

/// Parses the text by so many threads, and throws away what was parsed.
fn parse(arguments: &Arguments, parsers: usize) -> Result<TrieReport, Failure> {
    let options = arguments.text.checked(None, None)?;
    let trie = TrieOptions { parsers, cpu_indexers: 1, gpus: 0, buffer_bytes: Some(arguments.run), keeps_work: false };
    let collection = Collection::open_all(arguments.text.inputs.clone(), 1)?;
    Ok(TrieIndexer::new(trie)?.parse_alone(collection, &options, &|_| ())?)
}
