//! Running queries on a GPU.

use std::sync::Arc;

use cudarc::driver::sys::{CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE, CUevent_flags};
use cudarc::driver::{CudaEvent, CudaStream, DevicePtrMut, DriverError, PinnedHostSlice};

use super::device::{Device, cuda};
use super::index::DeviceIndex;
use super::kernels::{Buffers, Kernels, QueryArgument};
use crate::exec::{ExecError, Execution, Executor, Hit, MAX_K, TopK};
use crate::ids::ProcessorKind;
use crate::index::{Bm25, Index};
use crate::query::{Mode, Query};

/// What the place for the number of results holds until a kernel has written it.
const UNWRITTEN: u64 = u64::MAX;

/// One stream of the machine's first GPU.
#[derive(Debug)]
pub struct GpuExecutor {
    device: Device,
    kernels: Arc<Kernels>,
    index: Arc<DeviceIndex>,
    stream: Arc<CudaStream>,
    buffers: Buffers,
    /// How many results, then their keys: page-locked, written by the GPU itself.
    results: PinnedHostSlice<u64>,
    started: CudaEvent,
    finished: CudaEvent,
    /// Why nothing can be run any more: a fault in a kernel ends its context.
    broken: Option<String>,
}

impl GpuExecutor {
    /// Copies `index` to the machine's first GPU and makes ready to search it with `bm25`.
    ///
    /// # Errors
    /// [`ExecError::NoGpu`] if there is none to use, [`ExecError::DoesNotFit`] if its memory is too small.
    pub fn new(index: &Arc<Index>, bm25: Bm25) -> Result<Self, ExecError> {
        let device = Device::open()?;
        let stream = device.context.new_stream().map_err(|e| cuda("making a stream", &e))?;
        let kernels = Arc::new(Kernels::load(&device, &stream)?);
        let buffer_bytes = Buffers::bytes(&device, index.num_docs());
        let index = Arc::new(DeviceIndex::upload(&device, &stream, index, bm25, buffer_bytes)?);
        Self::on_stream(device, kernels, index, stream)
    }

    /// Another stream of the same GPU, which shares this one's copy of the index.
    ///
    /// # Errors
    /// If device memory is too small for its buffers.
    pub fn for_another_stream(&self) -> Result<Self, ExecError> {
        let needed_bytes = Buffers::bytes(&self.device, self.index.host.num_docs());
        let free_bytes = self.device.free_bytes()?;
        if needed_bytes > free_bytes {
            return Err(ExecError::DoesNotFit { needed_bytes, free_bytes });
        }
        let stream = self.device.context.new_stream().map_err(|e| cuda("making a stream", &e))?;
        Self::on_stream(self.device.clone(), Arc::clone(&self.kernels), Arc::clone(&self.index), stream)
    }

    fn on_stream(
        device: Device,
        kernels: Arc<Kernels>,
        index: Arc<DeviceIndex>,
        stream: Arc<CudaStream>,
    ) -> Result<Self, ExecError> {
        let allocate = || {
            let buffers = Buffers::new(&device, &stream, index.host.num_docs())?;
            // Not write-combined: the CPU reads it.
            let flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
            // SAFETY: every word is written below before it is read.
            let mut results = unsafe { device.context.alloc_pinned_with_flags::<u64>(1 + MAX_K, flags) }?;
            results.as_mut_slice()?.fill(UNWRITTEN);
            let event = || device.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
            Ok((buffers, results, event()?, event()?))
        };
        let (buffers, results, started, finished) = allocate().map_err(|e| cuda("allocating buffers", &e))?;
        Ok(Self { device, kernels, index, stream, buffers, results, started, finished, broken: None })
    }

    /// Searches many queries at once: `hits[i]` becomes what [`search`](Executor::search) finds for `queries[i]`.
    ///
    /// The device's time is that of all of them together.
    ///
    /// # Errors
    /// As [`search`](Executor::search); then `hits` holds nothing that is worth reading.
    pub fn search_batch(
        &mut self,
        queries: &[Query],
        mode: Mode,
        k: usize,
        hits: &mut Vec<Vec<Hit>>,
    ) -> Result<Execution, ExecError> {
        hits.resize_with(queries.len(), Vec::new);
        let mut device_us = 0.0;
        for (query, hits) in queries.iter().zip(hits) {
            device_us += self.search(query, mode, k, hits)?.device_us.unwrap_or(0.0);
        }
        Ok(Execution { device_us: Some(device_us) })
    }

