//! From text to an index file, by any indexer.
//!
//! ```text
//! Collection ──Indexer──▶ Inverted ──▶ documents checked ──▶ IndexWriter ◀── merged lists
//! ```

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::budget::give_back;
use super::documents::{self, OfInverted};
use super::error::BuildError;
use super::indexer::{BuildOptions, BuildSummary, Indexer};
use super::invert::HashIndexer;
use super::journal;
use super::progress::Progress;
use crate::corpus::Collection;
use crate::index::{IndexFolder, IndexWriter};

/// Indexes `collection` into folder `dir` with Tandem's own indexer. Any thread may call `progress`. Fails if a
/// document can't be read, an id occurs twice, there is nothing to index, another process writes into the folder, or
/// the index can't be written. A previous index stays then.
pub fn build_from_text(
    collection: Collection,
    dir: &Path,
    options: &BuildOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<BuildSummary, BuildError> {
    build_by(&mut HashIndexer, collection, dir, options, progress)
}

/// Indexes as [`build_from_text`] does, with an indexer of choice. The index is the same.
pub fn build_by(
    indexer: &mut dyn Indexer,
    collection: Collection,
    dir: &Path,
    options: &BuildOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<BuildSummary, BuildError> {
    let folder = IndexFolder::claim(dir)?;
    let budget = options.budget();
    if let Some(need) = budget.lacks_for_any() {
        progress(Progress::Exceeding(need));
    }
    let (paths, may_repeat) = (collection.paths().to_vec(), collection.may_repeat());
    let mut stage = Instant::now();
    let mut lap = || std::mem::replace(&mut stage, Instant::now()).elapsed();
    let built = indexer.invert(collection, dir, options, progress).and_then(|inverted| {
        let mut summary = inverted.summary();
        summary.stages.inverting = lap();
        if summary.runs_on_disk > 0 {
            give_back();
        }
        if let Some(need) = budget.lacks_for_documents(inverted.num_docs(), inverted.bytes()) {
            progress(Progress::Exceeding(need));
        }
        let digests_bytes = budget.digests_bytes(inverted.num_docs(), inverted.bytes());
        let doc_lengths = if may_repeat {
            documents::lengths(&*inverted)?
        } else {
            documents::check(&*inverted, &paths, digests_bytes)?
        };
        summary.documents = doc_lengths.len() as u64;
        summary.tokens = doc_lengths.iter().map(|&length| u64::from(length)).sum();
        let source = Box::new(OfInverted(Arc::clone(&inverted)));
        let mut writer = IndexWriter::create_in(folder, doc_lengths, source, options.bm25, &options.tokenizer.name())?;
        writer.limit_memory(budget.columns_bytes());
        summary.stages.checking = lap();
        inverted.merge_into(&mut writer, options, progress)?;
        summary.stages.merging = lap();
        writer.finish()?;
        summary.stages.finishing = lap();
        Ok(summary)
    });
    // Runs are of no use after an error in the text, but they are after a full disk, for example.
    if matches!(built, Ok(_) | Err(BuildError::Input(_))) {
        journal::remove(dir).map_err(|e| BuildError::of(dir, "cannot remove what the build left", &e))?;
    }
    built
}
