//! Batches on a GPU: packed, copied, launched, copied back.

use std::ops::Range;
use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg, ValidAsZeroBits};
use tandem_engine::query::Query;
use tandem_engine::search::device::{Device, GpuError, wait};
use tandem_engine::search::gpu::check;
use tandem_engine::search::{Answers, ExecError, Hit, TopK};
use tandem_model::base::ids::DeviceId;

use super::cache::Cache;
use super::kernels::{BatchArgument, Kernels, Report};
use crate::huang::ranges::batch::{Batch, CURSOR_WORDS, Limits, WORDS_AFTER, cut};
use crate::huang::ranges::index::{Norms, RangeIndex};
use crate::huang::ranges::range::{Ranges, check_owners};
use crate::huang::ranges::strategy::Strategy;

/// Maximum shared memory for the threads' keys.
const KEY_BYTES: usize = 44 * 1024;
const WARP: u32 = 32;
const VECTOR_BYTES: usize = 16;
/// Threads of a block among which those of a query are spread. Threads of a warp take different paths and wait for each
/// other; the fewer share a warp, the less they wait, but the more warps share the issue slots.
const SPREAD_THREADS: u32 = 512;
/// The same for strategies that keep their cursors in order, whose paths differ most. A block has at most
/// `BLOCK_THREADS` of kernels/huang/huang.cuh.
const SPREAD_THREADS_OF_ORDERS: u32 = 1024;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) strategy: Strategy,
    /// Threads per query.
    pub(crate) threads: u32,
    pub(crate) ranges: Ranges,
    pub(crate) k: usize,
}

impl Settings {
    /// The paper's document ranges.
    pub(crate) fn published(strategy: Strategy, threads: u32, k: usize) -> Self {
        Self { strategy, threads, ranges: Ranges::AsPublished, k }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) answers: Answers,
    pub(crate) reports: Vec<Report>,
}

/// A GPU with the lists that stay there.
#[derive(Debug)]
pub(crate) struct RangesGpu {
    device: Device,
    stream: Arc<CudaStream>,
    kernels: Kernels,
    index: Arc<RangeIndex>,
    cache: Cache,
    d_norms: Option<CudaSlice<f32>>,
    d_batch: CudaSlice<u8>,
    d_state: CudaSlice<u32>,
    d_local_keys: CudaSlice<u64>,
    d_results: CudaSlice<u64>,
    d_reports: CudaSlice<Report>,
}

