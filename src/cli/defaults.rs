//! What commands work on where nothing is named: a synthetic index and its queries.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::Failure;
use crate::build::synth::{SynthOptions, build_synthetic};
use crate::corpus::Tokenizer;
use crate::exec::ExecError;
use crate::exec::gpu::GpuExecutor;
use crate::index::{Bm25, Index};
use crate::query::{Query, prepare_queries};
use crate::report::number::counted;

/// Documents of the default index: queries cost hundreds of microseconds, and it is made in seconds.
pub(super) const DEFAULT_DOCS: u32 = 1_000_000;
/// Queries drawn with a synthetic index.
const QUERIES: usize = 1000;
/// Where the default index is kept.
const DEFAULT_FOLDER: &str = "out/validate/index";

/// The default synthetic index and the path of its queries, made on first use.
pub(super) fn default_index() -> Result<(Arc<Index>, PathBuf), Failure> {
    synthetic_index(Path::new(DEFAULT_FOLDER), DEFAULT_DOCS, 1)
}

/// The synthetic index of `docs` documents in `folder`, and the path of its queries; made if it isn't there yet.
pub(super) fn synthetic_index(folder: &Path, docs: u32, seed: u64) -> Result<(Arc<Index>, PathBuf), Failure> {
    // The folder's name says what is in it, so that another size or seed is another folder.
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

/// The queries of a log, cut into terms as the index was; says on standard error what was dropped.
pub(super) fn read_queries(path: &Path, index: &Index) -> Result<Vec<Query>, Failure> {
    let tokenizer = Tokenizer::from_name(index.tokenizer_name()).map_err(Failure::input)?;
    let log = prepare_queries(path, index, |text| tokenizer.terms(text))?;
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

/// A progress bar on standard error; nothing where that is no terminal.
pub(super) fn progress(what: &'static str, length: u64) -> ProgressBar {
    let bar = ProgressBar::new(length).with_message(what);
    // The template is ours and fixed: if it did not parse, the plain bar would do.
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// A GPU executor; the way of the index to the device is shown on standard error, where that is a terminal.
///
/// # Errors
/// As [`GpuExecutor::new`].
pub(super) fn gpu_executor(index: &Arc<Index>, bm25: Bm25) -> Result<GpuExecutor, ExecError> {
    let bar = progress("index to the GPU, MiB", 0);
    let gpu = GpuExecutor::with_progress(index, bm25, &|copied_bytes, all_bytes| {
        bar.set_length(all_bytes >> 20);
        bar.set_position(copied_bytes >> 20);
    });
    bar.finish_and_clear();
    gpu
}
