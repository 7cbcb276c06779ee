//! The buffers of one batch: what travels there, what kernels write, what comes back.
//!
//! Everything is allocated when an executor is made. Results lie in page-locked memory that kernels write word by word;
//! a word that none has written yet is [`UNWRITTEN`], and becomes that again as soon as it has been read, so that a
//! slot is ready for the next batch when the last word of this one has come.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtrMut, DriverError, sys};

use super::arguments::{RunArgument, StateArgument, TOO_MANY, UNWRITTEN};
use super::batch::{Batch, Launches, Machine, Room};
use super::kernels::{Kernels, QueryMemory};
use super::lists::DeviceLists;
use crate::search::device::{Device, Pinned};
use crate::search::{Hit, TopK};

/// How often a word is looked at before the driver is asked for errors.
const SPINS: u32 = 1 << 14;

/// What one batch needs while it is under way.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) stream: Arc<CudaStream>,
    pub(super) batch: Batch,
    pub(super) room: Room,
    pub(super) results: Pinned<u64>,
    /// Where the batch's end is told, after all results, if one is under way.
    end_at: Option<usize>,
    /// How often it was looked at in vain.
    looks: u32,
    input: Pinned<u32>,
    d_input: CudaSlice<u32>,
    d_run: CudaSlice<RunArgument>,
    d_states: CudaSlice<StateArgument>,
    d_candidates: CudaSlice<u64>,
}

impl Slot {
    /// Device memory that a slot with this room takes.
    pub(super) fn bytes(room: &Room) -> u64 {
        (4 * room.input_words
            + size_of::<RunArgument>()
            + size_of::<StateArgument>() * room.entries
            + 8 * room.candidates) as u64
    }

    /// A slot with this room.
    pub(super) fn new(device: &Device, stream: Arc<CudaStream>, room: Room) -> Result<Self, DriverError> {
        // SAFETY: of the input that is read which has been copied, and of candidates those that have been written.
        let (d_input, d_candidates) = unsafe { (stream.alloc(room.input_words)?, stream.alloc(room.candidates)?) };
        Ok(Self {
            batch: Batch::default(),
            results: Pinned::for_results(device, room.result_words, UNWRITTEN)?,
            end_at: None,
            looks: 0,
            input: Pinned::for_input(device, room.input_words)?,
            d_input,
            d_run: stream.alloc_zeros(1)?,
            d_states: stream.alloc_zeros(room.entries)?,
            d_candidates,
            stream,
            room,
        })
    }

    /// Addresses of what kernels write.
    pub(super) fn memory(&mut self) -> QueryMemory {
        let stream = &self.stream;
        QueryMemory {
            run: self.d_run.device_ptr_mut(stream).0,
            states: self.d_states.device_ptr_mut(stream).0,
            candidates: self.d_candidates.device_ptr_mut(stream).0,
            results: self.results.address(),
        }
    }

    /// Candidates that all queries have room for together.
    pub(super) fn num_candidates(&self) -> u32 {
        self.d_candidates.len() as u32
    }

