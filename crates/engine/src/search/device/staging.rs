//! Large copies to the device.

use std::sync::Arc;

use cudarc::driver::sys::CU_MEMHOSTALLOC_WRITECOMBINED as WRITE_COMBINED;
use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DriverError};
use rayon::prelude::*;

use super::pinned::Pinned;
use super::wait::{wait, wait_for};

/// Words of a staging buffer: 32 MiB keep the bus busy while the other buffer is filled.
pub(crate) const STAGING_WORDS: usize = 8 << 20;
/// Words per copying thread. A single thread is slower than the bus.
const COPY_WORDS: usize = 64 << 10;

/// Two page-locked buffers for large copies: one is filled while the other is copied. Copies from the mapped file would
/// run at a quarter of the rate.
pub(crate) struct Staging<'a> {
    stream: &'a Arc<CudaStream>,
    /// Each buffer has an event that marks the end of its last copy.
    buffers: [(Pinned<u32>, CudaEvent); 2],
    buffer_words: usize,
    next: usize,
    copied_bytes: u64,
}

impl<'a> Staging<'a> {
    pub(crate) fn new(stream: &'a Arc<CudaStream>, words: usize) -> Result<Self, DriverError> {
        let buffer = || {
            let pinned = Pinned::uninitialised(stream.context(), words, WRITE_COMBINED)?;
            Ok((pinned, stream.context().new_event(None)?))
        };
        Ok(Self { stream, buffers: [buffer()?, buffer()?], buffer_words: words, next: 0, copied_bytes: 0 })
    }

    /// Bytes copied or about to be copied.
    pub(crate) fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    pub(crate) fn upload(&mut self, source: &[u32]) -> Result<CudaSlice<u32>, DriverError> {
        self.upload_pieces(std::iter::once(source))
    }

    /// Starts the copy of consecutive pieces, which ends with the stream.
    pub(crate) fn upload_pieces<'s>(
        &mut self,
        mut pieces: impl Iterator<Item = &'s [u32]> + Clone,
    ) -> Result<CudaSlice<u32>, DriverError> {
        let words = pieces.clone().map(<[u32]>::len).sum();
        let mut piece: &[u32] = &[];
        self.fill(words, |_, mut staged| {
            let mut copies = Vec::new();
            while !staged.is_empty() {
                if piece.is_empty() {
                    let Some(next) = pieces.next() else { break };
                    piece = next;
                    continue;
                }
                let (from, later) = piece.split_at(piece.len().min(staged.len()).min(COPY_WORDS));
                let (to, rest) = staged.split_at_mut(from.len());
                copies.push((to, from));
                (piece, staged) = (later, rest);
            }
            copies.into_par_iter().for_each(|(to, from)| to.copy_from_slice(from));
        })
    }

    /// Starts the copy of `words` words. `write` gets the position of a piece and must fill it.
    pub(crate) fn fill(
        &mut self,
        words: usize,
        mut write: impl FnMut(usize, &mut [u32]),
    ) -> Result<CudaSlice<u32>, DriverError> {
        // SAFETY: all words are overwritten below in stream order; the extra word for an empty source is never read.
        let mut d_target = unsafe { self.stream.alloc::<u32>(words.max(1)) }?;
        let mut position = 0;
        while position < words {
            let (pinned, copied) = &mut self.buffers[self.next];
            self.next = 1 - self.next;
            wait_for(copied)?;
            let len = self.buffer_words.min(words - position);
            // SAFETY: the last copy from this buffer has ended.
            let staged = &mut unsafe { pinned.as_mut_slice() }[..len];
            write(position, staged);
            self.stream.memcpy_htod(staged, &mut d_target.slice_mut(position..position + len))?;
            copied.record(self.stream)?;
            position += len;
        }
        self.copied_bytes += 4 * words as u64;
        Ok(d_target)
    }
}

impl Drop for Staging<'_> {
    fn drop(&mut self) {
        // A buffer must outlive its copy. An error was or will be reported by another call.
        self.stream.context().record_err(wait(self.stream));
    }
}