impl RangesGpu {
    /// Opens a GPU and copies the lists that stay there, up to `most_bytes`. Returns [`GpuError::NoGpu`] if there is no
    /// such GPU, [`GpuError::DoesNotFit`], or the error of a call.
    pub(crate) fn open(ordinal: DeviceId, index: &Arc<RangeIndex>, most_bytes: u64) -> Result<Self, GpuError> {
        let device = Device::open(ordinal)?;
        let stream = device.new_stream()?;
        let kernels = Kernels::load(&device, &stream)?;
        let cache = Cache::fill(&device, &stream, index, most_bytes)?;
        let copying = |e| GpuError::of("copying norms to the device", &e);
        let d_norms = match index.norms() {
            Norms::Each(norms) => {
                device.check_room(size_of_val(norms.as_slice()) as u64)?;
                Some(stream.clone_htod(norms).map_err(copying)?)
            }
            Norms::All(_) => None,
        };
        Ok(Self {
            d_batch: room(&device, &stream, 1)?,
            d_state: room(&device, &stream, 1)?,
            d_local_keys: room(&device, &stream, 1)?,
            d_results: room(&device, &stream, 1)?,
            d_reports: room(&device, &stream, 1)?,
            device,
            stream,
            kernels,
            index: Arc::clone(index),
            cache,
            d_norms,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.device.info.name
    }

    /// Returns the bytes of the lists that stay in device memory.
    pub(crate) fn cached_bytes(&self) -> u64 {
        self.cache.bytes
    }

    pub(crate) fn cut(&self, queries: &[Query], limits: Limits) -> Vec<Range<usize>> {
        cut(&self.index, queries, &self.cache.table, limits)
    }

    /// Answers a batch and waits for it. All terms must be in the index. Fails if the kernels do not support a query, `k`
    /// or `threads`, or if a call fails; no query has an answer then.
    pub(crate) fn run(&mut self, queries: &[Query], settings: Settings) -> Result<Outcome, ExecError> {
        let Settings { strategy, threads, ranges, k } = settings;
        check_owners(threads)?;
        queries.iter().try_for_each(|query| check(query, k))?;
        if queries.is_empty() {
            return Ok(Outcome::default());
        }
        let copying = |e| GpuError::of("copying a batch", &e);
        let order = longest_first(queries, strategy);
        let batch = self.pack(&order.iter().map(|&number| &queries[number]).collect::<Vec<_>>(), threads, ranges)?;
        let terms = queries.iter().map(|query| query.terms.len());
        let shared = SharedMemory::of(threads as usize, k, terms, self.kernels.shared_bytes);
        self.make_room(&batch, queries.len(), settings, &shared)?;
        #[cfg(debug_assertions)]
        self.poison()?;

        let stream = &Arc::clone(&self.stream);
        // A copy from pageable memory would wait for earlier work without a limit.
        wait(stream).map_err(copying)?;
        stream.memcpy_htod(&batch.bytes, &mut self.d_batch.slice_mut(..batch.bytes.len())).map_err(copying)?;
        let running = |e| GpuError::of(format!("kernel `{}`, {} queries", Kernels::name(strategy), queries.len()), &e);
        let spread_threads = match strategy {
            Strategy::And | Strategy::Or => SPREAD_THREADS,
            Strategy::Wand | Strategy::Bmw => SPREAD_THREADS_OF_ORDERS,
        };
        let spread = (spread_threads / threads).clamp(1, WARP);
        let argument = self.argument(&batch, k, spread, &shared);
        let shape = LaunchConfig {
            grid_dim: (queries.len() as u32, 1, 1),
            block_dim: (threads * spread, 1, 1),
            shared_mem_bytes: shared.bytes as u32,
        };
        let mut launch = stream.launch_builder(self.kernels.of(strategy));
        launch.arg(&argument);
        // SAFETY: the argument is that of the kernels in kernels/huang/. The batch is at its address, and its lists are
        // in it and in the cache, with the blocks and words of the index. State, results, reports and keys are long
        // enough for this batch, and documents are below `num_docs`, the length of the norms. This executor owns all
        // memory and waits for its stream below before it frees any.
        unsafe { launch.launch(shape) }.map_err(running)?;
        wait(stream).map_err(running)?;
        let keys = stream.clone_dtoh(&self.d_results.slice(..queries.len() * k)).map_err(copying)?;
        let reports = stream.clone_dtoh(&self.d_reports.slice(..queries.len())).map_err(copying)?;
        wait(stream).map_err(running)?;

        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &number)| places[number] = place);
        let reports: Vec<Report> = places.iter().map(|&place| reports[place]).collect();
        let mut answers = Answers::default();
        let mut hits: Vec<Hit> = Vec::with_capacity(k);
        for (&place, report) in places.iter().zip(&reports) {
            hits.clear();
            hits.extend(keys[place * k..][..k.min(report.found as usize)].iter().map(|&key| TopK::hit(key)));
            answers.push(&hits);
        }
        Ok(Outcome { answers, reports })
    }

    /// Packs a batch for its place in device memory, which must have room for it.
    fn pack(&mut self, queries: &[&Query], threads: u32, ranges: Ranges) -> Result<Batch, GpuError> {
        let pack = |of: &Self| {
            let at = of.d_batch.device_ptr(&of.stream).0;
            Batch::pack(&of.index, queries, threads, ranges, &of.cache.table, at)
        };
        let batch = pack(self);
        let needed = batch.bytes.len() + size_of::<[u32; WORDS_AFTER]>();
        if needed <= self.d_batch.len() {
            return Ok(batch);
        }
        self.d_batch = room(&self.device, &self.stream, needed)?;
        Ok(pack(self))
    }

    /// Makes room for all outputs of the kernels.
    fn make_room(
        &mut self,
        batch: &Batch,
        queries: usize,
        of: Settings,
        shared: &SharedMemory,
    ) -> Result<(), GpuError> {
        let (device, stream) = (&self.device, &self.stream);
        ensure(device, stream, &mut self.d_state, batch.state_words as usize)?;
        ensure(device, stream, &mut self.d_results, queries * of.k)?;
        ensure(device, stream, &mut self.d_reports, queries)?;
        if !shared.holds_local_keys {
            ensure(device, stream, &mut self.d_local_keys, queries * of.threads as usize * of.k)?;
        }
        Ok(())
    }

    fn argument(&self, batch: &Batch, k: usize, spread: u32, shared: &SharedMemory) -> BatchArgument {
        let stream = &self.stream;
        let at = self.d_batch.device_ptr(stream).0;
        BatchArgument {
            queries: at,
            terms: at + batch.terms_at,
            norms: self.d_norms.as_ref().map_or(0, |norms| norms.device_ptr(stream).0),
            state: self.d_state.device_ptr(stream).0,
            local_keys: if shared.holds_local_keys { 0 } else { self.d_local_keys.device_ptr(stream).0 },
            results: self.d_results.device_ptr(stream).0,
            reports: self.d_reports.device_ptr(stream).0,
            num_docs: self.index.num_docs(),
            k: k as u32,
            norm: if let Norms::All(norm) = self.index.norms() { *norm } else { 0.0 },
            spread,
            room: shared.cursor_vectors as u32,
            reserved: 0,
        }
    }

