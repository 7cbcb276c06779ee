//! Queries on lists of which a part is cached in the GPU's memory (sections 5 and 8.4 of the paper).
//!
//! Lists lie compressed in the host's page-locked memory. What a query needs and the cache lacks is copied there by a stream
//! of its own, "while processing other queries":
//!
//! ```text
//!   host      admit 1 | admit 2 · launch 1 · answer 1 | admit 3 · launch 2 · answer 2 | admit 4 ...
//!   copies    lists 1   lists 2 ───────────────▶        lists 3 ──────────▶
//!   kernels   wait for lists 1, query 1 ──────▶         wait for lists 2, query 2 ──▶
//! ```
//!
//! A query's lists stay from when it is admitted to its answer: two queries' worth are needed at a time, one that is read and
//! one that is written. With no query admitted ahead, a query's copies and its kernels follow each other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, result, sys};

use super::cache::{ListCache, Requests};
use super::context::PublishedGpu;
use super::lists::{HostLists, List};
use super::search::Searcher;
use crate::ExperimentError;
use crate::wang::cache::CacheError;
use crate::wang::cache::space::Move;
use tandem_core::query::{Mode, Query};
use tandem_core::search::Hit;
use tandem_core::search::device::{GpuError, Pinned};

/// Bytes of a list that move at once: its old and its new place may overlap, so that it goes through a buffer.
const BOUNCE_BYTES: u64 = 8 << 20;

/// Lists in page-locked memory of the host.
#[derive(Debug)]
pub(crate) struct LockedLists {
    gpu: Arc<PublishedGpu>,
    lists: Arc<HostLists>,
    words: Pinned<u32>,
}

impl LockedLists {
    /// Copies them there.
    pub(crate) fn new(gpu: &Arc<PublishedGpu>, lists: &Arc<HostLists>) -> Result<Self, GpuError> {
        let locking = |e| GpuError::of(format!("page-locking {} bytes of lists", lists.bytes()), &e);
        let mut words = Pinned::for_input(&gpu.device, lists.words.len().max(1)).map_err(locking)?;
        // SAFETY: nothing has been enqueued yet that reads them.
        let target = unsafe { words.as_mut_slice() };
        target[..lists.words.len()].copy_from_slice(&lists.words);
        Ok(Self { gpu: Arc::clone(gpu), lists: Arc::clone(lists), words })
    }
}

/// What a stream of queries took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    /// What it asked of the cache.
    pub(crate) requests: Requests,
    /// From the first query to the last answer.
    pub(crate) seconds: f64,
    /// The device's time of copying lists, of all queries.
    pub(crate) copying_us: f64,
}

/// A cache in device memory, and what searches the lists in it.
#[derive(Debug)]
pub(crate) struct CachedSearch {
    locked: Arc<LockedLists>,
    cache: ListCache,
    d_cache: CudaSlice<u32>,
    d_bounce: CudaSlice<u32>,
    searcher: Searcher,
    copies: Arc<CudaStream>,
    /// Pairs of events that no admitted query has.
    events: Vec<[CudaEvent; 2]>,
}

/// A query whose lists are on the device, or on their way.
#[derive(Debug)]
struct Admitted {
    wanted: Vec<(u32, u64)>,
    /// Before and after its copies, if it has any.
    copied: Option<[CudaEvent; 2]>,
}

impl CachedSearch {
    /// An empty cache of `budget_bytes`.
    pub(crate) fn new(locked: &Arc<LockedLists>, budget_bytes: u64) -> Result<Self, GpuError> {
        let (gpu, lists) = (&locked.gpu, &locked.lists);
        // All places are multiples of sixteen bytes.
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
        // Memory is given, and cleared, in the order of one stream: the other may write it from here on.
        gpu.stream.synchronize().map_err(|e| GpuError::of("allocating a cache", &e))?;
        Ok(search)
    }

