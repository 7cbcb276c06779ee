//! From text to an index: batches are inverted on all threads, then merged by ranges of the vocabulary.
//!
//! ```text
//!                 ┌─▶ worker: cut into terms, grow lists ─┐ when its memory is full, and at the end
//! reader ─batches─┼─▶ worker                              ├──▶ runs, sorted by term, in memory or on disk
//!                 └─▶ worker                              ┘     │
//!                                                               │ all threads, a range of terms each
//!                                               IndexWriter ◀── merge, pack
//! ```
//!
//! The text is never in memory as a whole: there is one batch per thread, and as many in the queue. The reader only
//! finds the batches of a plain file of lines; workers read them. The user chooses how much else is in memory. The rest
//! goes to disk, where an interrupted build finds it again. The index is the same, byte for byte, for any number of
//! threads and any memory.
//!
//! | file | what it does |
//! | --- | --- |
//! | `interner.rs`, `pending.rs` | numbers for words, looked up many at once: with growing lists what a token costs |
//! | `worker.rs` | what a thread does with batches |
//! | `accumulator.rs` | a worker's documents, inverted as they come |
//! | `run.rs`, `cursor.rs` | sorted lists, in memory or on disk, and going through them |
//! | `store.rs` | where runs go |
//! | `runs.rs`, `merge.rs`, `gather.rs` | all runs together: the documents' numbers, and one list per term |

mod accumulator;
mod cursor;
mod gather;
mod interner;
mod merge;
mod pending;
mod run;
mod runs;
mod store;
mod worker;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use super::error::BuildError;
use super::indexer::{BuildOptions, Indexer, Inverted};
use super::progress::Progress;
use crate::corpus::{Batch, Collection};
use store::Store;
use worker::Worker;

/// Tandem's own indexer, which hashes words on all threads.
#[derive(Debug)]
pub(crate) struct HashIndexer;

impl Indexer for HashIndexer {
    fn invert(
        &mut self,
        mut collection: Collection,
        dir: &Path,
        options: &BuildOptions,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Arc<dyn Inverted>, BuildError> {
        let key = format!("{} {}", collection.identity(), options.tokenizer.name());
        let store = Store::open(dir, &key, options)?;
        collection.limit_ahead(store.most_ahead());
        let workers = (0..options.threads).map(|_| Worker::new(&options.tokenizer)).collect();
        let (num_batches, reader_waited) = invert(&mut collection, workers, &store, progress)?;
        Ok(Arc::new(store.runs(num_batches, reader_waited)?))
    }
}

/// Reads and inverts all batches that the store does not hold yet, with one thread per worker and a reader. Returns the
/// number of batches, and how long the reader waited for workers.
fn invert(
    collection: &mut Collection,
    workers: Vec<Worker<'_>>,
    store: &Store,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<(u64, Duration), BuildError> {
    let inversion = Inversion::new(store, progress);
    let (to_workers, from_reader) = crossbeam_channel::bounded::<(u64, Batch)>(workers.len());
    collection.defer_reading()?;
    let read = std::thread::scope(|scope| -> Result<(u64, Duration), BuildError> {
        let to_workers = to_workers;
        for (number, worker) in workers.into_iter().enumerate() {
            let (inversion, batches) = (&inversion, from_reader.clone());
            std::thread::Builder::new()
                .name(format!("invert-{number}"))
                .spawn_scoped(scope, move || inversion.work(worker, batches))
                .map_err(|e| BuildError::Threads(e.to_string()))?;
        }
        // Without this receiver, the reader does not wait once all workers have ended.
        drop(from_reader);
        Ok(inversion.read(collection, &to_workers))
    })?;
    match inversion.first_error() {
        Some(error) => Err(error),
        None => Ok(read),
    }
}

struct Inversion<'a> {
    store: &'a Store,
    progress: &'a (dyn Fn(Progress) + Sync),
    /// Digests of the batches that the store held at the start.
    held: HashMap<u64, u64>,
    errors: Mutex<Vec<(u64, BuildError)>>,
    failed: AtomicBool,
    documents: AtomicU64,
    bytes: AtomicU64,
}

impl<'a> Inversion<'a> {
    fn new(store: &'a Store, progress: &'a (dyn Fn(Progress) + Sync)) -> Self {
        Self {
            store,
            progress,
            held: store.held_batches(),
            errors: Mutex::default(),
            failed: AtomicBool::default(),
            documents: AtomicU64::default(),
            bytes: AtomicU64::default(),
        }
    }

    /// Runs a worker's thread until there are no more batches, or an error.
    fn work(&self, mut worker: Worker<'_>, batches: Receiver<(u64, Batch)>) {
        let mut last = 0;
        for (number, batch) in batches {
            last = number;
            let batch_bytes = batch.bytes();
            match worker.take(number, batch, self.store) {
                Ok(num_docs) => self.count(num_docs, batch_bytes),
                Err(error) => return self.fail(number, error),
            }
        }
        if !self.failed.load(Ordering::Relaxed)
            && let Err(error) = worker.finish(self.store)
        {
            self.fail(last, error);
        }
        drop(worker);
        self.store.end_worker();
    }

    /// Runs the reader: sends batches in order until there are no more, or an error. Returns their number, and how long
    /// it waited for workers.
    ///
    /// All batches before a bad one are in work when reading stops, so the collection's first error is always among the
    /// errors.
    fn read(&self, collection: &mut Collection, to_workers: &Sender<(u64, Batch)>) -> (u64, Duration) {
        let (mut number, mut waited) = (0, Duration::ZERO);
        let mut memory = Vec::new();
        while !self.failed.load(Ordering::Relaxed) {
            let mut batch = match collection.next_batch() {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(e) => {
                    self.fail(number, e.into());
                    break;
                }
            };
            if let Some(&digest) = self.held.get(&number) {
                if let Err(error) = self.pass_over(&mut batch, digest, &mut memory) {
                    self.fail(number, error);
                    break;
                }
            } else {
                let ready = Instant::now();
                if to_workers.send((number, batch)).is_err() {
                    break;
                }
                waited += ready.elapsed();
            }
            number += 1;
        }
        (number, waited)
    }

    /// Skips a batch that the store holds, if it has not changed.
    fn pass_over(&self, batch: &mut Batch, digest: u64, memory: &mut Vec<u8>) -> Result<(), BuildError> {
        batch.load(memory)?;
        if batch.digest() != digest {
            return Err(self.store.changed());
        }
        batch.unload(memory);
        self.bytes.fetch_add(batch.bytes(), Ordering::Relaxed);
        Ok(())
    }

    fn count(&self, num_docs: u32, batch_bytes: u64) {
        self.store.count_docs(num_docs);
        let documents = self.documents.fetch_add(num_docs.into(), Ordering::Relaxed) + u64::from(num_docs);
        let bytes = self.bytes.fetch_add(batch_bytes, Ordering::Relaxed) + batch_bytes;
        (self.progress)(Progress::Reading { documents, bytes });
    }

    /// Records the error of a batch, and stops the reader.
    fn fail(&self, number: u64, error: BuildError) {
        self.failed.store(true, Ordering::Relaxed);
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).push((number, error));
    }

    /// The error of the first bad batch.
    fn first_error(self) -> Option<BuildError> {
        let errors = self.errors.into_inner().unwrap_or_else(PoisonError::into_inner);
        errors.into_iter().min_by_key(|(number, _)| *number).map(|(_, error)| error)
    }
}

#[cfg(test)]
mod tests;
