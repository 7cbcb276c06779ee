//! Queries on lists that are partly cached in GPU memory (sections 5 and 8.4 of the paper).
//!
//! Compressed lists are in the host's page-locked memory. A stream copies the lists that a query needs and the cache
//! lacks, "while processing other queries":
//!
//! ```text
//!   host      admit 1 | admit 2 · launch 1 · answer 1 | admit 3 · launch 2 · answer 2 | admit 4 ...
//!   copies    lists 1   lists 2 ───────────────▶        lists 3 ──────────▶
//!   kernels   wait for lists 1, query 1 ──────▶         wait for lists 2, query 2 ──▶
//! ```
//!
//! The lists of a query are pinned from its admission to its answer, so that the cache holds lists of two queries at a
//! time. Without a query admitted ahead, copies and kernels follow each other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, result, sys};
use tandem_engine::query::Query;
use tandem_engine::search::Hit;
use tandem_engine::search::device::{GpuError, Pinned, wait};
use tandem_model::traffic::Mode;

use super::cache::{ListCache, Requests};
use super::context::PublishedGpu;
use super::lists::{HostLists, List};
use super::search::Searcher;
use crate::error::CacheError;
use crate::wang::cache::space::Move;
use crate::{ExperimentError, Result};

/// Bytes of a list that move at once, through a buffer because places may overlap.
const BOUNCE_BYTES: u64 = 8 << 20;

/// Lists in page-locked memory of the host.
#[derive(Debug)]
pub(crate) struct LockedLists {
    gpu: Arc<PublishedGpu>,
    lists: Arc<HostLists>,
    words: Pinned<u32>,
}

impl LockedLists {
    pub(crate) fn new(gpu: &Arc<PublishedGpu>, lists: &Arc<HostLists>) -> Result<Self, GpuError> {
        let locking = |e| GpuError::of(format!("page-locking {} bytes of lists", lists.bytes()), &e);
        let mut words = Pinned::for_input(&gpu.device, lists.words.len().max(1)).map_err(locking)?;
        // SAFETY: no enqueued work reads them yet.
        let target = unsafe { words.as_mut_slice() };
        target[..lists.words.len()].copy_from_slice(&lists.words);
        Ok(Self { gpu: Arc::clone(gpu), lists: Arc::clone(lists), words })
    }
}

/// Measurements of a stream of queries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    pub(crate) requests: Requests,
    /// Seconds from the first query to the last answer.
    pub(crate) seconds: f64,
    /// Device time of copying lists, of all queries.
    pub(crate) copying_us: f64,
}

/// A cache in device memory, and the searcher of its lists.
#[derive(Debug)]
pub(crate) struct CachedSearch {
    locked: Arc<LockedLists>,
    cache: ListCache,
    d_cache: CudaSlice<u32>,
    d_bounce: CudaSlice<u32>,
    searcher: Searcher,
    copies: Arc<CudaStream>,
    events: Vec<[CudaEvent; 2]>,
}

/// A query whose lists are on the device or being copied.
#[derive(Debug)]
struct Admitted {
    wanted: Vec<(u32, u64)>,
    /// Events before and after the copies, if there are any.
    copied: Option<[CudaEvent; 2]>,
}

impl CachedSearch {
    pub(crate) fn new(locked: &Arc<LockedLists>, budget_bytes: u64) -> Result<Self, GpuError> {
        let (gpu, lists) = (&locked.gpu, &locked.lists);
        // Places are multiples of sixteen bytes.
        let budget_bytes = budget_bytes / 16 * 16;
        let search = Self {
            cache: ListCache::new(lists, budget_bytes),
            searcher: Searcher::new(gpu, lists, budget_bytes + BOUNCE_BYTES)?,
            d_cache: gpu.zeros((budget_bytes / 4) as usize)?,
            d_bounce: gpu.zeros((BOUNCE_BYTES / 4) as usize)?,
            copies: gpu.device.new_stream()?,
            events: Vec::new(),
            locked: Arc::clone(locked),
        };
        // One stream allocates and clears memory; the other one may write it from here on.
        gpu.wait("allocating a cache")?;
        Ok(search)
    }

    /// Answers queries one after another while the lists of the next `ahead` are copied. Returns
    /// [`CacheError::DoesNotFit`] if the lists of a query exceed the cache. Admitted lists stay pinned after an error.
    pub(crate) fn run(
        &mut self,
        queries: &[Query],
        mode: Mode,
        k: usize,
        ahead: usize,
        answers: &mut Vec<Vec<Hit>>,
    ) -> Result<Stream> {
        self.cache.requests = Requests::default();
        answers.clear();
        answers.resize(queries.len(), Vec::new());
        let mut stream = Stream::default();
        let began = Instant::now();
        let mut admitted: VecDeque<Admitted> = VecDeque::new();
        let mut waiting = queries;
        for (query, hits) in queries.iter().zip(answers.iter_mut()) {
            while admitted.len() <= ahead
                && let [next, later @ ..] = waiting
            {
                match self.admit(next) {
                    Ok(one) => admitted.push_back(one),
                    // The query fits after others have finished.
                    Err(ExperimentError::Cache(CacheError::DoesNotFit { .. })) if !admitted.is_empty() => break,
                    Err(error) => return Err(error),
                }
                waiting = later;
            }
            // The query was admitted above, or earlier.
            let Some(one) = admitted.pop_front() else { break };
            stream.copying_us += self.answer(query, one, mode, k, hits)?;
        }
        stream.seconds = began.elapsed().as_secs_f64();
        stream.requests = self.cache.requests;
        Ok(stream)
    }