    /// Starts the batch's kernels.
    pub(super) fn launch(
        &mut self,
        kernels: &Kernels,
        lists: &DeviceLists,
        machine: Machine,
    ) -> Result<(), DriverError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let launches = self.batch.finish(machine);
        let small = self.batch.small_input(&launches);
        if cfg!(debug_assertions) {
            self.poison()?;
        }
        if small.is_none() {
            // SAFETY: the copy of the batch before has ended, since its results have come.
            let input = unsafe { self.input.as_mut_slice() };
            self.batch.write(&launches, input);
            let len = launches.input_len;
            self.stream.memcpy_htod(&input[..len], &mut self.d_input.slice_mut(..len))?;
        }
        let memory = self.memory();
        let stream = &self.stream;
        let input_at = self.d_input.device_ptr_mut(stream).0;
        let lists = lists.argument(stream);
        let at = |batch| super::arguments::BatchArgument { input: input_at, ..batch };
        let Launches { scored, sampled, tiled, scored_again, sorted, .. } = launches;
        // SAFETY: the input stays as it is until all results have come; the batch has given each query its places in
        // the states, which are clear, in the candidates and in the results; drivers and items were counted together.
        unsafe {
            if let Some(batch) = scored {
                kernels.score_batch(stream, &lists, &at(batch), small.as_ref(), &memory)?;
            }
            if let Some(batch) = sampled {
                kernels.score_tiles(stream, &lists, &at(batch), &memory, true)?;
            }
            if let Some(batch) = tiled {
                kernels.score_tiles(stream, &lists, &at(batch), &memory, false)?;
            }
            if let Some(batch) = scored_again {
                kernels.score_batch(stream, &lists, &at(batch), small.as_ref(), &memory)?;
            }
            if let Some((batch, num_later)) = sorted {
                kernels.merge_topk(stream, &at(batch), num_later, &memory)?;
            }
        }
        self.end_at = launches.end_at();
        Ok(())
    }

    /// Whether the last word of the batch has come, or none is awaited.
    pub(super) fn has_ended(&self) -> bool {
        self.end_at.is_none_or(|at| self.results.read_now(at + 2) != UNWRITTEN)
    }

    /// Whether the driver knows of a fault, or of the stream's end: then nothing more will come.
    pub(super) fn is_idle(&self) -> Result<bool, DriverError> {
        // SAFETY: the stream is this slot's.
        match unsafe { sys::cuStreamQuery(self.stream.cu_stream()) } {
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            sys::CUresult::CUDA_SUCCESS => Ok(true),
            error => Err(DriverError(error)),
        }
    }

    /// Whether the batch has ended, without waiting; the driver is asked for errors now and then.
    pub(super) fn look(&mut self) -> Result<bool, DriverError> {
        if self.has_ended() {
            return Ok(true);
        }
        self.looks += 1;
        if self.looks < SPINS {
            return Ok(false);
        }
        self.looks = 0;
        // What was written before the stream ended has come by now.
        Ok(self.is_idle()? || self.has_ended())
    }

    /// Waits a little while the batch runs.
    pub(super) fn spin(&mut self) -> Result<(), DriverError> {
        for _ in 0..SPINS {
            if self.has_ended() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        if self.is_idle()? && !self.has_ended() {
            // A fault of ours: the word will never come.
            return Err(DriverError(sys::CUresult::CUDA_ERROR_UNKNOWN));
        }
        Ok(())
    }

    /// Waits for a word of the results and takes it.
    pub(super) fn take(&mut self, word: usize) -> Result<u64, DriverError> {
        loop {
            for _ in 0..SPINS {
                let value = self.results.replace_now(word, UNWRITTEN);
                if value != UNWRITTEN {
                    return Ok(value);
                }
                std::hint::spin_loop();
            }
            // An error would leave it unwritten for ever, and so would a fault of ours.
            if self.is_idle()? {
                // It may have been written after the last look.
                return Ok(self.results.replace_now(word, UNWRITTEN));
            }
        }
    }

    /// Waits for the end of the batch; `None` without kernels.
    pub(super) fn take_end(&mut self) -> Result<Option<End>, DriverError> {
        let Some(at) = self.end_at else { return Ok(None) };
        let end = End { scored: self.take(at)?, began_ns: self.take(at + 1)?, ended_ns: self.take(at + 2)? };
        self.end_at = None;
        Ok(Some(end))
    }

    /// Waits for the results from word `at` on, of a query that asked for `k`, and takes them: whether there are any,
    /// or more candidates than there was room for.
    pub(super) fn take_results(&mut self, at: usize, k: usize, hits: &mut Vec<Hit>) -> Result<Taken, DriverError> {
        hits.clear();
        match self.take(at)? {
            TOO_MANY => Ok(Taken::TooMany),
            count if count <= k as u64 => {
                for word in at + 1..=at + count as usize {
                    hits.push(TopK::hit(self.take(word)?));
                }
                Ok(Taken::Hits)
            }
            count => Ok(Taken::Fault(format!("{count} results where at most {k} are expected"))),
        }
    }

    /// Makes the slot as new, after an error.
    pub(super) fn reset(&mut self) -> Result<(), DriverError> {
        self.stream.synchronize()?;
        self.stream.memset_zeros(&mut self.d_states)?;
        self.stream.memset_zeros(&mut self.d_run)?;
        self.stream.synchronize()?;
        // SAFETY: all kernels have ended.
        unsafe { self.results.as_mut_slice() }.fill(UNWRITTEN);
        self.batch.clear();
        self.end_at = None;
        Ok(())
    }

    /// Fills the candidates with keys better than any real one.
    pub(super) fn poison(&mut self) -> Result<(), DriverError> {
        let bytes = self.d_candidates.num_bytes();
        let (pointer, _guard) = self.d_candidates.device_ptr_mut(&self.stream);
        // SAFETY: the buffer has that many bytes and is used on this stream alone.
        unsafe { cudarc::driver::result::memset_d8_async(pointer, 0xff, bytes, self.stream.cu_stream()) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // Kernels may still be writing results. An error has been reported, or there is nobody left to tell.
        self.stream.context().record_err(self.stream.synchronize());
    }
}

/// What is told of a batch at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// Postings of lists that drive which were scored.
    pub(super) scored: u64,
    /// When its kernels ran, by the device's clock in nanoseconds.
    pub(super) began_ns: u64,
    pub(super) ended_ns: u64,
}

/// What came of a query in a batch.
#[derive(Debug, PartialEq)]
pub(super) enum Taken {
    /// Its results.
    Hits,
    /// There were more candidates than there was room for: it has to run again, alone.
    TooMany,
    /// What no kernel writes.
    Fault(String),
}
