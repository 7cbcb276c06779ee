//! `tandem index simulate`: measured jobs of indexing, played on any number of parsers and indexers, by any policy.

use std::path::PathBuf;

use serde_json::json;

use crate::cli::Failure;
use crate::cli::output::{result, say};
use crate::lab::indexing::{IndexMachine, IndexPolicy, IndexTrace, lp_bound, simulate_indexing};
use crate::report::table::Table;

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Jobs, as `tandem index profile` measures them
    jobs: PathBuf,
    /// Cores that parse or index
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=1024))]
    cpus: u16,
    /// GPUs that index beside them
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(..=64))]
    gpus: u16,
    /// Cores of these that parse; each number that leaves one to index unless given
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u16).range(1..=1024))]
    parsers: Option<u16>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let trace = IndexTrace::read(&arguments.jobs)?;
    let (cpus, gpus) = (usize::from(arguments.cpus), usize::from(arguments.gpus));
    if gpus > 0 && !trace.has_gpu_times() {
        let jobs = arguments.jobs.display();
        return Err(Failure::input(format!(
            "--gpus {gpus}: {jobs} has no times on a GPU (measure it where there is one)"
        )));
    }
    if trace.runs.iter().flat_map(|run| &run.jobs).any(|job| job.cpu.is_none()) {
        return Err(Failure::input(format!("{}: a job has no time on a CPU", arguments.jobs.display())));
    }
    let parsers: Vec<usize> = match arguments.parsers.map(usize::from) {
        Some(parsers) if parsers >= cpus => {
            return Err(Failure::input(format!("--parsers {parsers} of --cpus {cpus} leaves no core to index")));
        }
        Some(parsers) => vec![parsers],
        None => (1..cpus).collect(),
    };
    let mut table = Table::new(["parsers", "policy", "MB/s", "bound", "waits %", "moved MB"]);
    let mut rows = Vec::new();
    for parsers in parsers {
        let machine = IndexMachine::new(parsers, cpus - parsers, gpus);
        let bound = lp_bound(&trace, &machine).map_err(Failure::failed)? / 1e6;
        for policy in IndexPolicy::ALL {
            let outcome = simulate_indexing(&trace, &machine, Some(policy));
            let rate = outcome.bytes_per_s() / 1e6;
            let waiting = 100.0 * outcome.waiting.as_secs() / outcome.all.as_secs();
            let moved = outcome.moved_bytes as f64 / 1e6;
            let shown = [rate, bound, waiting, moved].map(|value| format!("{value:.1}"));
            table.row([parsers.to_string(), policy.to_string()].into_iter().chain(shown));
            rows.push(json!({
                "parsers": parsers,
                "indexers": cpus - parsers,
                "gpus": gpus,
                "policy": policy.name(),
                "mb_per_s": rate,
                "bound_mb_per_s": bound,
                "waiting_percent": waiting,
                "moved_mb": moved,
            }));
        }
    }
    say(&format!("simulated, {} runs, {cpus} cores, {gpus} GPUs\n\n{table}", trace.runs.len()))?;
    result("indexing", rows);
    Ok(())
}
