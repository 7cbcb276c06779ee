//! Queries and indexing on the same cores: what each leaves of the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::build::{BuildError, BuildOptions, build_from_text};
use crate::corpus::Collection;
use crate::exec::cpu::CpuExecutor;
use crate::exec::{ExecError, Executor};
use crate::index::Index;
use crate::query::{Mode, Query};

/// What some threads answer and others index at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedCores {
    /// Threads that answer queries, one query after another without a pause.
    pub query_threads: usize,
    /// Threads that index.
    pub ingest_threads: usize,
    /// Queries answered a second, all threads together.
    pub queries_per_s: f64,
    /// Text indexed a second, in bytes: whole builds, until their indexes are on disk.
    pub ingest_bytes_per_s: f64,
}

/// What is answered and what is indexed.
#[expect(missing_debug_implementations, reason = "of a function there is nothing to show")]
pub struct SharedWork<'a> {
    /// The index that is asked.
    pub index: &'a Arc<Index>,
    /// At least one query; every thread goes round and round from a place of its own.
    pub queries: &'a [Query],
    /// How they are answered.
    pub mode: Mode,
    /// Documents that they ask for.
    pub k: usize,
    /// Text that is indexed, again and again.
    pub text: &'a [PathBuf],
    /// How, on so many threads.
    pub build: &'a (dyn Fn(usize) -> BuildOptions + Sync),
    /// Where indexes are written, each over the one before.
    pub scratch: &'a Path,
    /// It takes so long, and until the build at hand is done.
    pub time: Duration,
}

/// What went wrong on the way.
#[derive(Debug, thiserror::Error)]
pub enum SharedCoresError {
    /// A query.
    #[error(transparent)]
    Query(#[from] ExecError),
    /// A build.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// Answers queries on some threads while others index.
///
/// # Errors
/// If a query or a build fails.
pub fn share_cores(
    work: &SharedWork<'_>,
    query_threads: usize,
    ingest_threads: usize,
) -> Result<SharedCores, SharedCoresError> {
    let cpu = CpuExecutor::new(Arc::clone(work.index), work.index.built_with());
    let is_over = AtomicBool::new(false);
    let answer = |mut executor: CpuExecutor, first: usize| {
        let (mut answered, mut hits) = (0_u64, Vec::new());
        for query in work.queries.iter().cycle().skip(first) {
            if is_over.load(Ordering::Relaxed) {
                break;
            }
            executor.search(query, work.mode, work.k, &mut hits)?;
            answered += 1;
        }
        Ok::<_, ExecError>(answered)
    };
    std::thread::scope(|scope| {
        let began = Instant::now();
        let place = |thread: usize| thread * work.queries.len() / query_threads;
        let threads: Vec<_> = (0..query_threads)
            .map(|thread| {
                let (executor, answer) = (cpu.clone_for_worker(), &answer);
                scope.spawn(move || answer(executor, place(thread)))
            })
            .collect();
        let indexed = index_until(work, ingest_threads, began + work.time);
        is_over.store(true, Ordering::Relaxed);
        let seconds = began.elapsed().as_secs_f64();
        let mut answered = 0;
        for thread in threads {
            answered += thread.join().unwrap_or(Err(ExecError::Panicked))?;
        }
        Ok(SharedCores {
            query_threads,
            ingest_threads,
            queries_per_s: answered as f64 / seconds,
            ingest_bytes_per_s: indexed? as f64 / seconds,
        })
    })
}

/// Indexes until `end` is past and a build is done, or sleeps if there is no thread to index; returns the bytes.
fn index_until(work: &SharedWork<'_>, threads: usize, end: Instant) -> Result<u64, BuildError> {
    if threads == 0 {
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
        return Ok(0);
    }
    let options = (work.build)(threads);
    let mut bytes = 0;
    while Instant::now() < end {
        let collection = Collection::open_all(work.text.to_vec(), threads)?;
        bytes += build_from_text(collection, work.scratch, &options, &|_| ())?.bytes;
    }
    Ok(bytes)
}
