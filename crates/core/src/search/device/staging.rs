//! Large copies to the device.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DriverError, PinnedHostSlice};
use rayon::prelude::*;

/// Words of one staging buffer: 32 MiB, enough for the bus to run at full rate while the next one is filled.
pub(crate) const STAGING_WORDS: usize = 8 << 20;
/// Words that one thread copies at once: one alone copies slower than the bus.
const COPY_WORDS: usize = 64 << 10;

/// Two page-locked buffers that a large copy goes through in turn: one is filled while the other one travels. Copies
/// from the mapped file itself would run at a quarter of the rate.
pub(crate) struct Staging<'a> {
    stream: &'a Arc<CudaStream>,
    /// Each with the event that marks its last copy as done.
    buffers: [(PinnedHostSlice<u32>, CudaEvent); 2],
    next: usize,
    copied_bytes: u64,
}

impl<'a> Staging<'a> {
    pub(crate) fn new(stream: &'a Arc<CudaStream>, words: usize) -> Result<Self, DriverError> {
        let buffer = || {
            // SAFETY: words are written by `fill` before a copy reads them, and every pattern of bits is a `u32`.
            let pinned = unsafe { stream.context().alloc_pinned(words) }?;
            Ok((pinned, stream.context().new_event(None)?))
        };
        Ok(Self { stream, buffers: [buffer()?, buffer()?], next: 0, copied_bytes: 0 })
    }

    /// Bytes copied so far, or about to be.
    pub(crate) fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    /// Starts the copy of `source`; it is done when the stream is.
    pub(crate) fn upload(&mut self, source: &[u32]) -> Result<CudaSlice<u32>, DriverError> {
        self.upload_pieces(std::iter::once(source))
    }

    /// Starts the copy of many pieces, one after another; it is done when the stream is.
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

    /// Starts the copy of `words` words that `write` makes: it is told the position of the first, and writes all it
    /// is given.
    pub(crate) fn fill(
        &mut self,
        words: usize,
        mut write: impl FnMut(usize, &mut [u32]),
    ) -> Result<CudaSlice<u32>, DriverError> {
        // SAFETY: all of it is overwritten below, in the order of the stream; one word more for an empty source is
        // never read.
        let mut d_target = unsafe { self.stream.alloc::<u32>(words.max(1)) }?;
        let mut position = 0;
        while position < words {
            let (pinned, copied) = &mut self.buffers[self.next];
            self.next = 1 - self.next;
            copied.synchronize()?;
            let len = pinned.len().min(words - position);
            let staged = &mut pinned.as_mut_slice()?[..len];
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
        // A buffer must not be freed under a copy. An error has been reported by then, or will be by the next call.
        self.stream.context().record_err(self.stream.synchronize());
    }
}
