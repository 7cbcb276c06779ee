//! From text to an index: batches are inverted on all threads, then merged by ranges of the vocabulary.
//!
//! ```text
//! reader ──batches──▶ workers: parse, cut into terms, invert ──▶ runs, sorted by term, in memory
//!                                                                  │ all threads, a range of terms each
//!                                                  IndexWriter ◀── merge, pack
//! ```
//!
//! The text is never held as a whole: a batch a thread, and as many in wait. Runs are held, gap-coded: some three bytes
//! a posting. The index is the same for any number of threads.

mod merge;
mod run;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::BuildError;
use crate::corpus::{Batch, Collection, Tokenizer};
use crate::files::InputError;
use crate::index::{Bm25, IndexWriter};
use run::Run;

/// How to build an index from text.
#[derive(Debug)]
pub struct BuildOptions {
    /// How text is cut into terms.
    pub tokenizer: Tokenizer,
    /// BM25's parameters, for the stored impacts.
    pub bm25: Bm25,
    /// Threads; at least 1.
    pub threads: usize,
}

/// How far a build has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So many documents and bytes of text are cut into terms.
    Reading {
        /// Documents.
        documents: u64,
        /// Bytes of text, decompressed.
        bytes: u64,
    },
    /// So many of the vocabulary's ranges are packed and written.
    Writing {
        /// Ranges written.
        done: usize,
        /// All ranges.
        of: usize,
    },
}

/// What a build did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuildSummary {
    /// Documents indexed.
    pub documents: u64,
    /// Tokens in them.
    pub tokens: u64,
    /// Bytes of the collection, decompressed.
    pub bytes: u64,
    /// Binary files that were skipped.
    pub skipped_files: usize,
}

/// Indexes `collection` into folder `dir`. `progress` is told now and then, by any thread.
///
/// # Errors
/// If a document can't be read, an id occurs twice, there is nothing to index, or the index can't be written. An index
/// that was there stays then.
pub fn build_from_text(
    mut collection: Collection,
    dir: &Path,
    options: &BuildOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<BuildSummary, BuildError> {
    let mut runs = invert(&mut collection, options, progress)?;
    check_ids(&runs, collection.path())?;
    let doc_lengths: Vec<u32> = runs.iter().flat_map(|run| run.doc_lengths.iter().copied()).collect();
    let external_ids: Vec<String> = runs.iter_mut().flat_map(|run| std::mem::take(&mut run.ids)).collect();
    let summary = BuildSummary {
        documents: doc_lengths.len() as u64,
        tokens: doc_lengths.iter().map(|&length| u64::from(length)).sum(),
        bytes: runs.iter().map(|run| run.text_bytes).sum(),
        skipped_files: runs.iter().map(|run| run.skipped_files).sum(),
    };
    let mut writer = IndexWriter::create(dir, doc_lengths, external_ids, options.bm25, &options.tokenizer.name())?;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads)
        .build()
        .map_err(|e| BuildError::Threads(e.to_string()))?;
    pool.install(|| merge::merge(&runs, options.threads, &mut writer, progress))?;
    writer.finish()?;
    Ok(summary)
}

/// Reads and inverts all batches, on `options.threads` workers and a reader; runs are in order of the collection.
fn invert(
    collection: &mut Collection,
    options: &BuildOptions,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Run>, BuildError> {
    let results: Mutex<Vec<(usize, Result<Run, InputError>)>> = Mutex::new(Vec::new());
    let failed = AtomicBool::new(false);
    let (documents, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let (to_workers, from_reader) = crossbeam_channel::bounded::<(usize, Batch)>(options.threads);
    let keep = |number: usize, result: Result<Run, InputError>| {
        failed.fetch_or(result.is_err(), Ordering::Relaxed);
        results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, result));
    };
    let work = || {
        for (number, batch) in &from_reader {
            let run = Run::invert(&batch, &options.tokenizer);
            if let Ok(run) = &run {
                let documents = documents.fetch_add(run.ids.len() as u64, Ordering::Relaxed) + run.ids.len() as u64;
                let bytes = bytes.fetch_add(run.text_bytes, Ordering::Relaxed) + run.text_bytes;
                progress(Progress::Reading { documents, bytes });
            }
            keep(number, run);
        }
    };
    std::thread::scope(|scope| -> Result<(), BuildError> {
        // Batches are handed out in order: all that come before a bad one are under way when reading stops, so the
        // first error of the collection is always among the results.
        let to_workers = to_workers;
        for worker in 0..options.threads {
            std::thread::Builder::new()
                .name(format!("invert-{worker}"))
                .spawn_scoped(scope, work)
                .map_err(|e| BuildError::Threads(e.to_string()))?;
        }
        let mut number = 0;
        while !failed.load(Ordering::Relaxed) {
            match collection.next_batch() {
                Ok(Some(batch)) => {
                    if to_workers.send((number, batch)).is_err() {
                        break;
                    }
                    number += 1;
                }
                Ok(None) => break,
                Err(e) => {
                    keep(number, Err(e));
                    break;
                }
            }
        }
        Ok(())
    })?;
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, run)| run).collect::<Result<_, _>>()?)
}

/// Refuses an id that two documents have.
fn check_ids(runs: &[Run], path: &Path) -> Result<(), InputError> {
    let mut seen: HashMap<&str, Option<u64>> = HashMap::new();
    for run in runs {
        for (id, line) in run.ids.iter().zip(&run.lines) {
            if let Some(first) = seen.insert(id, *line) {
                let message = match first {
                    Some(first) => format!("id {id:?} is already that of line {first}, expected one document an id"),
                    None => format!("two documents have the id {id:?}"),
                };
                return Err(line.map_or_else(
                    || InputError::file(path, message.clone()),
                    |line| InputError::line(path, line, message.clone()),
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
