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
//! The text is never held as a whole: a batch a thread, and as many in wait. How much else is held is the user's choice:
//! what does not fit goes to disk, where a build that was interrupted finds it again. The index is the same, byte for
//! byte, for any number of threads and any memory.
//!
//! | file | what it does |
//! | --- | --- |
//! | `interner.rs`, `pending.rs` | numbers for words, looked up many at once: with growing lists what a token costs |
//! | `accumulator.rs`, `segment.rs` | a worker's documents, inverted as they come |
//! | `run.rs`, `cursor.rs` | sorted lists, in memory or on disk, and going through them |
//! | `store.rs` | where runs go |
//! | `runs.rs`, `merge.rs` | all runs together: the documents' numbers, and one list a term |

mod accumulator;
mod cursor;
mod interner;
mod merge;
mod pending;
mod run;
mod runs;
mod segment;
mod store;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{BuildError, BuildOptions, Indexer, Inverted, Progress};
use crate::corpus::{Batch, Collection};
use accumulator::Accumulator;
use store::Store;

/// Tandem's own way from text to lists: by hashing words, on all threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct HashIndexer;

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
        let num_batches = invert(&mut collection, options, &store, progress)?;
        Ok(Arc::new(store.runs(num_batches)?))
    }
}

/// Reads and inverts all batches that the store doesn't hold yet, on `options.threads` workers and a reader; returns how
/// many batches the collection has.
fn invert(
    collection: &mut Collection,
    options: &BuildOptions,
    store: &Store,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<u64, BuildError> {
    let errors: Mutex<Vec<(u64, BuildError)>> = Mutex::new(Vec::new());
    let failed = AtomicBool::new(false);
    let held: HashMap<u64, u64> = store.held_batches();
    let (documents, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let (to_workers, from_reader) = crossbeam_channel::bounded::<(u64, Batch)>(options.threads);
    let fail = |number: u64, error: BuildError| {
        failed.store(true, Ordering::Relaxed);
        errors.lock().unwrap_or_else(PoisonError::into_inner).push((number, error));
    };
    let work = || {
        let mut accumulator = Accumulator::default();
        let mut last = 0;
        for (number, batch) in &from_reader {
            last = number;
            let docs_before = accumulator.num_docs();
            let added = accumulator.add(number, &batch, &options.tokenizer).map_err(BuildError::from);
            let docs = u64::from(accumulator.num_docs() - docs_before);
            let documents = documents.fetch_add(docs, Ordering::Relaxed) + docs;
            let bytes = bytes.fetch_add(batch.bytes(), Ordering::Relaxed) + batch.bytes();
            progress(Progress::Reading { documents, bytes });
            if let Err(error) = added.and_then(|()| store.take_full(&mut accumulator)) {
                return fail(number, error);
            }
        }
        if !failed.load(Ordering::Relaxed)
            && let Err(error) = store.take_last(&mut accumulator)
        {
            fail(last, error);
        }
    };
    let mut number = 0;
    std::thread::scope(|scope| -> Result<(), BuildError> {
        // Batches are handed out in order: all that come before a bad one are under way when reading stops, so the
        // first error of the collection is always among the errors.
        let to_workers = to_workers;
        for worker in 0..options.threads {
            std::thread::Builder::new()
                .name(format!("invert-{worker}"))
                .spawn_scoped(scope, work)
                .map_err(|e| BuildError::Threads(e.to_string()))?;
        }
        while !failed.load(Ordering::Relaxed) {
            let batch = match collection.next_batch() {
                Ok(Some(batch)) => batch,
                Ok(None) => break,
                Err(e) => {
                    fail(number, e.into());
                    break;
                }
            };
            match held.get(&number) {
                Some(&digest) if digest == batch.digest() => {
                    bytes.fetch_add(batch.bytes(), Ordering::Relaxed);
                }
                Some(_) => {
                    fail(number, store.changed());
                    break;
                }
                None => {
                    if to_workers.send((number, batch)).is_err() {
                        break;
                    }
                }
            }
            number += 1;
        }
        Ok(())
    })?;
    let errors = errors.into_inner().unwrap_or_else(PoisonError::into_inner);
    match errors.into_iter().min_by_key(|(number, _)| *number) {
        Some((_, error)) => Err(error),
        None => Ok(number),
    }
}

#[cfg(test)]
mod tests;
