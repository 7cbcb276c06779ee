//! Reading in turn: the permission to read, and the text read.
//!
//! Parsers that read from one disk at once would slow it down. They read in turn: parser 0, 1, ..., M - 1, and 0 again.
//! A grant becomes one buffer, and buffers are indexed in the same order, so that documents are numbered in the order
//! of the collection.
//!
//! In a collection of many files, a grant is one compressed file, which its parser decompresses while the next one
//! reads. In one file or a pipe, a grant is as much text as a buffer should hold.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tandem_engine::corpus::{Batch, Collection};
use tandem_engine::indexing::BuildError;
use tandem_model::files::InputError;

/// Bytes of files per sampled batch.
const SAMPLED_EVERY_BYTES: u64 = 50 << 20;
/// Minimum number of sampled batches.
const LEAST_SAMPLED: usize = 2;

#[derive(Debug)]
pub(crate) enum Grant {
    Batches(Vec<Batch>),
    /// A file: its number in the collection, its path and its bytes.
    File(u32, PathBuf, Vec<u8>),
}

#[derive(Debug)]
enum GrantSource {
    Stream { collection: Collection, read_before: VecDeque<Batch> },
    Files { paths: Vec<PathBuf> },
}

/// A collection that parsers read in turn.
#[derive(Debug)]
pub(crate) struct Grants {
    inside: Mutex<Inside>,
    changed: Condvar,
    buffer_bytes: u64,
}

#[derive(Debug)]
struct Inside {
    source: GrantSource,
    turn: u64,
    is_over: bool,
    reading_s: f64,
}

impl Grants {
    /// Makes grants of about `buffer_bytes` of text, or of a file each if there are several files of at most that size.
    pub(crate) fn new(collection: Collection, buffer_bytes: u64) -> Self {
        let paths = collection.paths().to_vec();
        let is_small_file =
            |path: &PathBuf| path.metadata().is_ok_and(|file| file.is_file() && file.len() <= buffer_bytes);
        let source = if paths.len() > 1 && paths.iter().all(is_small_file) {
            GrantSource::Files { paths }
        } else {
            GrantSource::Stream { collection, read_before: VecDeque::new() }
        };
        let inside = Inside { source, turn: 0, is_over: false, reading_s: 0.0 };
        Self { inside: Mutex::new(inside), changed: Condvar::new(), buffer_bytes }
    }

    /// Calls `visit` with at most `most` batches from the beginning of files, or with the first batch of a stream,
    /// which is granted later as well.
    pub(crate) fn sample(
        &self,
        most: usize,
        mut visit: impl FnMut(&Batch) -> Result<(), InputError>,
    ) -> Result<(), InputError> {
        match &mut self.lock().source {
            GrantSource::Stream { collection, read_before } => {
                if let Some(batch) = collection.next_batch()? {
                    let visited = visit(&batch);
                    read_before.push_back(batch);
                    visited?;
                }
            }
            GrantSource::Files { paths } => {
                // A few small files are enough, because the sample must be cheap.
                let bytes: u64 = paths.iter().filter_map(|path| path.metadata().ok()).map(|file| file.len()).sum();
                let most = ((bytes / SAMPLED_EVERY_BYTES) as usize).clamp(LEAST_SAMPLED, most);
                let step = paths.len().div_ceil(most);
                for path in paths.iter().step_by(step) {
                    if let Some(batch) = Collection::open(path, 1)?.next_batch()? {
                        visit(&batch)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Waits for the turn of grant `number` and reads it; `None` after the end of the collection. Fails if it cannot be
    /// read; no grant follows.
    pub(crate) fn take(&self, number: u64) -> Result<Option<Grant>, BuildError> {
        let mut inside = self.lock();
        while inside.turn != number && !inside.is_over {
            inside = self.changed.wait(inside).unwrap_or_else(PoisonError::into_inner);
        }
        if inside.is_over {
            return Ok(None);
        }
        let began = Instant::now();
        let read = inside.read(number, self.buffer_bytes);
        inside.reading_s += began.elapsed().as_secs_f64();
        inside.turn += 1;
        inside.is_over = !matches!(read, Ok(Some(_)));
        self.changed.notify_all();
        Ok(read?)
    }

    /// Ends reading, because no more buffers are needed.
    pub(crate) fn stop(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    pub(crate) fn reading_s(&self) -> f64 {
        self.lock().reading_s
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn read(&mut self, number: u64, buffer_bytes: u64) -> Result<Option<Grant>, InputError> {
        match &mut self.source {
            GrantSource::Stream { collection, read_before } => {
                let (mut batches, mut bytes) = (Vec::new(), 0);
                while bytes < buffer_bytes {
                    let batch = match read_before.pop_front() {
                        Some(batch) => Some(batch),
                        None => collection.next_batch()?,
                    };
                    let Some(batch) = batch else { break };
                    bytes += batch.bytes();
                    batches.push(batch);
                }
                Ok((!batches.is_empty()).then_some(Grant::Batches(batches)))
            }
            GrantSource::Files { paths } => {
                let Some(path) = paths.get(number as usize) else { return Ok(None) };
                let bytes = std::fs::read(path).map_err(|e| InputError::file(path, format!("cannot read: {e}")))?;
                Ok(Some(Grant::File(number as u32, path.clone(), bytes)))
            }
        }
    }
}

impl Grant {
    /// Calls `visit` with each batch.
    pub(crate) fn for_each(self, mut visit: impl FnMut(&Batch) -> Result<(), InputError>) -> Result<(), InputError> {
        match self {
            Self::Batches(batches) => batches.iter().try_for_each(visit),
            Self::File(number, path, bytes) => {
                let mut file = Collection::of_bytes(&path, number, bytes)?;
                while let Some(batch) = file.next_batch()? {
                    visit(&batch)?;
                }
                Ok(())
            }
        }
    }
}