    /// Answers queries one after another, while the lists of the next `ahead` travel; `answers` gets one for each.
    ///
    /// # Errors
    /// [`CacheError::DoesNotFit`] if a query's lists are larger than the cache; what a call says. What was admitted then stays.
    pub(crate) fn run(
        &mut self,
        queries: &[Query],
        mode: Mode,
        k: usize,
        ahead: usize,
        answers: &mut Vec<Vec<Hit>>,
    ) -> Result<Stream, ExperimentError> {
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
                    // It fits once others are done.
                    Err(ExperimentError::Cache(CacheError::DoesNotFit { .. })) if !admitted.is_empty() => break,
                    Err(error) => return Err(error),
                }
                waiting = later;
            }
            // The first of those that wait: admitted above, if not before.
            let Some(one) = admitted.pop_front() else { break };
            stream.copying_us += self.answer(query, one, mode, k, hits)?;
        }
        stream.seconds = began.elapsed().as_secs_f64();
        stream.requests = self.cache.requests;
        Ok(stream)
    }

    /// Makes the lists of a query stay, and enqueues the copies of those that the cache lacks.
    fn admit(&mut self, query: &Query) -> Result<Admitted, ExperimentError> {
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
            // SAFETY: the list's words are page-locked and nobody writes them; its place in the cache has room for them,
            // was nobody's or a list's that no query under way reads, and is read after the event below.
            let enqueued = unsafe {
                sys::cuMemcpyHtoDAsync_v2(to, from as *const _, 4 * list.words.len(), self.copies.cu_stream())
            };
            enqueued.result().map_err(copying)?;
        }
        copied[1].record(&self.copies).map_err(copying)?;
        Ok(Admitted { wanted, copied: Some(copied) })
    }

    /// Answers a query once its lists are there; returns the microseconds that their copies took.
    fn answer(
        &mut self,
        query: &Query,
        admitted: Admitted,
        mode: Mode,
        k: usize,
        hits: &mut Vec<Hit>,
    ) -> Result<f64, ExperimentError> {
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

    /// Where a list is that stays.
    fn address_of(&self, list: &List) -> u64 {
        self.locked.gpu.address(&self.d_cache) + self.cache.place_of(list)
    }

    /// Moves lists within the cache, once nothing reads or writes it any more.
    fn move_lists(&mut self, moves: &[Move]) -> Result<(), GpuError> {
        let gpu = &self.locked.gpu;
        let moving = |e| GpuError::of("moving lists within the cache", &e);
        gpu.stream.synchronize().map_err(moving)?;
        let (cache, bounce) = (gpu.address(&self.d_cache), gpu.address(&self.d_bounce));
        let stream = self.copies.cu_stream();
        for &Move { from, to, len } in moves {
            let mut moved = 0;
            while moved < len {
                let bytes = BOUNCE_BYTES.min(len - moved);
                // SAFETY: both places lie in the cache, and the buffer is as long as what goes through it; earlier copies on
                // this stream are done by then, and so is all that the other stream was given.
                let enqueued = unsafe {
                    result::memcpy_dtod_async(bounce, cache + from + moved, bytes as usize, stream)
                        .and_then(|()| result::memcpy_dtod_async(cache + to + moved, bounce, bytes as usize, stream))
                };
                enqueued.map_err(moving)?;
                moved += bytes;
            }
        }
        // What was on its way has arrived and moved: events that say so don't have to be recorded anew.
        self.copies.synchronize().map_err(moving)
    }

    /// Fills the cache and all that a query writes with ones, so that what is not written shows. The cache is empty.
    #[cfg(test)]
    pub(crate) fn poison(&mut self) -> Result<(), GpuError> {
        let gpu = Arc::clone(&self.locked.gpu);
        super::tests::poison(&gpu, &mut self.d_cache)?;
        super::tests::poison(&gpu, &mut self.d_bounce)?;
        self.searcher.poison()?;
        gpu.stream.synchronize().map_err(|e| GpuError::of("poisoning a buffer", &e))
    }
}

impl Drop for CachedSearch {
    fn drop(&mut self) {
        // Memory must not be freed under a copy: a query that failed leaves the next one's on their way.
        self.locked.gpu.device.context.record_err(self.copies.synchronize());
    }
}