    /// Pins the lists of a query, and enqueues the copies of those that the cache lacks.
    fn admit(&mut self, query: &Query) -> Result<Admitted> {
        let locked = Arc::clone(&self.locked);
        let (wanted, arrivals) = self.cache.admit(&locked.lists, query)?;
        if !arrivals.moves.is_empty() {
            self.move_lists(&arrivals.moves)?;
        }
        if arrivals.misses.is_empty() {
            return Ok(Admitted { wanted, copied: None });
        }
        let copying = |e| GpuError::of("copying lists to the cache", &e);
        let event = || self.locked.gpu.device.new_event().map_err(copying);
        let copied = match self.events.pop() {
            Some(events) => events,
            None => [event()?, event()?],
        };
        copied[0].record(&self.copies).map_err(copying)?;
        for list in query.terms.iter().map(|term| locked.lists.list(term.term)) {
            if !arrivals.misses.contains(&list.number) {
                continue;
            }
            let from = locked.words.address() + 4 * list.words.start as u64;
            let to = self.address_of(list);
            // SAFETY: the list's words are page-locked and not written. Its place in the cache has room for them, is
            // not read by any running query, and is read only after the event below.
            let enqueued = unsafe {
                sys::cuMemcpyHtoDAsync_v2(to, from as *const _, 4 * list.words.len(), self.copies.cu_stream())
            };
            enqueued.result().map_err(copying)?;
        }
        copied[1].record(&self.copies).map_err(copying)?;
        Ok(Admitted { wanted, copied: Some(copied) })
    }

    /// Answers a query after its lists have arrived; returns the microseconds of their copies.
    fn answer(&mut self, query: &Query, admitted: Admitted, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<f64> {
        let locked = Arc::clone(&self.locked);
        let doing = |e| GpuError::of("waiting for lists", &e);
        if let Some([_, arrived]) = &admitted.copied {
            locked.gpu.stream.wait(arrived).map_err(doing)?;
        }
        let base = locked.gpu.address(&self.d_cache);
        let address_of = |list: &List| base + self.cache.place_of(list);
        let operands = self.searcher.operands(&locked.lists, address_of, query)?;
        self.searcher.search(&operands, query, mode, k, false, hits)?;
        self.cache.release(&admitted.wanted);
        let Some(copied) = admitted.copied else { return Ok(0.0) };
        let copying_ms = copied[0].elapsed_ms(&copied[1]).map_err(doing)?;
        self.events.push(copied);
        Ok(f64::from(copying_ms) * 1e3)
    }

    /// Returns the device address of a pinned list.
    fn address_of(&self, list: &List) -> u64 {
        self.locked.gpu.address(&self.d_cache) + self.cache.place_of(list)
    }

    /// Moves lists within the cache after all reads and writes have finished.
    fn move_lists(&mut self, moves: &[Move]) -> Result<(), GpuError> {
        let gpu = &self.locked.gpu;
        let moving = |e| GpuError::of("moving lists within the cache", &e);
        wait(&gpu.stream).map_err(moving)?;
        let (cache, bounce) = (gpu.address(&self.d_cache), gpu.address(&self.d_bounce));
        let stream = self.copies.cu_stream();
        for &Move { from, to, len } in moves {
            let mut moved = 0;
            while moved < len {
                let bytes = BOUNCE_BYTES.min(len - moved);
                // SAFETY: both places are in the cache, and the buffer is as long as the moved bytes; earlier copies on
                // this stream and all work of the other stream have finished by then.
                let enqueued = unsafe {
                    result::memcpy_dtod_async(bounce, cache + from + moved, bytes as usize, stream)
                        .and_then(|()| result::memcpy_dtod_async(cache + to + moved, bounce, bytes as usize, stream))
                };
                enqueued.map_err(moving)?;
                moved += bytes;
            }
        }
        // All copies have arrived and moved, so that their events need not be recorded again.
        wait(&self.copies).map_err(moving)
    }

    /// Fills the cache and all buffers with ones, which exposes reads of unwritten memory. The cache must be empty.
    #[cfg(test)]
    pub(crate) fn poison(&mut self) -> Result<(), GpuError> {
        let gpu = Arc::clone(&self.locked.gpu);
        super::tests::poison(&gpu, &mut self.d_cache)?;
        super::tests::poison(&gpu, &mut self.d_bounce)?;
        self.searcher.poison()?;
        gpu.wait("poisoning a buffer")
    }
}

impl Drop for CachedSearch {
    fn drop(&mut self) {
        // A failed query leaves copies of the next one running, under which memory must not be freed.
        self.locked.gpu.device.context.record_err(wait(&self.copies));
    }
}
