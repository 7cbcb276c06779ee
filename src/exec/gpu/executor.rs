//! Running queries on a GPU, one at a time.

use std::sync::Arc;

use cudarc::driver::sys::{self, CUevent_flags};
use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DevicePtrMut, DriverError};

use super::accepted::MAX_TERMS;
use super::arguments::{BatchArgument, FEW_TERMS, LoneArgument, StateArgument, UNWRITTEN};
use super::kernels::{Kernels, LONE_K, LONE_RESULTS, QueryMemory, num_candidates};
use super::lists::DeviceLists;
use super::plan::Plan;
use super::results::{poison, read_results};
use super::slot::BatchSlot;
use super::upload::UploadReport;
use crate::exec::{ExecError, Execution, Executor, Hit};
use crate::gpu::{Device, GpuError, Pinned};
use crate::ids::DeviceId;
use crate::index::{Bm25, Index};
use crate::machine::Class;
use crate::query::{Mode, Query};

/// How often the results are looked at before the driver is asked for errors.
const SPINS: u32 = 1 << 14;

/// One stream of a GPU.
#[derive(Debug)]
pub struct GpuExecutor {
    pub(super) device: Device,
    pub(super) kernels: Arc<Kernels>,
    pub(super) lists: Arc<DeviceLists>,
    pub(super) stream: Arc<CudaStream>,
    buffers: Buffers,
    started: CudaEvent,
    /// Between scoring and sorting, where these are kernels of their own.
    pub(super) scored: CudaEvent,
    /// The microseconds from there to the end, of what ran last.
    pub(super) topk_us: f64,
    finished: CudaEvent,
    /// What batches need, once there has been one.
    pub(super) slots: Vec<BatchSlot>,
    /// Why nothing can be run any more: a fault in a kernel ends its context.
    pub(super) broken: Option<String>,
}

/// What the kernels of one query write. Allocated once for an executor.
#[derive(Debug)]
struct Buffers {
    /// Of the documents with all terms, and of those with any.
    d_states: CudaSlice<StateArgument>,
    d_candidates: CudaSlice<u64>,
    /// How many results, then their keys: page-locked, written by the GPU itself.
    results: Pinned<u64>,
}

impl Buffers {
    /// Device memory that the buffers for an index of `num_docs` take.
    fn bytes(num_docs: u32) -> u64 {
        (2 * size_of::<StateArgument>() + 8 * num_candidates(num_docs)) as u64
    }

    fn new(device: &Device, stream: &Arc<CudaStream>, num_docs: u32) -> Result<Self, DriverError> {
        // SAFETY: kernels read as many keys as they have written.
        let d_candidates = unsafe { stream.alloc(num_candidates(num_docs)) }?;
        let results = Pinned::for_results(device, LONE_RESULTS, UNWRITTEN)?;
        Ok(Self { d_states: stream.alloc_zeros(2)?, d_candidates, results })
    }
}

impl GpuExecutor {
    /// Copies `index` to the machine's first GPU and makes ready to search it with `bm25`.
    ///
    /// # Errors
    /// [`GpuError::NoGpu`] if there is none to use, [`GpuError::DoesNotFit`] if its memory is too small.
    pub fn new(index: &Arc<Index>, bm25: Bm25) -> Result<Self, ExecError> {
        Self::with_progress(index, bm25, &|_, _| ())
    }

    /// As [`GpuExecutor::new`]; `progress` is called with the bytes that have been copied so far, and with all there
    /// are.
    ///
    /// # Errors
    /// As [`GpuExecutor::new`].
    pub fn with_progress(index: &Arc<Index>, bm25: Bm25, progress: &dyn Fn(u64, u64)) -> Result<Self, ExecError> {
        Self::on_device(DeviceId(0), index, bm25, progress)
    }

    /// As [`GpuExecutor::with_progress`], on the GPU of this number.
    ///
    /// # Errors
    /// As [`GpuExecutor::new`].
    pub fn on_device(
        ordinal: DeviceId,
        index: &Arc<Index>,
        bm25: Bm25,
        progress: &dyn Fn(u64, u64),
    ) -> Result<Self, ExecError> {
        let device = Device::open(ordinal)?;
        let stream = device.new_stream()?;
        let kernels = Arc::new(Kernels::load(&device, &stream)?);
        let reserved_bytes = Buffers::bytes(index.num_docs());
        let lists = DeviceLists::upload(&device, &stream, &kernels, index, bm25, reserved_bytes, progress)?;
        Self::on_stream(device, kernels, Arc::new(lists), stream)
    }

