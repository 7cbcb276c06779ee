//! Reading, one parser at a time: who may read next, and what.
//!
//! The disk is one, so parsers that all read at once would only make it slower. They read in turn: parser 0, 1, ..., M - 1, and
//! 0 again. What a parser is granted becomes one buffer, and buffers are indexed in the same turn, so that documents are
//! numbered as they stand in the collection.
//!
//! Of a collection of many files a grant is one file, read whole, still compressed: its parser decompresses it once the next
//! one reads. Of one file, or a pipe, a grant is as much of its text as a buffer should hold.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tandem_core::corpus::{Batch, Collection};
use tandem_core::files::InputError;
use tandem_core::indexing::BuildError;

/// A batch is sampled for so many bytes of files, and from so many files at least.
const SAMPLED_EVERY_BYTES: u64 = 50 << 20;
const LEAST_SAMPLED: usize = 2;

/// What a parser may parse.
#[derive(Debug)]
pub(crate) enum Grant {
    /// Part of a stream of text.
    Batches(Vec<Batch>),
    /// A file's bytes: its number in the collection.
    File(u32, PathBuf, Vec<u8>),
}

/// Where grants come from.
#[derive(Debug)]
enum Source {
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
    source: Source,
    /// The grant whose turn it is.
    turn: u64,
    /// Nothing more is to be read.
    is_over: bool,
    reading_s: f64,
}

impl Grants {
    /// Grants of about `buffer_bytes` of text; of a file each, where there are several that are no larger.
    pub(crate) fn new(collection: Collection, buffer_bytes: u64) -> Self {
        let paths = collection.paths().to_vec();
        let is_small_file =
            |path: &PathBuf| path.metadata().is_ok_and(|file| file.is_file() && file.len() <= buffer_bytes);
        let source = if paths.len() > 1 && paths.iter().all(is_small_file) {
            Source::Files { paths }
        } else {
            Source::Stream { collection, read_before: VecDeque::new() }
        };
        let inside = Inside { source, turn: 0, is_over: false, reading_s: 0.0 };
        Self { inside: Mutex::new(inside), changed: Condvar::new(), buffer_bytes }
    }

    /// Calls `visit` with text from all over the collection, as far as that can be had: the beginning of each file, or of
    /// the stream, which is then granted as if it had not been read. `most` batches at most.
    pub(crate) fn sample(
        &self,
        most: usize,
        mut visit: impl FnMut(&Batch) -> Result<(), InputError>,
    ) -> Result<(), InputError> {
        match &mut self.lock().source {
            Source::Stream { collection, read_before } => {
                if let Some(batch) = collection.next_batch()? {
                    let visited = visit(&batch);
                    read_before.push_back(batch);
                    visited?;
                }
            }
            Source::Files { paths } => {
                // Of files that are small a few tell enough: the sample is to cost little of the whole.
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

    /// Waits for the turn of grant `number` and reads it; `None` if the collection has ended before.
    ///
    /// # Errors
    /// If it can't be read. Nothing is granted after that.
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

    /// Nothing more is granted: the buffers are not wanted any more.
    pub(crate) fn stop(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Seconds that were spent reading.
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
            Source::Stream { collection, read_before } => {
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
            Source::Files { paths } => {
                let Some(path) = paths.get(number as usize) else { return Ok(None) };
                let bytes = std::fs::read(path).map_err(|e| InputError::file(path, format!("cannot read: {e}")))?;
                Ok(Some(Grant::File(number as u32, path.clone(), bytes)))
            }
        }
    }
}

impl Grant {
    /// Calls `visit` with each batch and the number of the file that it is of.
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
