//! Where runs go: memory as long as they fit, then disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::run::{Run, RunSource};
use super::runs::Runs;
use crate::build::journal::Journal;
use crate::build::{BuildError, BuildOptions, BuildSummary, Stages};

/// Of the memory given, what workers' growing lists may take together; the rest is for batches, for runs that are kept,
/// and for what is merged.
const GROWING_SHARE: f64 = 0.5;
/// Of the memory given, what runs may take that stay in memory.
const KEPT_SHARE: f64 = 0.125;
/// Of the memory given, what may be decompressed before workers take it.
const AHEAD_SHARE: f64 = 0.0625;
/// A worker's lists may always grow so far: runs are never smaller but the last.
const LEAST_BYTES: u64 = 256 << 10;
/// They may never grow further: places in them are 32 bits.
const MOST_BYTES: u64 = 2 << 30;

/// The runs of a build, so far.
#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
    /// What one worker's lists may take.
    most_growing: u64,
    /// What all runs in memory may take while lists grow, and when none grows any more.
    most_kept: u64,
    most_kept_last: u64,
    most_ahead: u64,
    inside: Mutex<Inside>,
}

#[derive(Debug)]
struct Inside {
    journal: Journal,
    runs: Vec<Run>,
    kept_bytes: u64,
    runs_on_disk: usize,
    resumed_bytes: u64,
}

impl Store {
    /// The store of a build of `key` into `dir`, with what an interrupted one left.
    pub(super) fn open(dir: &Path, key: &str, options: &BuildOptions) -> Result<Self, BuildError> {
        let mut runs = Vec::new();
        let journal = Journal::open(dir, key, |path| {
            let run = Run::open(path);
            let is_whole = run.is_some();
            runs.extend(run);
            is_whole
        });
        let journal = journal.map_err(|e| at(dir, &e))?;
        let share = |share: f64| options.memory_bytes.map_or(u64::MAX, |bytes| (bytes as f64 * share) as u64);
        let resumed_bytes = runs.iter().flat_map(Run::segments).map(|segment| segment.text_bytes).sum();
        Ok(Self {
            folder: dir.to_owned(),
            most_growing: (share(GROWING_SHARE) / options.threads as u64).clamp(LEAST_BYTES, MOST_BYTES),
            most_kept: share(KEPT_SHARE),
            most_kept_last: share(GROWING_SHARE + KEPT_SHARE),
            most_ahead: share(AHEAD_SHARE),
            inside: Mutex::new(Inside { runs_on_disk: runs.len(), journal, runs, kept_bytes: 0, resumed_bytes }),
        })
    }

    /// The digest of each batch that an interrupted build has done.
    pub(super) fn held_batches(&self) -> HashMap<u64, u64> {
        let inside = self.lock();
        inside.runs.iter().flat_map(Run::segments).map(|segment| (segment.number, segment.digest)).collect()
    }

    /// Bytes of text that may be decompressed before workers take them.
    pub(super) fn most_ahead(&self) -> usize {
        usize::try_from(self.most_ahead).unwrap_or(usize::MAX)
    }

    /// Whether lists that take so many bytes have grown as large as a worker's may.
    pub(super) fn is_full(&self, bytes: usize) -> bool {
        bytes as u64 >= self.most_growing
    }

    /// Takes over what `source` holds, while other lists grow.
    pub(super) fn take(&self, source: &mut dyn RunSource) -> Result<(), BuildError> {
        self.take_within(source, self.most_kept)
    }

    /// Takes over what `source` holds, which is a worker's last.
    pub(super) fn take_last(&self, source: &mut dyn RunSource) -> Result<(), BuildError> {
        self.take_within(source, self.most_kept_last)
    }

    /// Takes over what `source` holds, in memory if runs in memory then take `most_kept` at most.
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
        drop(inside);
        let run = Run::on_disk(source, &path).map_err(|e| at(&path, &e))?;
        let mut inside = self.lock();
        inside.journal.add(&path).map_err(|e| at(&path, &e))?;
        inside.runs.push(run);
        inside.runs_on_disk += 1;
        Ok(())
    }

    /// All runs, of a collection of so many batches, whose reader waited so long.
    pub(super) fn runs(&self, num_batches: u64, reader_waited: Duration) -> Result<Runs, BuildError> {
        let mut inside = self.lock();
        let (runs_on_disk, resumed_bytes) = (inside.runs_on_disk, inside.resumed_bytes);
        let stages = Stages { reader_waited, ..Stages::default() };
        let summary = BuildSummary { runs_on_disk, resumed_bytes, stages, ..BuildSummary::default() };
        Runs::new(std::mem::take(&mut inside.runs), num_batches, summary)
    }

    /// That the collection is not what the interrupted build read.
    pub(super) fn changed(&self) -> BuildError {
        let folder = self.lock().journal.folder().to_owned();
        let message = "the text has changed since the build that was interrupted (delete this folder to begin anew)";
        BuildError::Run { path: folder, message: message.to_owned() }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn at(path: &Path, e: &std::io::Error) -> BuildError {
    BuildError::of(path, "cannot write", e)
}