    /// Another stream of the same GPU, which shares this one's copy of the index.
    ///
    /// # Errors
    /// If device memory is too small for its buffers.
    pub fn for_another_stream(&self) -> Result<Self, ExecError> {
        let needed_bytes = Buffers::bytes(self.lists.host.num_docs());
        self.device.check_room(needed_bytes)?;
        let stream = self.device.new_stream()?;
        Self::on_stream(self.device.clone(), Arc::clone(&self.kernels), Arc::clone(&self.lists), stream)
    }

    fn on_stream(
        device: Device,
        kernels: Arc<Kernels>,
        lists: Arc<DeviceLists>,
        stream: Arc<CudaStream>,
    ) -> Result<Self, ExecError> {
        let allocate = || {
            let event = || device.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
            let buffers = Buffers::new(&device, &stream, lists.host.num_docs())?;
            Ok((buffers, [event()?, event()?, event()?]))
        };
        let (buffers, [started, scored, finished]) = allocate().map_err(|e| GpuError::of("allocating buffers", &e))?;
        let (slots, topk_us, broken) = (Vec::new(), 0.0, None);
        Ok(Self { device, kernels, lists, stream, buffers, started, scored, topk_us, finished, slots, broken })
    }

    /// What the upload of the index took.
    #[must_use]
    pub fn upload_report(&self) -> UploadReport {
        self.lists.report
    }

    /// Microseconds of the device from scores to sorted results: of the last query, or of the last chunk of a batch.
    pub(crate) fn topk_us(&self) -> f64 {
        self.topk_us
    }

    /// Runs the kernels of a query and waits for its results. Returns the device's time in microseconds.
    fn execute(&mut self, plan: &Plan) -> Result<f64, DriverError> {
        // SAFETY: the kernels of the query before have ended, or written the last of their results; after an error all
        // were waited for, and none is started any more if that failed.
        let results = unsafe { self.buffers.results.as_mut_slice() };
        results[..=plan.query.k as usize].fill(UNWRITTEN);
        results[LONE_RESULTS - 2..].fill(UNWRITTEN);
        if cfg!(debug_assertions) {
            poison(&self.stream, &mut self.buffers.d_candidates)?;
        }
        if plan.by_tiles || plan.query.k > LONE_K {
            self.execute_in_steps(plan)
        } else if plan.terms.len() <= FEW_TERMS {
            self.execute_at_once::<FEW_TERMS>(plan)
        } else {
            self.execute_at_once::<{ MAX_TERMS }>(plan)
        }
    }

    /// The short way: each stage is one launch, which leaves the states clear and the results in the host's memory.
    /// Nothing else is asked of the driver.
    fn execute_at_once<const TERMS: usize>(&mut self, plan: &Plan) -> Result<f64, DriverError> {
        let (stream, kernels, buffers) = (&self.stream, &self.kernels, &mut self.buffers);
        let lists = self.lists.argument(stream);
        let results_at = buffers.results.address();
        let states = buffers.d_states.device_ptr_mut(stream).0;
        let candidates = buffers.d_candidates.device_ptr_mut(stream).0;
        let capacity = buffers.d_candidates.len() as u32;
        let mut memory = QueryMemory { states, gates: 0, candidates };
        for needs_all in [true, false] {
            if plan.mode == (if needs_all { Mode::Or } else { Mode::And }) {
                continue;
            }
            let (lone, num_items) = plan.alone::<TERMS>(needs_all, kernels.resident_warps());
            let num_drivers = plan.num_drivers(needs_all) as u32;
            let needs = u32::from(needs_all);
            let batch =
                BatchArgument { num_drivers, num_items, needs_all: needs, capacity, ..BatchArgument::default() };
            let is_last_stage = !needs_all || plan.mode == Mode::And;
            // SAFETY: the batch points nowhere; there are two states, which are clear, and room for every document; the
            // terms are the index's own; `results` has that many words, and lives as long as the stream.
            unsafe { kernels.score_lone(stream, &lists, &batch, &lone, &memory, results_at, is_last_stage) }?;
            memory = QueryMemory { states: states + size_of::<StateArgument>() as u64, gates: states, candidates };
        }
        let count = self.await_result(0)?;
        let num_keys = if count <= u64::from(plan.query.k) { count as usize } else { 0 };
        for word in 1..=num_keys {
            self.await_result(word)?;
        }
        self.topk_us = self.await_result(LONE_RESULTS - 1)? as f64 * 1e-3;
        Ok(self.await_result(LONE_RESULTS - 2)? as f64 * 1e-3)
    }