    /// Runs the chain of kernels and waits for it. Returns the device's time in microseconds.
    fn execute(&mut self, query: &mut QueryArgument) -> Result<f64, DriverError> {
        self.results.as_mut_slice()?[0] = UNWRITTEN;
        if cfg!(debug_assertions) {
            self.poison_buffers()?;
        }
        let stream = &self.stream;
        let index = self.index.argument(stream);
        let results_at = self.results.as_mut_ptr()? as u64;

        self.started.record(stream)?;
        stream.memset_zeros(&mut self.buffers.d_state)?;
        if query.intersects() {
            self.kernels.score_intersect(stream, &index, query, &mut self.buffers)?;
        }
        if query.unites() {
            self.kernels.score_union(stream, &index, query, &mut self.buffers)?;
        }
        // SAFETY: `results` has that many words, and the stream is synchronised below; should that fail, the context is
        // dead and runs no kernel any more.
        unsafe { self.kernels.merge_topk(stream, query, &mut self.buffers, &results_at) }?;
        self.finished.record(stream)?;
        self.finished.synchronize()?;
        Ok(f64::from(self.started.elapsed_ms(&self.finished)?) * 1e3)
    }

    /// Fills the buffers with keys better than any real one, so that a kernel that reads what none has written shows up.
    fn poison_buffers(&mut self) -> Result<(), DriverError> {
        let stream = &self.stream;
        for buffer in [&mut self.buffers.d_candidates, &mut self.buffers.d_survivors] {
            let bytes = buffer.num_bytes();
            let (pointer, _guard) = buffer.device_ptr_mut(stream);
            // SAFETY: the buffer has that many bytes and is used on this stream alone.
            unsafe { cudarc::driver::result::memset_d8_async(pointer, 0xff, bytes, stream.cu_stream()) }?;
        }
        self.results.as_mut_slice()?.fill(UNWRITTEN);
        Ok(())
    }

    /// The keys that the last execution found, best first.
    fn keys(&self, k: usize) -> Result<&[u64], String> {
        let results = self.results.as_slice().map_err(|e| e.to_string())?;
        let count = results[0];
        if count > k as u64 {
            return Err(format!("{count} results where at most {k} are expected"));
        }
        Ok(&results[1..=count as usize])
    }
}

/// What was being done, for an error: the kernels that run in `query` and the query itself.
fn doing(query: &Query, argument: &QueryArgument) -> String {
    let mut kernels = Vec::new();
    if argument.intersects() {
        kernels.push("`score_intersect`");
    }
    if argument.unites() {
        kernels.push("`score_union`");
    }
    kernels.push("`merge_topk`");
    format!("kernels {} for query {}", kernels.join(", "), query.label)
}

impl Executor for GpuExecutor {
    fn kind(&self) -> ProcessorKind {
        ProcessorKind::Gpu
    }

    fn device(&self) -> String {
        self.device.info.name.clone()
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        hits.clear();
        if k == 0 || k > MAX_K {
            return Err(ExecError::BadK(k));
        }
        if query.terms.is_empty() {
            return Ok(Execution { device_us: Some(0.0) });
        }
        let use_bounds = self.index.bm25 == self.index.host.built_with();
        let terms = query.terms.iter().take(Query::MAX_TERMS).map(|term| self.index.term(term));
        let mut argument = QueryArgument::new(terms, mode, k, use_bounds);
        if let Some(message) = &self.broken {
            return Err(ExecError::Cuda { doing: doing(query, &argument), message: message.clone() });
        }
        let device_us = match self.execute(&mut argument) {
            Ok(device_us) => device_us,
            Err(error) => {
                let error = cuda(doing(query, &argument), &error);
                if self.stream.synchronize().is_err() {
                    self.broken = Some(format!("the GPU stopped at an earlier error: {error}"));
                }
                return Err(error);
            }
        };
        match self.keys(k) {
            Ok(keys) => hits.extend(keys.iter().map(|&key| TopK::hit(key))),
            Err(message) => return Err(ExecError::Cuda { doing: doing(query, &argument), message }),
        }
        Ok(Execution { device_us: Some(device_us) })
    }
}
