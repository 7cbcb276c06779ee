//! Lists to the device, one copy after another from page-locked memory: S_c once, S_b batch after batch.
//!
//! Descriptors and short lists are gathered in two staging buffers in turn, one being filled while the other travels. Long
//! lists are copied from where they lie if the host's lists are page-locked, and are gathered, too, if not.

use cudarc::driver::{CudaEvent, CudaSlice, result};

use super::memory::CachedGpu;
use tandem_core::search::device::{GpuError, Pinned};

/// Words of a staging buffer: 8 MiB.
const STAGING_WORDS: usize = 2 << 20;
/// A list of so many words is worth a copy of its own: 64 KiB take the bus as long as a call takes.
const DIRECT_WORDS: usize = 16 << 10;

/// Memory of the device and the way to it.
#[derive(Debug)]
pub(super) struct Transfer {
    d_buffer: CudaSlice<u32>,
    staging: [(Pinned<u32>, CudaEvent); 2],
    /// Which of the two is filled,
    side: usize,
    /// its words that wait to be copied,
    filled: usize,
    /// and where in the buffer they go.
    target: usize,
}

impl Transfer {
    /// So many bytes, of which nothing is filled.
    pub(super) fn new(gpu: &CachedGpu<'_>, buffer_bytes: u64) -> Result<Self, GpuError> {
        let d_buffer = gpu.alloc::<u32>((buffer_bytes / 4) as usize)?;
        let side = || {
            let staging = Pinned::for_input(&gpu.device, STAGING_WORDS);
            let event = gpu.device.context.new_event(None);
            staging
                .and_then(|staging| Ok((staging, event?)))
                .map_err(|e| GpuError::of("page-locking a staging buffer", &e))
        };
        Ok(Self { d_buffer, staging: [side()?, side()?], side: 0, filled: 0, target: 0 })
    }

    /// Where they begin on the device.
    pub(super) fn address(&self, gpu: &CachedGpu<'_>) -> u64 {
        gpu.address(&self.d_buffer)
    }

    /// Begins a batch: what was copied before may be overwritten.
    pub(super) fn begin(&mut self) {
        (self.filled, self.target) = (0, 0);
    }

    /// What was filled, once all copies have been waited for.
    pub(super) fn into_memory(self) -> CudaSlice<u32> {
        self.d_buffer
    }

    /// Enqueues these words behind those before; returns their place. Words of lists (`is_list`) outlive the copy, and may go from
    /// where they lie.
    ///
    /// # Panics
    /// If the buffer has no room: batches are made to fit.
    pub(super) fn push(&mut self, gpu: &CachedGpu<'_>, words: &[u32], is_list: bool) -> Result<usize, GpuError> {
        let place = self.target + self.filled;
        assert!(place + words.len() <= self.d_buffer.len(), "{} words at {place}", words.len());
        if is_list && words.len() >= DIRECT_WORDS && gpu.locked.is_ok() {
            self.flush(gpu)?;
            let address = self.address(gpu) + 4 * place as u64;
            // SAFETY: the buffer has room for them, asserted above; the words are page-locked and live as long as the
            // GPU, whose stream is waited for at the end of each batch.
            let copied = unsafe { result::memcpy_htod_async(address, words, gpu.stream.cu_stream()) };
            copied.map_err(|e| GpuError::of("copying a list", &e))?;
            self.target += words.len();
            return Ok(place);
        }
        let mut rest = words;
        while !rest.is_empty() {
            if self.filled == STAGING_WORDS {
                self.flush(gpu)?;
            }
            let (now, later) = rest.split_at(rest.len().min(STAGING_WORDS - self.filled));
            let (staging, _) = &mut self.staging[self.side];
            // SAFETY: the last copy from this side was waited for when it became the one that is filled.
            let staging = unsafe { staging.as_mut_slice() };
            staging[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            rest = later;
        }
        Ok(place)
    }

    /// Enqueues the copy of what waits, and turns to the other side.
    pub(super) fn flush(&mut self, gpu: &CachedGpu<'_>) -> Result<(), GpuError> {
        if self.filled == 0 {
            return Ok(());
        }
        let address = self.address(gpu) + 4 * self.target as u64;
        let (staging, event) = &mut self.staging[self.side];
        // SAFETY: nobody writes this side before the event below has been waited for.
        let words = &unsafe { staging.as_mut_slice() }[..self.filled];
        // SAFETY: the buffer has room for them, asserted when they were pushed; they are page-locked.
        let copied = unsafe { result::memcpy_htod_async(address, words, gpu.stream.cu_stream()) };
        let recorded = copied.and_then(|()| event.record(&gpu.stream));
        self.target += std::mem::take(&mut self.filled);
        self.side = 1 - self.side;
        let waited = recorded.and_then(|()| self.staging[self.side].1.synchronize());
        waited.map_err(|e| GpuError::of("copying a batch", &e))
    }
}