    /// Looks at a word of the results until a kernel has written it: sooner than the kernel's end is known, and
    /// without the kernel having to wait until the other words have arrived.
    fn await_result(&self, word: usize) -> Result<u64, DriverError> {
        loop {
            for _ in 0..SPINS {
                let value = self.buffers.results.read_now(word);
                if value != UNWRITTEN {
                    return Ok(value);
                }
                std::hint::spin_loop();
            }
            // An error would leave it unwritten for ever, and so would a fault of ours.
            // SAFETY: the stream is this executor's.
            let status = unsafe { sys::cuStreamQuery(self.stream.cu_stream()) };
            match status {
                sys::CUresult::CUDA_ERROR_NOT_READY => {}
                // It may have been written after the last look.
                sys::CUresult::CUDA_SUCCESS => return Ok(self.buffers.results.read_now(word)),
                error => return Err(DriverError(error)),
            }
        }
    }

    /// The long way, for many results and for queries that go through all lists: one kernel scores, another one sorts.
    fn execute_in_steps(&mut self, plan: &Plan) -> Result<f64, DriverError> {
        let (stream, kernels, buffers) = (&self.stream, &self.kernels, &mut self.buffers);
        let lists = self.lists.argument(stream);
        let results_at = buffers.results.address();
        let warps = kernels.resident_warps();
        self.started.record(stream)?;
        let states = buffers.d_states.device_ptr_mut(stream).0;
        let candidates = buffers.d_candidates.device_ptr_mut(stream).0;
        let mut memory = QueryMemory { states, gates: 0, candidates };
        let mut batch = BatchArgument { capacity: buffers.d_candidates.len() as u32, ..BatchArgument::default() };
        let mut lone = LoneArgument::default();
        if plan.mode != Mode::Or {
            (lone, batch.num_items) = plan.alone(true, warps);
            batch = BatchArgument { num_drivers: 1, needs_all: 1, ..batch };
            // SAFETY: the batch points nowhere; there are two states, which are clear, and room for every document; the
            // terms are the index's own.
            unsafe { kernels.score_drivers(stream, &lists, &batch, &lone, &memory) }?;
        }
        if plan.mode != Mode::And {
            if plan.mode == Mode::AndOr {
                memory = QueryMemory { states: states + size_of::<StateArgument>() as u64, gates: states, candidates };
            }
            (lone, batch.num_items) = plan.alone(false, warps);
            batch = BatchArgument { num_drivers: plan.num_drivers(false) as u32, needs_all: 0, ..batch };
            if plan.by_tiles {
                // SAFETY: as above.
                unsafe { kernels.score_union(stream, &lists, &lone, &memory) }?;
            } else {
                // SAFETY: as above.
                unsafe { kernels.score_drivers(stream, &lists, &batch, &lone, &memory) }?;
            }
        }
        self.scored.record(stream)?;
        // SAFETY: as above; `results` has 1 + MAX_K words, and the stream is synchronised below; should that fail, the
        // context is dead and runs no kernel any more.
        unsafe { kernels.merge_topk(stream, &batch, &lone, &memory, results_at, 0, 1) }?;
        stream.memset_zeros(&mut buffers.d_states)?;
        self.finished.record(stream)?;
        self.finished.synchronize()?;
        self.topk_us = f64::from(self.scored.elapsed_ms(&self.finished)?) * 1e3;
        Ok(f64::from(self.started.elapsed_ms(&self.finished)?) * 1e3)
    }

    /// Notes that the device is lost if it is, and makes an error of a failed call.
    pub(super) fn failed(&mut self, doing: String, error: &DriverError) -> ExecError {
        let error = GpuError::of(doing, error);
        // A launch that was refused leaves what the stages before it did.
        let cleared = self.stream.memset_zeros(&mut self.buffers.d_states);
        if cleared.and_then(|()| self.stream.synchronize()).is_err() {
            self.broken = Some(format!("the GPU stopped at an earlier error: {error}"));
        }
        error.into()
    }

    /// An error if the device is lost.
    pub(super) fn check(&self, doing: impl FnOnce() -> String) -> Result<(), ExecError> {
        match &self.broken {
            Some(message) => Err(GpuError::Failed { doing: doing(), message: message.clone() }.into()),
            None => Ok(()),
        }
    }
}

