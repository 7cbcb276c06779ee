//! Copies of lists to the device from page-locked memory: once for S_c, batch by batch for S_b.
//!
//! Descriptors and short lists are gathered in two staging buffers in turn; one is filled while the other is copied.
//! Long lists are copied directly if the host's lists are page-locked, and are gathered otherwise.

use cudarc::driver::{CudaEvent, CudaSlice, result};
use tandem_engine::search::device::{GpuError, Pinned, wait_for};

use super::memory::CachedGpu;

/// Words of a staging buffer: 8 MiB.
const STAGING_WORDS: usize = 2 << 20;
/// Words from which a list gets a copy of its own: 64 KiB take as long as a call.
const DIRECT_WORDS: usize = 16 << 10;

/// Device memory and its staging buffers.
#[derive(Debug)]
pub(crate) struct Transfer {
    d_buffer: CudaSlice<u32>,
    staging: [(Pinned<u32>, CudaEvent); 2],
    /// Index of the staging buffer that is filled.
    side: usize,
    /// Words in that buffer that wait for their copy.
    filled: usize,
    /// Place of these words in the device's buffer.
    target: usize,
}

impl Transfer {
    pub(crate) fn new(gpu: &CachedGpu<'_>, buffer_bytes: u64) -> Result<Self, GpuError> {
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

    pub(crate) fn address(&self, gpu: &CachedGpu<'_>) -> u64 {
        gpu.address(&self.d_buffer)
    }

    /// Begins a batch, which overwrites the one before.
    pub(crate) fn begin(&mut self) {
        (self.filled, self.target) = (0, 0);
    }

    /// Returns the filled memory after all copies have finished.
    pub(crate) fn into_memory(self) -> CudaSlice<u32> {
        self.d_buffer
    }

    /// Enqueues words and returns their place. Words of lists (`is_list`) outlive the copy and may be copied directly.
    /// Panics if the buffer has no room; batches are made to fit.
    pub(crate) fn push(&mut self, gpu: &CachedGpu<'_>, words: &[u32], is_list: bool) -> Result<usize, GpuError> {
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
            // SAFETY: the last copy from this side finished before the side was chosen to be filled.
            let staging = unsafe { staging.as_mut_slice() };
            staging[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            rest = later;
        }
        Ok(place)
    }

    /// Enqueues the copy of the filled words and switches to the other side.
    pub(crate) fn flush(&mut self, gpu: &CachedGpu<'_>) -> Result<(), GpuError> {
        if self.filled == 0 {
            return Ok(());
        }
        let address = self.address(gpu) + 4 * self.target as u64;
        let (staging, event) = &mut self.staging[self.side];
        // SAFETY: this side is not written before the event below has been waited for.
        let words = &unsafe { staging.as_mut_slice() }[..self.filled];
        // SAFETY: the buffer has room for them, asserted when they were pushed; they are page-locked.
        let copied = unsafe { result::memcpy_htod_async(address, words, gpu.stream.cu_stream()) };
        let recorded = copied.and_then(|()| event.record(&gpu.stream));
        self.target += std::mem::take(&mut self.filled);
        self.side = 1 - self.side;
        let waited = recorded.and_then(|()| wait_for(&self.staging[self.side].1));
        waited.map_err(|e| GpuError::of("copying a batch", &e))
    }
}
