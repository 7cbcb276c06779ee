//! The buffers of one chunk of a batch: what travels there, what kernels write, what comes back.

use std::sync::Arc;

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DriverError};

use super::arguments::{StateArgument, UNWRITTEN};
use super::kernels::num_candidates;
use crate::gpu::{Device, Pinned};

/// Queries of a chunk at most.
pub(super) const CHUNK_QUERIES: usize = 1024;
/// Candidates of all queries of a chunk: 64 MiB.
const CHUNK_CANDIDATES: usize = 8 << 20;
/// Words that the queries of a chunk take on their way to the device. A chunk ends where the next query may not fit.
pub(super) const INPUT_WORDS: usize = 1 << 20;

/// What one chunk needs while it is under way.
#[derive(Debug)]
pub(super) struct BatchSlot {
    pub(super) stream: Arc<CudaStream>,
    pub(super) input: Pinned<u32>,
    pub(super) d_input: CudaSlice<u32>,
    pub(super) d_states: CudaSlice<StateArgument>,
    pub(super) d_candidates: CudaSlice<u64>,
    pub(super) results: Pinned<u64>,
    pub(super) started: CudaEvent,
    pub(super) scored: CudaEvent,
    pub(super) finished: CudaEvent,
    /// Which queries of the batch it holds, and those that are better run alone.
    pub(super) queries: Vec<usize>,
    pub(super) alone: Vec<usize>,
}

impl BatchSlot {
    /// Device memory that a slot for queries of an index of `num_docs` takes.
    pub(super) fn bytes(num_docs: u32) -> u64 {
        (4 * INPUT_WORDS + 2 * CHUNK_QUERIES * size_of::<StateArgument>() + 8 * num_keys(num_docs)) as u64
    }

    /// A slot for queries of an index of `num_docs`.
    pub(super) fn new(device: &Device, num_docs: u32) -> Result<Self, DriverError> {
        let context = &device.context;
        let stream = context.new_stream()?;
        let event = || context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT));
        // SAFETY: of the input that is read which has been copied, states are cleared, and of candidates those are
        // read that have been written.
        unsafe {
            Ok(Self {
                input: Pinned::for_input(device, INPUT_WORDS)?,
                d_input: stream.alloc(INPUT_WORDS)?,
                d_states: stream.alloc(2 * CHUNK_QUERIES)?,
                d_candidates: stream.alloc(num_keys(num_docs))?,
                results: Pinned::for_results(device, CHUNK_QUERIES * (1 + 16), UNWRITTEN)?,
                started: event()?,
                scored: event()?,
                finished: event()?,
                queries: Vec::new(),
                alone: Vec::new(),
                stream,
            })
        }
    }
}

/// Candidates that a chunk's queries have room for, all together.
fn num_keys(num_docs: u32) -> usize {
    num_candidates(num_docs).max(CHUNK_CANDIDATES)
}
