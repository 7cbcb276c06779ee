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
//! The text is never held as a whole: a batch a thread, and as many in wait. Batches of a plain file of lines are only found by the
//! reader; workers read them. How much else is held is the user's choice:
//! what does not fit goes to disk, where a build that was interrupted finds it again. The index is the same, byte for
//! byte, for any number of threads and any memory.
//!
//! | file | what it does |
//! | --- | --- |
//! | `interner.rs`, `pending.rs` | numbers for words, looked up many at once: with growing lists what a token costs |
//! | `worker.rs` | who takes batches: CPU cores, or [`gpu`] streams and their threads |
//! | `accumulator.rs`, `segment.rs` | a worker's documents, inverted as they come |
//! | `run.rs`, `cursor.rs` | sorted lists, in memory or on disk, and going through them |
//! | `store.rs` | where runs go |
//! | `runs.rs`, `merge.rs`, `gather.rs` | all runs together: the documents' numbers, and one list a term |

mod accumulator;
mod cursor;
mod gather;
mod gpu;
mod interner;
mod merge;
mod pending;
mod run;
mod runs;
mod segment;
mod store;
mod worker;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use super::{BuildError, BuildOptions, Indexer, Inverted, Progress};
use crate::corpus::{Batch, Collection};
use crate::search::device::GpuError;
pub use gpu::GpuReport;
use gpu::{Backend, Lane, SharedReport};
use store::Store;
use worker::{CpuWorker, Worker};

/// Tandem's own way from text to lists: by hashing words, on all threads; some of them may feed GPUs.
#[derive(Debug, Default)]
pub struct HashIndexer {
    streams: Vec<Box<dyn Backend>>,
    report: SharedReport,
}

impl HashIndexer {
    /// With the first `gpus` GPUs, so many streams of each, of which each takes one of the threads; unless given, as many as
    /// `threads` threads feed and the GPUs have room for. What the GPUs take is their build's alone: the next one has none.
    ///
    /// # Errors
    /// If there are not so many GPUs to use, or one of them has not the memory.
    pub fn on_gpus(gpus: usize, streams: Option<usize>, threads: usize) -> Result<Self, GpuError> {
        Ok(Self { streams: gpu::open(gpus, streams, threads)?, report: SharedReport::default() })
    }

    /// What GPUs did.
    #[must_use]
    pub fn gpu_report(&self) -> GpuReport {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

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
        let tokenizer = &options.tokenizer;
        let lane = |stream| Box::new(Lane::new(stream, tokenizer, Arc::clone(&self.report))) as Box<dyn Worker + Send>;
        let mut workers: Vec<_> = self.streams.drain(..).take(options.threads).map(lane).collect();
        workers.resize_with(options.threads, || Box::new(CpuWorker::new(tokenizer)));
        let (num_batches, reader_waited) = invert(&mut collection, workers, &store, progress)?;
        Ok(Arc::new(store.runs(num_batches, reader_waited)?))
    }
}

/// Reads and inverts all batches that the store doesn't hold yet, by a thread for each worker and a reader; returns how many
/// batches the collection has, and how long the reader waited for workers.
fn invert(
    collection: &mut Collection,
    workers: Vec<Box<dyn Worker + Send + '_>>,
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
        // Where all workers have ended, nobody is left to take a batch, and the reader must not wait for that.
        drop(from_reader);
        Ok(inversion.read(collection, &to_workers))
    })?;
    match inversion.first_error() {
        Some(error) => Err(error),
        None => Ok(read),
    }
}

/// A collection on its way into a store: what its reader and the workers have in common.
struct Inversion<'a> {
    store: &'a Store,
    progress: &'a (dyn Fn(Progress) + Sync),
    /// Digests of the batches that the store held before.
    held: HashMap<u64, u64>,
    /// What went wrong, with the number of the batch.
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

    /// A worker's thread: inverts what the reader hands out, until there is no more, or an error.
    fn work(&self, mut worker: Box<dyn Worker + Send + '_>, batches: Receiver<(u64, Batch)>) {
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

    /// The reader: hands out batches in order until there are no more, or an error; returns how many there were, and how long
    /// it waited for workers.
    ///
    /// All that come before a bad one are under way when reading stops, so the first error of the collection is always among
    /// the errors.
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

    /// Passes over a batch that the store holds, if it is still what it was.
    fn pass_over(&self, batch: &mut Batch, digest: u64, memory: &mut Vec<u8>) -> Result<(), BuildError> {
        batch.load(memory)?;
        if batch.digest() != digest {
            return Err(self.store.changed());
        }
        batch.unload(memory);
        self.bytes.fetch_add(batch.bytes(), Ordering::Relaxed);
        Ok(())
    }

    /// Counts a batch that was inverted.
    fn count(&self, num_docs: u32, batch_bytes: u64) {
        self.store.count_docs(num_docs);
        let documents = self.documents.fetch_add(num_docs.into(), Ordering::Relaxed) + u64::from(num_docs);
        let bytes = self.bytes.fetch_add(batch_bytes, Ordering::Relaxed) + batch_bytes;
        (self.progress)(Progress::Reading { documents, bytes });
    }

    /// Notes what is wrong with a batch, and stops the reader.
    fn fail(&self, number: u64, error: BuildError) {
        self.failed.store(true, Ordering::Relaxed);
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).push((number, error));
    }

    /// The error of the first batch that has one.
    fn first_error(self) -> Option<BuildError> {
        let errors = self.errors.into_inner().unwrap_or_else(PoisonError::into_inner);
        errors.into_iter().min_by_key(|(number, _)| *number).map(|(_, error)| error)
    }
}

#[cfg(test)]
mod tests;
