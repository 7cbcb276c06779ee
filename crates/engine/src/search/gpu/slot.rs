//! The buffers of one batch: its input, device memory, and results.
//!
//! All buffers are allocated with the executor. Kernels write results word by word to page-locked memory. An unwritten
//! word is [`UNWRITTEN`] and is reset once it has been read, so a slot is ready for the next batch after the last word
//! of this one.

use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut, DriverError, sys};

use super::arguments::{BatchArgument, RunArgument, StateArgument, TOO_MANY, UNWRITTEN};
use super::batch::{Batch, BatchCapacity, Launches, Parallelism};
use super::kernels::{Kernels, QueryMemory, Search};
use super::lists::DeviceLists;
use crate::search::device::wait::{is_idle_in_time, wait};
use crate::search::device::{Device, Pinned};
use crate::search::{Hit, TopK};

/// Polls of a word between queries for driver errors.
const SPINS: u32 = 1 << 14;

#[derive(Debug)]
pub(crate) struct BatchSlot {
    pub(crate) stream: Arc<CudaStream>,
    pub(crate) batch: Batch,
    pub(crate) room: BatchCapacity,
    pub(crate) results: Pinned<u64>,
    /// The word of the batch's end statistics, if a batch is in flight.
    end_at: Option<usize>,
    /// Polls since the last driver query.
    looks: u32,
    /// When the driver was first asked for the batch.
    waited_since: Option<Instant>,
    input: Pinned<u32>,
    d_input: CudaSlice<u32>,
    d_run: CudaSlice<RunArgument>,
    /// Places that warps took in all launches so far, modulo 2^32.
    taken: u32,
    d_states: CudaSlice<StateArgument>,
    d_candidates: CudaSlice<u64>,
}

impl BatchSlot {
    /// Device memory of a slot in bytes.
    pub(crate) fn bytes(room: &BatchCapacity) -> u64 {
        (4 * room.input_words
            + size_of::<RunArgument>()
            + size_of::<StateArgument>() * room.entries
            + 8 * room.candidates) as u64
    }

    pub(crate) fn new(device: &Device, stream: Arc<CudaStream>, room: BatchCapacity) -> Result<Self, DriverError> {
        // SAFETY: only copied input and written candidates are read.
        let (d_input, d_candidates) = unsafe { (stream.alloc(room.input_words)?, stream.alloc(room.candidates)?) };
        Ok(Self {
            batch: Batch::default(),
            results: Pinned::for_results(device, room.result_words, UNWRITTEN)?,
            end_at: None,
            looks: 0,
            waited_since: None,
            input: Pinned::for_input(device, room.input_words)?,
            d_input,
            d_run: stream.alloc_zeros(1)?,
            taken: 0,
            d_states: stream.alloc_zeros(room.entries)?,
            d_candidates,
            stream,
            room,
        })
    }

    pub(crate) fn memory(&mut self) -> QueryMemory {
        let stream = &self.stream;
        QueryMemory {
            run: self.d_run.device_ptr_mut(stream).0,
            states: self.d_states.device_ptr_mut(stream).0,
            candidates: self.d_candidates.device_ptr_mut(stream).0,
            results: self.results.address(),
        }
    }

    /// Capacity for candidates of all queries.
    pub(crate) fn num_candidates(&self) -> u32 {
        self.d_candidates.len() as u32
    }

    pub(crate) fn launch(
        &mut self,
        kernels: &Kernels,
        lists: &DeviceLists,
        machine: Parallelism,
    ) -> Result<(), DriverError> {
        self.waited_since = None;
        if self.batch.is_empty() {
            return Ok(());
        }
        let launches = self.batch.finish(machine);
        let small = self.batch.small_input(&launches);
        if cfg!(debug_assertions) {
            self.poison()?;
        }
        if small.is_none() {
            // SAFETY: the copy of the last batch has ended, since its results have arrived.
            let input = unsafe { self.input.as_mut_slice() };
            self.batch.write(&launches, input);
            let len = launches.input_len;
            self.stream.memcpy_htod(&input[..len], &mut self.d_input.slice_mut(..len))?;
        }
        let memory = self.memory();
        let stream = &self.stream;
        let input_at = self.d_input.device_ptr_mut(stream).0;
        let search = Search::new(kernels, stream, lists, memory);
        let at = |batch| BatchArgument { input: input_at, ..batch };
        let mut taken = self.taken;
        let mut taking = |batch: BatchArgument| {
            let before = taken;
            taken = before.wrapping_add(batch.num_places);
            BatchArgument { taken_before: before, ..at(batch) }
        };
        let Launches { scored, sampled, tiled, scored_again, sorted, .. } = launches;
        // SAFETY: the input does not change until all results have arrived. The batch assigned each query its places in
        // the clear states, the candidates and the results, and counted drivers and items together.
        unsafe {
            if let Some(batch) = scored {
                search.score_batch(&taking(batch), small.as_ref())?;
            }
            if let Some(batch) = sampled {
                search.score_tiles(&at(batch), true)?;
            }
            if let Some(batch) = tiled {
                search.score_tiles(&at(batch), false)?;
            }
            if let Some(batch) = scored_again {
                search.score_batch(&taking(batch), small.as_ref())?;
            }
            if let Some((batch, num_later)) = sorted {
                search.merge_topk(&at(batch), num_later)?;
            }
        }
        self.taken = taken;
        self.end_at = scored.or(tiled).map(|batch| batch.end_at as usize);
        Ok(())
    }

