//! `--log` and `--perfetto`: the logs of runs.

use std::path::{Path, PathBuf};

use tandem_model::files::{Provenance, check_writable};
use tandem_model::sched::RunLog;

use crate::failure::Failure;
use tandem_report::number;
use tandem_report::perfetto::PerfettoTrace;

/// The logs to write.
#[derive(Debug, clap::Args)]
pub(super) struct LogArguments {
    /// Write the log of every run, one line per query: log.csv, or the folder `log` for several runs
    #[arg(long)]
    pub(super) log: bool,
    /// Trace file of all runs for <https://ui.perfetto.dev>: lanes, batches, queues
    #[arg(long, value_name = "FILE")]
    pub(super) perfetto: Option<PathBuf>,
}

/// The largest number of log rows, limited by disk space.
const MAX_LOG_ROWS: usize = 50_000_000;
/// The largest numbers of log rows of live runs in memory: of all runs together, and of one run.
const SAMPLED_LOG_ROWS: usize = MAX_LOG_ROWS;
const SAMPLED_RUN_ROWS: usize = 2_000_000;
/// The largest number of queries in a trace, limited by its viewer.
const MAX_TRACE_ROWS: usize = 2_000_000;

impl LogArguments {
    /// Whether any log is wanted.
    pub(super) fn any(&self) -> bool {
        self.log || self.perfetto.is_some()
    }

    /// Number of queries whose log each of `runs` live runs keeps.
    pub(crate) fn rows_of_each(&self, runs: usize) -> usize {
        let most = if self.perfetto.is_some() { MAX_TRACE_ROWS } else { SAMPLED_LOG_ROWS };
        if self.any() { (most / runs.max(1)).min(SAMPLED_RUN_ROWS) } else { 0 }
    }

    /// Refuses logs of too many `rows`, and a trace file that can't be written, before any run.
    pub(crate) fn check(&self, rows: usize) -> Result<(), Failure> {
        let limits = [("--log", self.log, MAX_LOG_ROWS), ("--perfetto", self.perfetto.is_some(), MAX_TRACE_ROWS)];
        if let Some((option, _, most)) = limits.into_iter().find(|&(_, is_wanted, most)| is_wanted && rows > most) {
            let what = format!("{option} would write {rows} rows, at most {most}: name fewer rates or policies");
            return Err(Failure::input(what));
        }
        if let Some(path) = self.perfetto.as_deref().filter(|path| path.extension().is_some_and(|end| end == "csv")) {
            let what = format!("--perfetto: {} is JSON, expected a name that does not end in .csv", path.display());
            return Err(Failure::input(what));
        }
        Ok(self.perfetto.as_deref().map_or(Ok(()), check_writable)?)
    }
}

/// The kept logs of runs.
#[derive(Debug)]
pub(super) struct KeptRuns<'a> {
    arguments: &'a LogArguments,
    out: &'a Path,
    is_single: bool,
    /// Whether a log was written.
    has_log: bool,
    trace: PerfettoTrace,
}

impl<'a> KeptRuns<'a> {
    /// An empty list, for one run or several, in the folder `out`.
    pub(super) fn new(arguments: &'a LogArguments, out: &'a Path, is_single: bool) -> Self {
        Self { arguments, out, is_single, has_log: false, trace: PerfettoTrace::default() }
    }

    /// Keeps the log of a run; `write` writes it.
    pub(super) fn keep(
        &mut self,
        (policy, rate_qps, seed): (&str, f64, u64),
        provenance: &Provenance,
        log: &RunLog,
        write: impl FnOnce(&Path, &Provenance) -> std::io::Result<()>,
    ) -> Result<(), Failure> {
        let rate = number::text(rate_qps, 9);
        if self.arguments.log {
            let of_run = provenance.clone().with("policy", policy).with("rate_qps", &rate).with("seed", seed);
            let name = format!("{policy}-{rate}qps-seed{seed}.csv");
            let path = if self.is_single { self.out.join("log.csv") } else { self.out.join("log").join(name) };
            write(&path, &of_run)?;
            self.has_log = true;
        }
        if self.arguments.perfetto.is_some() {
            self.trace.add(&format!("{policy} at {rate} q/s, seed {seed}"), log);
        }
        Ok(())
    }

    /// Writes the trace, and returns the written files and the folder of several logs.
    pub(super) fn finish(self, provenance: &Provenance) -> Result<Vec<PathBuf>, Failure> {
        let mut written = Vec::new();
        if self.has_log {
            written.push(self.out.join(if self.is_single { "log.csv" } else { "log" }));
        }
        if let Some(path) = &self.arguments.perfetto {
            self.trace.write(path, provenance)?;
            written.push(path.clone());
        }
        Ok(written)
    }
}
