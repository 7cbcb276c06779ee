//! Default inputs, a synthetic index and its queries, and progress bars.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use tandem_drive::lab::{self};
use tandem_engine::corpus::Tokenizer;
use tandem_engine::index::{Bm25, Index};
use tandem_engine::indexing::synth::{SynthOptions, build_synthetic};
use tandem_engine::query::{LogOptions, Query, prepare_queries};
use tandem_engine::search::ExecError;
use tandem_engine::search::gpu::{GpuExecutor, GpuMemory};
use tandem_model::base::ids::DeviceId;
use tandem_model::base::machine::Class;
use tandem_model::study::Progress;

use crate::failure::Failure;
use tandem_report::number::counted;

/// Number of documents of the default index: it is made in seconds, and queries take hundreds of microseconds.
pub(super) const DEFAULT_DOCS: u32 = 1_000_000;
/// Number of queries drawn with a synthetic index.
pub(super) const QUERIES: usize = 1000;
/// Folder of the default index.
const DEFAULT_FOLDER: &str = "out/validate/index";

/// The default synthetic index and the path of its queries, made on first use.
pub(super) fn default_index() -> Result<(Arc<Index>, PathBuf), Failure> {
    synthetic_index(Path::new(DEFAULT_FOLDER), DEFAULT_DOCS, 1)
}

/// The synthetic index of `docs` documents in `folder`, and the path of its queries. Makes a missing index.
pub(super) fn synthetic_index(folder: &Path, docs: u32, seed: u64) -> Result<(Arc<Index>, PathBuf), Failure> {
    // The name of the folder contains size and seed.
    let folder = folder.join(format!("synthetic-{docs}-{seed}"));
    let queries = folder.join("queries.tsv");
    if queries.exists()
        && let Ok(index) = Index::open(&folder)
    {
        return Ok((Arc::new(index), queries));
    }
    let mut options = SynthOptions::new(docs, seed);
    options.num_queries = QUERIES;
    let bar = progress("synthetic index", 0);
    let built = build_synthetic(&options, &folder, &|done, all| {
        bar.set_length(all);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    let report = built?;
    errln!(
        "made a synthetic index in {}: {} documents, {} postings, {:.1} s",
        folder.display(),
        report.num_docs,
        report.num_postings,
        report.seconds
    );
    Ok((Arc::new(Index::open(&folder)?), queries))
}

/// The queries of a log, tokenized like the index. Prints the recognised form and the dropped terms to standard error.
pub(super) fn read_queries(path: &Path, form: &LogOptions, index: &Index) -> Result<Vec<Query>, Failure> {
    let tokenizer = Tokenizer::from_name(index.tokenizer_name()).map_err(Failure::input)?;
    let log = prepare_queries(path, form, index, |text| tokenizer.terms(text))?;
    errln!("{}: {}", path.display(), log.found);
    if log.dropped_terms > 0 || log.empty_queries > 0 {
        errln!(
            "{}: {} dropped (not in the index), {} of {} skipped (no term left)",
            path.display(),
            counted(log.dropped_terms as usize, "term", "terms"),
            counted(log.empty_queries as usize, "query", "queries"),
            log.num_entries,
        );
    }
    Ok(log.queries)
}

/// A progress bar on standard error; hidden if that is no terminal.
pub(super) fn progress(what: &'static str, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length).with_message(what);
    // The template is fixed. If it did not parse, the plain bar would be used.
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Shows progress on standard error: bars on a terminal, else a line per step.
#[derive(Default)]
pub(super) struct Bars {
    bar: Mutex<Option<ProgressBar>>,
    /// Whether nothing is printed if standard error is no terminal.
    is_quiet: bool,
}

impl Progress for Bars {
    fn begin(&self, step: &'static str, pieces: u64) {
        let bar = progress(step, pieces);
        if bar.is_hidden() && !self.is_quiet {
            errln!("{step}");
        }
        self.put(Some(bar));
    }

    fn reach(&self, done: u64, of: u64) {
        if let Some(bar) = &*self.bar.lock().unwrap_or_else(PoisonError::into_inner) {
            bar.set_length(of);
            bar.set_position(done);
        }
    }

    fn doing(&self, what: &str) {
        let spinner = ProgressBar::new_spinner().with_message(what.to_owned());
        spinner.enable_steady_tick(Duration::from_millis(200));
        if spinner.is_hidden() {
            errln!("{what}");
        }
        self.put(Some(spinner));
    }

    fn lasts(&self, what: &str, time: Duration) {
        let bar = ProgressBar::new(time.as_secs()).with_message(what.to_owned());
        // Position and remaining time follow the clock.
        let left = move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
            // A failure to draw the bar does not end the work.
            let _ = write!(text, "{} s left", time.saturating_sub(state.elapsed()).as_secs());
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}, {left}") {
            bar.set_style(style.with_key("left", left));
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        if bar.is_hidden() {
            errln!("{what}, {:.1} s", time.as_secs_f64());
        }
        self.put(Some(bar));
    }

    fn told(&self, what: &str) {
        self.put(None);
        errln!("{what}");
    }

    fn end(&self) {
        self.put(None);
    }
}

impl Bars {
    /// Bars without output if standard error is no terminal.
    pub(super) fn quiet() -> Self {
        Self { is_quiet: true, ..Self::default() }
    }

    /// Replaces the current bar.
    fn put(&self, bar: Option<ProgressBar>) {
        let before = std::mem::replace(&mut *self.bar.lock().unwrap_or_else(PoisonError::into_inner), bar);
        if let Some(before) = before {
            before.finish_and_clear();
        }
    }
}

/// A GPU executor, with the progress of the upload on standard error. Fails as [`GpuExecutor::new`].
pub(super) fn gpu_executor(
    index: &Arc<Index>,
    bm25: Bm25,
    memory: Option<&GpuMemory>,
) -> Result<GpuExecutor, ExecError> {
    lab::gpu_executor(DeviceId(0), index, bm25, memory, &Bars::default())
}

/// Warns if workers and driver share cores.
pub(super) fn warn_of_few_cores(node: &lab::Node) {
    if node.lane_pool().has_cores_enough() {
        return;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpus = node.machine().count(Class::CPU);
    let gpus = match node.gpu() {
        lab::GpuSource::Real(_) => node.machine().count(Class::GPU),
        _ => 0,
    };
    errln!(
        "warning: {cpus} CPU workers, {gpus} GPU lanes and the driver share {cores} cores: delays come out too long \
         (--cpus {} leaves each a core)",
        cores.saturating_sub(1 + gpus),
    );
}
