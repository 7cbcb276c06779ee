//! The index in device memory.

use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaSlice, CudaStream, DevicePtr, PinnedHostSlice};

use super::device::{Device, cuda};
use super::kernels::{IndexArgument, TermArgument};
use crate::exec::ExecError;
use crate::index::{BLOCK_LEN, Bm25, DeviceLists, Index};
use crate::query::QueryTerm;

/// Words of one staging buffer: 32 MiB, enough for the bus to run at full rate while the next one is filled.
const STAGING_WORDS: usize = 8 << 20;

/// An index in device memory, read only, with the norms of its documents for one set of BM25 parameters.
#[derive(Debug)]
pub(super) struct DeviceIndex {
    pub(super) host: Arc<Index>,
    pub(super) bm25: Bm25,
    /// Each long list's first word in `d_payload`.
    starts: Vec<u64>,
    d_last_docs: CudaSlice<u32>,
    d_blocks: CudaSlice<u32>,
    d_payload: CudaSlice<u32>,
    d_short_lists: CudaSlice<u32>,
    d_norms: CudaSlice<u32>,
}

impl DeviceIndex {
    /// Copies `index` to the device and waits until it is there. `reserved_bytes` must stay free for other buffers.
    ///
    /// # Errors
    /// [`ExecError::DoesNotFit`] if device memory is too small.
    pub(super) fn upload(
        device: &Device,
        stream: &Arc<CudaStream>,
        index: &Arc<Index>,
        bm25: Bm25,
        reserved_bytes: u64,
    ) -> Result<Self, ExecError> {
        let norms = bm25.norms(index.doc_lengths(), index.average_length());
        let DeviceLists { payload, blocks, starts } = index.device_lists();
        let blocks: &[u32] = bytemuck::cast_slice(&blocks);
        let (last_docs, short_lists) = (index.last_docs(), index.short_lists());
        let norms: &[u32] = bytemuck::cast_slice(&norms);

        let words = last_docs.len() + blocks.len() + payload.len() + short_lists.len() + norms.len();
        let needed_bytes = words as u64 * 4 + reserved_bytes;
        let free_bytes = device.free_bytes()?;
        if needed_bytes > free_bytes {
            return Err(ExecError::DoesNotFit { needed_bytes, free_bytes });
        }
        let upload = || {
            let mut staging = Staging::new(stream, STAGING_WORDS.min(words.max(1)))?;
            let copied = Self {
                host: Arc::clone(index),
                bm25,
                starts,
                d_last_docs: staging.upload(last_docs)?,
                d_blocks: staging.upload(blocks)?,
                d_payload: staging.upload(&payload)?,
                d_short_lists: staging.upload(short_lists)?,
                d_norms: staging.upload(norms)?,
            };
            stream.synchronize()?;
            Ok(copied)
        };
        upload().map_err(|e| cuda("copying the index to the device", &e))
    }

    /// The index as kernels take it.
    pub(super) fn argument(&self, stream: &CudaStream) -> IndexArgument {
        IndexArgument {
            last_docs: self.d_last_docs.device_ptr(stream).0,
            blocks: self.d_blocks.device_ptr(stream).0,
            payload: self.d_payload.device_ptr(stream).0,
            short_lists: self.d_short_lists.device_ptr(stream).0,
            norms: self.d_norms.device_ptr(stream).0,
            num_docs: self.host.num_docs(),
            reserved: 0,
        }
    }

    /// A term of a query as kernels take it.
    ///
    /// # Panics
    /// If the index has no such term.
    pub(super) fn term(&self, term: &QueryTerm) -> TermArgument {
        let list = self.host.list_position(term.term);
        TermArgument {
            start: if (list.doc_freq as usize) < BLOCK_LEN { list.start } else { self.starts[list.start as usize] },
            first_block: list.first_block,
            num_blocks: list.doc_freq.div_ceil(BLOCK_LEN as u32),
            doc_freq: list.doc_freq,
            base: list.base,
            packing: list.packing,
            max_impact: list.max_impact,
            weight: self.bm25.weight(self.host.num_docs(), list.doc_freq, term.qtf),
            reserved: 0,
        }
    }
}

/// Two page-locked buffers that a large copy goes through in turn: one is filled while the other one travels. Copies from
/// the mapped file itself would run at a quarter of the rate.
struct Staging<'a> {
    stream: &'a Arc<CudaStream>,
    /// Each with the event that marks its last copy as done.
    buffers: [(PinnedHostSlice<u32>, CudaEvent); 2],
    next: usize,
}

impl<'a> Staging<'a> {
    fn new(stream: &'a Arc<CudaStream>, words: usize) -> Result<Self, cudarc::driver::DriverError> {
        let buffer = || {
            // SAFETY: words are written by `upload` before a copy reads them, and every pattern of bits is a `u32`.
            let pinned = unsafe { stream.context().alloc_pinned(words) }?;
            Ok((pinned, stream.context().new_event(None)?))
        };
        Ok(Self { stream, buffers: [buffer()?, buffer()?], next: 0 })
    }

    /// Starts the copy of `source`; it is done when the stream is.
    fn upload(&mut self, source: &[u32]) -> Result<CudaSlice<u32>, cudarc::driver::DriverError> {
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
