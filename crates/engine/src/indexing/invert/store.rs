//! The store of runs, in memory while they fit, then on disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::run::{Run, RunSource};
use super::runs::Runs;
use crate::indexing::budget::{Budget, give_back, give_back_large_blocks};
use crate::indexing::error::BuildError;
use crate::indexing::indexer::{BuildOptions, BuildSummary, Stages};
use crate::indexing::journal::Journal;

#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    budget: Budget,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    journal: Journal,
    runs: Vec<Run>,
    kept_bytes: u64,
    runs_on_disk: usize,
    /// Runs that this process has written to disk or is writing.
    spilled: u64,
    resumed_bytes: u64,
    num_docs: u64,
    /// Workers that have lists or may get some.
    workers: u64,
}

impl Store {
    /// Opens the store of a build of `key` into `dir`, with the runs of an interrupted build.
    pub(crate) fn open(dir: &Path, key: &str, options: &BuildOptions) -> Result<Self, BuildError> {
        let mut runs = Vec::new();
        let journal = Journal::open(dir, key, |path| {
            let run = Run::open(path);
            let is_whole = run.is_some();
            runs.extend(run);
            is_whole
        });
        let journal = journal.map_err(|e| at(dir, &e))?;
        let segments = || runs.iter().flat_map(Run::segments);
        let inside = Inside {
            journal,
            runs_on_disk: runs.len(),
            spilled: 0,
            kept_bytes: 0,
            resumed_bytes: segments().map(|segment| segment.text_bytes).sum(),
            num_docs: segments().map(|segment| u64::from(segment.num_docs)).sum(),
            workers: options.threads as u64,
            runs,
        };
        Ok(Self { folder: dir.to_owned(), budget: options.budget(), inside: Mutex::new(inside) })
    }

    /// The digest of each batch that an interrupted build has done.
    pub(crate) fn held_batches(&self) -> HashMap<u64, u64> {
        let inside = self.lock();
        inside.runs.iter().flat_map(Run::segments).map(|segment| (segment.number, segment.digest)).collect()
    }

    /// Bytes of text that may be decompressed before workers take them.
    pub(crate) fn most_ahead(&self) -> usize {
        usize::try_from(self.budget.most_ahead()).unwrap_or(usize::MAX)
    }

    /// Whether a worker's lists of `bytes` bytes must become a run.
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        bytes as u64 >= self.budget.most_growing()
    }

    pub(crate) fn count_docs(&self, num_docs: u32) {
        self.lock().num_docs += u64::from(num_docs);
    }

    /// Notes that a worker has delivered everything, and its memory is free.
    pub(crate) fn end_worker(&self) {
        let mut inside = self.lock();
        inside.workers = inside.workers.saturating_sub(1);
    }

    /// Takes the lists of `source`, while other lists grow.
    pub(crate) fn take(&self, source: &mut dyn RunSource) -> Result<(), BuildError> {
        self.take_within(source, self.budget.most_kept())
    }

    pub(crate) fn take_last(&self, source: &mut dyn RunSource) -> Result<(), BuildError> {
        let inside = self.lock();
        let most_kept = self.budget.most_kept_last(inside.num_docs, inside.workers);
        drop(inside);
        self.take_within(source, most_kept)
    }

    /// Takes the lists of `source`, in memory if all runs in memory then take at most `most_kept` bytes.
    fn take_within(&self, source: &mut dyn RunSource, most_kept: u64) -> Result<(), BuildError> {
        if source.is_empty() {
            return Ok(());
        }
        let mut inside = self.lock();
        // A run is smaller than the lists that it is made of.
        let most_bytes = source.bytes() as u64;
        if inside.kept_bytes.saturating_add(most_bytes) <= most_kept {
            inside.kept_bytes += most_bytes;
            drop(inside);
            let run = Run::in_memory(source).map_err(|e| at(&self.folder, &e))?;
            let mut inside = self.lock();
            inside.kept_bytes -= most_bytes - (run.bytes_in_memory() as u64).min(most_bytes);
            inside.runs.push(run);
            return Ok(());
        }
        let path = inside.journal.next_path().map_err(|e| at(&self.folder, &e))?;
        // This is about the first run of each worker, whose lists grew in heaps.
        let is_first = inside.spilled < inside.workers;
        inside.spilled += 1;
        drop(inside);
        let run = Run::on_disk(source, &path).map_err(|e| at(&path, &e))?;
        if is_first {
            give_back_large_blocks();
            give_back();
        }
        let mut inside = self.lock();
        inside.journal.add(&path).map_err(|e| at(&path, &e))?;
        inside.runs.push(run);
        inside.runs_on_disk += 1;
        Ok(())
    }

    pub(crate) fn runs(&self, num_batches: u64, reader_waited: Duration) -> Result<Runs, BuildError> {
        let mut inside = self.lock();
        let (runs_on_disk, resumed_bytes) = (inside.runs_on_disk, inside.resumed_bytes);
        let stages = Stages { reader_waited, ..Stages::default() };
        let summary = BuildSummary { runs_on_disk, resumed_bytes, stages, ..BuildSummary::default() };
        Runs::new(std::mem::take(&mut inside.runs), num_batches, summary)
    }

    /// The error that the collection differs from the one that the interrupted build read.
    pub(crate) fn changed(&self) -> BuildError {
        let folder = self.lock().journal.folder().to_owned();
        let message = "the text has changed since the interrupted build (delete this folder to start again)";
        BuildError::Run { path: folder, message: message.to_owned() }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn at(path: &Path, e: &std::io::Error) -> BuildError {
    BuildError::of(path, "cannot write", e)
}