    /// Fills all outputs with ones, which exposes reads of unwritten memory.
    #[cfg(debug_assertions)]
    fn poison(&mut self) -> Result<(), GpuError> {
        let stream = Arc::clone(&self.stream);
        let fill = |address: u64, bytes: usize| {
            // SAFETY: the buffer has that many bytes and is used on this stream alone.
            unsafe { cudarc::driver::result::memset_d8_async(address, 0xff, bytes, stream.cu_stream()) }
                .map_err(|e| GpuError::of("poisoning a buffer", &e))
        };
        fill(self.d_state.device_ptr(&stream).0, self.d_state.num_bytes())?;
        fill(self.d_local_keys.device_ptr(&stream).0, self.d_local_keys.num_bytes())?;
        fill(self.d_results.device_ptr(&stream).0, self.d_results.num_bytes())?;
        fill(self.d_reports.device_ptr(&stream).0, self.d_reports.num_bytes())
    }
}

/// Layout of a thread block's shared memory: cursors of the largest query whose cursors fit, the merged keys, the keys of
/// each thread if they fit, a count per thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SharedMemory {
    bytes: usize,
    cursor_vectors: usize,
    holds_local_keys: bool,
}

impl SharedMemory {
    /// Lays out at most `most_bytes` for queries of so many terms.
    fn of(threads: usize, k: usize, terms: impl Iterator<Item = usize>, most_bytes: usize) -> Self {
        let without = 8 * k + 4 * threads;
        let with = without + 8 * k * threads;
        let holds_local_keys = with <= KEY_BYTES;
        let other = if holds_local_keys { with } else { without };
        // As `shared_vectors_of` in huang.cuh.
        let vectors = terms.map(|terms| threads * ((terms * CURSOR_WORDS / 4) | 1));
        let cursor_vectors = vectors.filter(|vectors| VECTOR_BYTES * vectors + other <= most_bytes).max().unwrap_or(0);
        Self { bytes: VECTOR_BYTES * cursor_vectors + other, cursor_vectors, holds_local_keys }
    }
}

/// Allocates zeroed device memory, at least one item so that it has an address.
fn room<T: DeviceRepr + ValidAsZeroBits>(
    device: &Device,
    stream: &Arc<CudaStream>,
    len: usize,
) -> Result<CudaSlice<T>, GpuError> {
    device.check_room((len.max(1) * size_of::<T>()) as u64)?;
    stream.alloc_zeros(len.max(1)).map_err(|e| GpuError::of("allocating buffers", &e))
}

/// Makes `buffer` at least `len` long; its contents may be lost.
fn ensure<T: DeviceRepr + ValidAsZeroBits>(
    device: &Device,
    stream: &Arc<CudaStream>,
    buffer: &mut CudaSlice<T>,
    len: usize,
) -> Result<(), GpuError> {
    if buffer.len() < len {
        *buffer = room(device, stream, len.next_power_of_two())?;
    }
    Ok(())
}

/// The numbers of the queries, the longest first. A query is a thread block, and blocks begin in order: so a batch does not end
/// with a long one.
fn longest_first(queries: &[Query], strategy: Strategy) -> Vec<usize> {
    let work = |query: &Query| -> u64 {
        let lens = query.terms.iter().map(|term| u64::from(term.doc_freq));
        if strategy == Strategy::And { lens.min().unwrap_or(0) } else { lens.sum() }
    };
    let mut order: Vec<usize> = (0..queries.len()).collect();
    order.sort_by_cached_key(|&number| std::cmp::Reverse(work(&queries[number])));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_holds_what_fits_of_every_thread_count_and_k() {
        let of = |threads, k, terms: &[usize]| SharedMemory::of(threads, k, terms.iter().copied(), 225 * 1024);
        let small =
            SharedMemory { bytes: 16 * 64 * 21 + 80 + 256 + 5120, cursor_vectors: 64 * 21, holds_local_keys: true };
        assert_eq!(of(64, 10, &[2, 3]), small);
        // A query of 64 terms has its cursors in device memory.
        assert_eq!(of(64, 10, &[3, 64, 1]), small);
        assert_eq!(of(512, 10, &[4]).cursor_vectors, 0);
        assert!(!of(512, 1000, &[2]).holds_local_keys);
        for threads in (32..=512).step_by(32) {
            for k in [1, 10, 20, 100, 1000] {
                let shared = of(threads, k, &[1, 2, 3, 4, 5, 8, 64]);
                assert!(shared.bytes <= 225 * 1024 && shared.cursor_vectors >= 7 * threads, "{threads}, {k}");
            }
        }
    }
}
