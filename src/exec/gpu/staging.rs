//! Large copies to the device.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, PinnedHostSlice};

/// Words of one staging buffer: 32 MiB, enough for the bus to run at full rate while the next one is filled.
pub(super) const STAGING_WORDS: usize = 8 << 20;

/// Two page-locked buffers that a large copy goes through in turn: one is filled while the other one travels. Copies from
/// the mapped file itself would run at a quarter of the rate.
pub(super) struct Staging<'a> {
    stream: &'a Arc<CudaStream>,
    /// Each with the event that marks its last copy as done.
    buffers: [(PinnedHostSlice<u32>, CudaEvent); 2],
    next: usize,
}

impl<'a> Staging<'a> {
    pub(super) fn new(stream: &'a Arc<CudaStream>, words: usize) -> Result<Self, cudarc::driver::DriverError> {
        let buffer = || {
            // SAFETY: words are written by `upload` before a copy reads them, and every pattern of bits is a `u32`.
            let pinned = unsafe { stream.context().alloc_pinned(words) }?;
            Ok((pinned, stream.context().new_event(None)?))
        };
        Ok(Self { stream, buffers: [buffer()?, buffer()?], next: 0 })
    }

    /// Starts the copy of `source`; it is done when the stream is.
    pub(super) fn upload(&mut self, source: &[u32]) -> Result<CudaSlice<u32>, cudarc::driver::DriverError> {
        // SAFETY: all of it is overwritten below, in the order of the stream; one word more for an empty source is never read.
        let mut d_target = unsafe { self.stream.alloc::<u32>(source.len().max(1)) }?;
        let mut position = 0;
        while position < source.len() {
            let (pinned, copied) = &mut self.buffers[self.next];
            self.next = 1 - self.next;
            copied.synchronize()?;
            let words = pinned.len().min(source.len() - position);
            let staged = &mut pinned.as_mut_slice()?[..words];
            staged.copy_from_slice(&source[position..position + words]);
            self.stream.memcpy_htod(staged, &mut d_target.slice_mut(position..position + words))?;
            copied.record(self.stream)?;
            position += words;
        }
        Ok(d_target)
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        // A buffer must not be freed under a copy. An error has been reported by then, or will be by the next call.
        self.stream.context().record_err(self.stream.synchronize());
    }
}