/// What was being done, for an error: the kernels that run in `query` and the query itself.
fn doing(query: &Query, plan: &Plan) -> String {
    let kernels = match (plan.by_tiles, plan.mode) {
        (true, Mode::Or) => "kernels `score_union`, `merge_topk`",
        (true, _) => "kernels `score_drivers`, `score_union`, `merge_topk`",
        (false, _) if plan.query.k > LONE_K => "kernels `score_drivers`, `merge_topk`",
        (false, _) => "kernel `score_lone`",
    };
    format!("{kernels} for query {}", query.label)
}

impl Executor for GpuExecutor {
    fn class(&self) -> Class {
        Class::GPU
    }

    fn device(&self) -> String {
        self.device.info.name.clone()
    }

    fn search(&mut self, query: &Query, mode: Mode, k: usize, hits: &mut Vec<Hit>) -> Result<Execution, ExecError> {
        hits.clear();
        let plan = Plan::new(&self.lists, query, mode, k)?;
        if query.terms.is_empty() {
            return Ok(Execution { device_us: Some(0.0) });
        }
        self.check(|| doing(query, &plan))?;
        let device_us = self.execute(&plan).map_err(|error| self.failed(doing(query, &plan), &error))?;
        let failed = |message| GpuError::Failed { doing: doing(query, &plan), message };
        // SAFETY: `execute` has waited for all of the results.
        read_results(unsafe { self.buffers.results.as_slice() }, k, hits).map_err(failed)?;
        Ok(Execution { device_us: Some(device_us) })
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::lists::tests::open;
    use super::*;
    use crate::exec::cpu::CpuExecutor;
    use crate::ids::QueryId;

    const ALONE: &str = "exec::gpu::executor::tests::a_fault_alone_in_its_process";

    #[test]
    fn gpu_fault_names_kernel_and_query_and_the_cpu_goes_on() {
        if open().is_none() {
            return;
        }
        // A fault ends the device's context for a whole process: it gets one of its own.
        let child =
            Command::new(std::env::current_exe().unwrap()).args(["--exact", ALONE, "--ignored"]).output().unwrap();
        let said = String::from_utf8_lossy(&child.stdout);
        assert!(
            child.status.success() && said.contains("1 passed"),
            "{said}{}",
            String::from_utf8_lossy(&child.stderr)
        );
    }

    #[test]
    #[ignore = "ends its process's device context: the test above runs it"]
    fn a_fault_alone_in_its_process() {
        if open().is_none() {
            return;
        }
        let list = |step: usize| (0..10_000).step_by(step).map(|doc| (doc, 1 + doc % 3)).collect();
        let lists: [(&str, Vec<(u32, u32)>); 2] = [("rare", list(7)), ("frequent", list(2))];
        let index = Arc::new(Index::from_lists(&lists).unwrap());
        let query = Query::prepare(QueryId(0), "seven", &["rare", "frequent"], &index).unwrap();
        let mut gpu = GpuExecutor::new(&index, index.built_with()).unwrap();
        let mut cpu = CpuExecutor::new(Arc::clone(&index), index.built_with());
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        gpu.search(&query, Mode::And, 10, &mut found).unwrap();
        cpu.search(&query, Mode::And, 10, &mut expected).unwrap();
        assert_eq!(found, expected);

        let mut plan = Plan::new(&gpu.lists, &query, Mode::And, 10).unwrap();
        plan.terms[0].first_block = u32::MAX; // 64 GiB behind the first block: nothing is there
        let error = gpu.execute(&plan).map_err(|error| gpu.failed(doing(&query, &plan), &error)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("`score_lone`") && text.contains("query seven") && text.contains("CUDA_ERROR"), "{text}");

        let stopped = "stopped at an earlier error";
        let text = gpu.search(&query, Mode::And, 10, &mut found).unwrap_err().to_string();
        assert!(text.contains("query seven") && text.contains(stopped), "{text}");
        let queries = [query.clone(), query.clone()];
        let text = gpu.search_batch(&queries, Mode::And, 10, &mut Vec::new()).unwrap_err().to_string();
        assert!(text.contains("a batch of 2 queries") && text.contains(stopped), "{text}");
        cpu.search(&query, Mode::And, 10, &mut found).unwrap();
        assert_eq!(found, expected);
    }
}