    /// Whether the last word of the batch has arrived, or no batch is in flight.
    pub(crate) fn has_ended(&self) -> bool {
        self.end_at.is_none_or(|at| self.results.read_now(at + 2) != UNWRITTEN)
    }

    /// Polls the end of the batch. Now and then queries the driver for errors, and fails if the GPU hangs.
    pub(crate) fn look(&mut self) -> Result<bool, DriverError> {
        if self.has_ended() {
            return Ok(true);
        }
        self.looks += 1;
        if self.looks < SPINS {
            return Ok(false);
        }
        self.looks = 0;
        // All words that were written before the stream's end have arrived.
        Ok(is_idle_in_time(&self.stream, &mut self.waited_since)? || self.has_ended())
    }

    /// Waits a short time for the batch. Fails if the GPU hangs.
    pub(crate) fn spin(&mut self) -> Result<(), DriverError> {
        for _ in 0..SPINS {
            if self.has_ended() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        // Where the stream is idle, the word will never arrive, which is a bug in a kernel.
        let is_idle = is_idle_in_time(&self.stream, &mut self.waited_since)?;
        if !is_idle || self.has_ended() { Ok(()) } else { Err(DriverError(sys::CUresult::CUDA_ERROR_UNKNOWN)) }
    }

    /// Waits for a word of the results and takes it. Fails if the GPU hangs.
    pub(crate) fn take(&mut self, word: usize) -> Result<u64, DriverError> {
        let mut waited_since = None;
        loop {
            for _ in 0..SPINS {
                let value = self.results.replace_now(word, UNWRITTEN);
                if value != UNWRITTEN {
                    return Ok(value);
                }
                std::hint::spin_loop();
            }
            // After an error or a bug in a kernel the word would stay unwritten.
            if is_idle_in_time(&self.stream, &mut waited_since)? {
                // It may have been written after the last poll.
                return Ok(self.results.replace_now(word, UNWRITTEN));
            }
        }
    }

    pub(crate) fn take_end(&mut self) -> Result<Option<BatchEnd>, DriverError> {
        let Some(at) = self.end_at else { return Ok(None) };
        let end = BatchEnd { scored: self.take(at)?, began_ns: self.take(at + 1)?, ended_ns: self.take(at + 2)? };
        self.end_at = None;
        Ok(Some(end))
    }

    /// Waits for the results of a query with this `k` from word `at` on, and appends them to `hits`.
    pub(crate) fn take_hits(&mut self, at: usize, k: usize, hits: &mut Vec<Hit>) -> Result<QueryOutcome, DriverError> {
        match self.take(at)? {
            TOO_MANY => Ok(QueryOutcome::TooMany),
            count if count <= k as u64 => {
                let (first, words) = (hits.len(), at + 1..at + 1 + count as usize);
                let mut all_arrived = true;
                // An extension of known length, without a way out at each word, takes a fifth less time.
                hits.extend(words.clone().map(|word| {
                    let key = self.results.replace_now(word, UNWRITTEN);
                    all_arrived &= key != UNWRITTEN;
                    TopK::hit(key)
                }));
                if !all_arrived {
                    // Only the score of an unwritten word is not a number.
                    let missing = hits[first..].iter_mut().zip(words).filter(|(hit, _)| hit.score.is_nan());
                    for (hit, word) in missing {
                        *hit = TopK::hit(self.take(word)?);
                    }
                }
                Ok(QueryOutcome::Hits)
            }
            count => Ok(QueryOutcome::Fault(format!("{count} results where at most {k} are expected"))),
        }
    }

    pub(crate) fn reset(&mut self) -> Result<(), DriverError> {
        wait(&self.stream)?;
        self.stream.memset_zeros(&mut self.d_states)?;
        self.stream.memset_zeros(&mut self.d_run)?;
        wait(&self.stream)?;
        // SAFETY: all kernels have ended.
        unsafe { self.results.as_mut_slice() }.fill(UNWRITTEN);
        self.batch.clear();
        self.taken = 0;
        self.end_at = None;
        Ok(())
    }

    /// Fills the candidates with keys better than any valid one.
    pub(crate) fn poison(&mut self) -> Result<(), DriverError> {
        let bytes = self.d_candidates.num_bytes();
        let (pointer, _guard) = self.d_candidates.device_ptr_mut(&self.stream);
        // SAFETY: the buffer has that many bytes and is used on this stream alone.
        unsafe { cudarc::driver::result::memset_d8_async(pointer, 0xff, bytes, self.stream.cu_stream()) }
    }
}

impl Drop for BatchSlot {
    fn drop(&mut self) {
        // Kernels may still write results. An error is only recorded.
        self.stream.context().record_err(wait(&self.stream));
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchEnd {
    /// Scored postings of driving lists.
    pub(crate) scored: u64,
    /// Start on the device's clock in nanoseconds.
    pub(crate) began_ns: u64,
    /// End on the device's clock in nanoseconds.
    pub(crate) ended_ns: u64,
}

#[derive(Debug, PartialEq)]
pub(crate) enum QueryOutcome {
    /// Its results were taken.
    Hits,
    /// The candidates exceeded their capacity, so the query must run again alone.
    TooMany,
    /// A value that no kernel writes.
    Fault(String),
}
