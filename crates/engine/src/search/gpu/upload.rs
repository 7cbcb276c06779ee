//! Upload of an index: the file's blocks are copied, and kernels convert them to the searched form.
//!
//! ```text
//! mapped file ─▶ page-locked buffers ─▶ parts of the file on the device
//!                                         ─▶ measure_blocks ─▶ scan_rows, scan_tiles ─▶ write_blocks
//! ```
//!
//! The host copies sections of the file unchanged, except probe forms, which kernels do not use. Beyond the mapping it
//! needs two staging buffers and a table of a part's lists. All parts are uploaded to be measured and stay on the
//! device while there is room. The others are uploaded again to be written. So an index needs no more device memory
//! than the result and one part, and an index that does not fit is refused early.
//!
//! Opening an index decodes every block, so these kernels need no bounds checks.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError};
use rayon::prelude::*;

use super::arguments::{BlockArgument, DIRECTORY_STRIDE, DirectoryEntry, PartArgument};
use super::kernels::{Kernels, RowCounts};
use super::lists::Uploaded;
use super::tiered::{GpuMemory, Rows, directory_len, num_blocks, staying_bytes};
use crate::index::{BLOCK_LEN, Bm25, Index, ListSections, LongList};
use crate::search::device::staging::{STAGING_WORDS, Staging};
use crate::search::device::wait::wait;
use crate::search::device::{Device, GpuError};
use crate::search::placement::list_rows::ROW_BYTES;
use crate::search::{ExecError, UploadReport};

/// Options of an upload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UploadOptions<'a> {
    /// Device memory to keep free for other buffers, in bytes.
    pub(crate) reserved_bytes: u64,
    /// The least bytes of a part, except the last one.
    pub(crate) part_bytes: u64,
    /// The most device memory to use, including reserved bytes.
    pub(crate) limit_bytes: u64,
    /// The budget of device memory for the index, or `None` for all of it.
    pub(crate) memory: Option<&'a GpuMemory>,
}

impl UploadOptions<'_> {
    pub(crate) fn reserving(reserved_bytes: u64) -> Self {
        Self { reserved_bytes, part_bytes: 128 << 20, limit_bytes: u64::MAX, memory: None }
    }
}

/// Copies `index` to the device, converts it and waits. `progress` gets the bytes copied and the bytes in total, which
/// grow if parts must be uploaded again. Fails with [`GpuError::DoesNotFit`] if device memory is too small.
pub(crate) fn upload(
    device: &Device,
    stream: &Arc<CudaStream>,
    kernels: &Kernels,
    index: &Index,
    bm25: Bm25,
    options: UploadOptions<'_>,
    progress: &dyn Fn(u64, u64),
) -> Result<Uploaded, ExecError> {
    let began = Instant::now();
    let lists = index.list_sections();
    let parts = parts(&lists, options.part_bytes);
    let directory_stride = options.memory.map_or(DIRECTORY_STRIDE, |memory| memory.directory_stride);
    let needed_bytes = needed_bytes(&lists, &parts, directory_stride) + options.reserved_bytes;
    let free_bytes = device.free_bytes()?.min(options.limit_bytes);
    numbered("blocks", num_blocks(&lists))?;
    let Some(room_bytes) = free_bytes.checked_sub(needed_bytes) else {
        return Err(GpuError::DoesNotFit { needed_bytes, free_bytes }.into());
    };
    let all_parts_bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    let once_bytes = 4 * u64::from(lists.num_docs) + terms_bytes(&lists) + all_parts_bytes;
    let job = UploadJob { device, stream, kernels, index, lists, parts, directory_stride, room_bytes, progress };
    let mut staging = Staging::new(stream, STAGING_WORDS).map_err(failed)?;

    let mut measured = job.measure(&mut staging, bm25, once_bytes).map_err(failed)?;
    let placed = job.place(&mut measured.counts, options.memory)?;
    let rows_bytes = ROW_BYTES * placed.num_resident;
    numbered("rows of 16 bytes", placed.num_resident + placed.num_on_host)?;
    let Some(spare_bytes) = room_bytes.checked_sub(rows_bytes) else {
        return Err(GpuError::DoesNotFit { needed_bytes: needed_bytes + rows_bytes, free_bytes }.into());
    };
    measured.make_room(&job.parts, spare_bytes);
    // Memory is freed in stream order.
    wait(stream).map_err(failed)?;
    let total_bytes = once_bytes + all_parts_bytes - measured.kept_bytes;
    let mut uploaded = job.write(&mut staging, measured, &placed, total_bytes).map_err(failed)?;
    let Uploaded { d_blocks, rows, d_directory, d_norms, .. } = &uploaded;
    uploaded.report = UploadReport {
        device_bytes: rows_bytes + (d_blocks.num_bytes() + d_directory.num_bytes() + d_norms.num_bytes()) as u64,
        host_bytes: rows.host_bytes(),
        copied_bytes: staging.copied_bytes(),
        seconds: began.elapsed().as_secs_f64(),
    };
    Ok(uploaded)
}

fn failed(error: DriverError) -> GpuError {
    let doing = "copying the index to the device (kernels `measure_blocks`, `scan_rows`, `scan_tiles`, `write_blocks`)";
    GpuError::of(doing, &error)
}

struct UploadJob<'a> {
    device: &'a Device,
    stream: &'a Arc<CudaStream>,
    kernels: &'a Kernels,
    index: &'a Index,
    lists: ListSections<'a>,
    parts: Vec<FilePart>,
    directory_stride: u32,
    /// Device memory for parts and rows in bytes.
    room_bytes: u64,
    progress: &'a dyn Fn(u64, u64),
}

struct Measured {
    d_norms: CudaSlice<u32>,
    counts: RowCounts,
    terms: DevicePart,
    /// Parts that stay on the device.
    kept: Vec<Option<DevicePart>>,
    kept_bytes: u64,
}

impl Measured {
    /// Frees parts, the last ones first, until the others take at most `spare_bytes`.
    fn make_room(&mut self, parts: &[FilePart], spare_bytes: u64) {
        for (part, on_device) in parts.iter().zip(&mut self.kept).rev() {
            if self.kept_bytes > spare_bytes && on_device.take().is_some() {
                self.kept_bytes -= part.bytes;
            }
        }
    }
}

struct Placed {
    num_resident: u64,
    num_on_host: u64,
}

impl UploadJob<'_> {
    /// Uploads norms, terms and all parts, and counts the rows of every block. Parts stay while there is room.
    fn measure(&self, staging: &mut Staging<'_>, bm25: Bm25, total_bytes: u64) -> Result<Measured, DriverError> {
        let Self { stream, kernels, lists, .. } = self;
        let d_norms = upload_norms(staging, self.index, bm25)?;
        let norms_at = address(stream, &d_norms);
        let terms = DevicePart::terms(staging, lists)?;
        let mut counts = RowCounts::new(stream, num_blocks(lists) as u32)?;
        // SAFETY: the part belongs to the opened index, is freed in stream order, and all blocks have counts.
        unsafe { kernels.measure_blocks(stream, &terms.argument(stream, lists, norms_at), &mut counts) }?;
        let mut kept: Vec<Option<DevicePart>> = Vec::with_capacity(self.parts.len());
        let mut kept_bytes = 0;
        for part in &self.parts {
            let on_device = DevicePart::long_lists(staging, lists, part)?;
            // SAFETY: see the terms' part above.
            unsafe { kernels.measure_blocks(stream, &on_device.argument(stream, lists, norms_at), &mut counts) }?;
            let is_kept = kept_bytes + part.bytes <= self.room_bytes;
            kept_bytes += if is_kept { part.bytes } else { 0 };
            kept.push(is_kept.then_some(on_device));
            (self.progress)(staging.copied_bytes(), total_bytes);
        }
        Ok(Measured { d_norms, counts, terms, kept, kept_bytes })
    }

    fn place(&self, counts: &mut RowCounts, memory: Option<&GpuMemory>) -> Result<Placed, ExecError> {
        let Self { stream, kernels, lists, index, room_bytes, .. } = self;
        let Some(memory) = memory else {
            let num_resident = kernels.scan_rows(stream, counts).map_err(failed)?;
            return Ok(Placed { num_resident, num_on_host: 0 });
        };
        let rows_bytes = memory.rows_bytes(staying_bytes(lists, self.directory_stride), *room_bytes)?;
        let order = memory.order(index, counts.rows(stream).map_err(failed)?);
        counts.place(stream, &order.first_rows).map_err(failed)?;
        let num_resident = order.num_resident(rows_bytes / ROW_BYTES);
        Ok(Placed { num_resident, num_on_host: order.num_rows - num_resident })
    }

    /// Writes all blocks. Parts that did not stay are uploaded again.
    fn write(
        &self,
        staging: &mut Staging<'_>,
        measured: Measured,
        placed: &Placed,
        total_bytes: u64,
    ) -> Result<Uploaded, DriverError> {
        let &Self { stream, kernels, ref lists, directory_stride, .. } = self;
        let Measured { d_norms, counts, terms, kept, .. } = measured;
        let norms_at = address(stream, &d_norms);
        let mut rows = Rows::new(self.device, stream, placed.num_resident, placed.num_on_host)?;
        let directory_len = directory_len(lists, directory_stride);
        let mut d_directory = stream.alloc_zeros::<DirectoryEntry>(directory_len as usize)?;
        // SAFETY: kernels write every block before others read it. Places of long lists among the short ones' blocks are
        // never read.
        let mut d_blocks = unsafe { stream.alloc::<BlockArgument>(num_blocks(lists) as usize) }?;
        let mut write = |part: DevicePart| {
            let argument = PartArgument { directory_stride, ..part.argument(stream, lists, norms_at) };
            let targets = (&mut d_blocks, &mut rows, &mut d_directory);
            // SAFETY: the part was measured, and the targets have the measured sizes.
            unsafe { kernels.write_blocks(stream, &argument, &counts, targets) }
        };
        let write_all = || {
            write(terms)?;
            for (part, on_device) in self.parts.iter().zip(kept) {
                write(on_device.map_or_else(|| DevicePart::long_lists(staging, lists, part), Ok)?)?;
                (self.progress)(staging.copied_bytes(), total_bytes);
            }
            Ok(())
        };
        let written = write_all();
        drop(counts);
        // After an error, too: kernels may still write the rows, which are then freed.
        wait(stream)?;
        written?;
        let report = UploadReport::default();
        Ok(Uploaded { d_blocks, rows, d_directory, d_norms, directory_stride, report })
    }
}

/// Checks a number of blocks or rows, which kernels count in 32 bits: rows of 16 bytes limit an index to 64 GiB of them.
fn numbered(what: &'static str, count: u64) -> Result<u32, ExecError> {
    u32::try_from(count).map_err(|_| ExecError::TooLarge { what, count })
}

/// Device memory of the upload without the rows: permanent and temporary data.
fn needed_bytes(lists: &ListSections<'_>, parts: &[FilePart], directory_stride: u32) -> u64 {
    let largest_part = parts.iter().map(|part| part.bytes).max().unwrap_or(0);
    staying_bytes(lists, directory_stride) + RowCounts::bytes(num_blocks(lists)) + terms_bytes(lists) + largest_part
}

fn terms_bytes(lists: &ListSections<'_>) -> u64 {
    4 * (lists.slots.len() + lists.short_lists.len()) as u64
}

fn upload_norms(staging: &mut Staging<'_>, index: &Index, bm25: Bm25) -> Result<CudaSlice<u32>, DriverError> {
    let (lengths, average) = (index.doc_lengths(), index.average_length());
    staging.fill(lengths.len(), |first, norms| {
        let lengths = &lengths[first..first + norms.len()];
        norms.par_iter_mut().zip(lengths).for_each(|(norm, &length)| *norm = bm25.norm(length, average).to_bits());
    })
}

fn address(stream: &CudaStream, d_words: &CudaSlice<u32>) -> u64 {
    d_words.device_ptr(stream).0
}

/// Consecutive long lists that are uploaded together.
#[derive(Debug)]
struct FilePart {
    lists: Range<usize>,
    /// Their bytes in the file and on the device.
    bytes: u64,
}

/// Splits the long lists into parts.
fn parts(lists: &ListSections<'_>, part_bytes: u64) -> Vec<FilePart> {
    let mut parts = Vec::new();
    let mut part = FilePart { lists: 0..0, bytes: 0 };
    for (number, list) in lists.long_lists.iter().enumerate() {
        let items = size_of::<LongList>() + 12 * list.doc_freq.div_ceil(BLOCK_LEN as u32) as usize;
        part.bytes += (items + 4 * list.block_words()) as u64;
        part.lists.end = number + 1;
        if part.bytes >= part_bytes || part.lists.end == lists.long_lists.len() {
            let next = FilePart { lists: part.lists.end..part.lists.end, bytes: 0 };
            parts.push(std::mem::replace(&mut part, next));
        }
    }
    parts
}

/// A part of the file on the device, which one launch converts.
enum DevicePart {
    LongLists {
        d_lists: CudaSlice<u32>,
        d_last_docs: CudaSlice<u32>,
        d_entries: CudaSlice<u32>,
        d_payload: CudaSlice<u32>,
        num_lists: u32,
        num_blocks: u32,
        first_block: u32,
    },
    /// All terms, with the short lists.
    Terms { d_slots: CudaSlice<u32>, d_short_lists: CudaSlice<u32> },
}

impl DevicePart {
    fn long_lists(staging: &mut Staging<'_>, lists: &ListSections<'_>, part: &FilePart) -> Result<Self, DriverError> {
        let long_lists = &lists.long_lists[part.lists.clone()];
        // Payloads become contiguous, so lists begin elsewhere.
        let mut table = long_lists.to_vec();
        let mut next_word = 0;
        for list in &mut table {
            list.payload_word = next_word;
            next_word += list.block_words() as u64;
        }
        let payloads = long_lists.iter().map(|list| &lists.payload[list.payload_word as usize..][..list.block_words()]);
        let first = table.first().map_or(0, |list| list.first_block as usize);
        let end =
            table.last().map_or(0, |list| list.first_block as usize + (list.doc_freq as usize).div_ceil(BLOCK_LEN));
        Ok(Self::LongLists {
            d_lists: staging.upload(bytemuck::cast_slice(&table))?,
            d_last_docs: staging.upload(&lists.last_docs[first..end])?,
            d_entries: staging.upload(bytemuck::cast_slice(&lists.blocks[first..end]))?,
            d_payload: staging.upload_pieces(payloads)?,
            num_lists: table.len() as u32,
            num_blocks: (end - first) as u32,
            first_block: first as u32,
        })
    }

    fn terms(staging: &mut Staging<'_>, lists: &ListSections<'_>) -> Result<Self, DriverError> {
        Ok(Self::Terms { d_slots: staging.upload(lists.slots)?, d_short_lists: staging.upload(lists.short_lists)? })
    }

    /// The part in the kernels' form, without the directories' stride. The norm of document 0 is at `norms_at`.
    fn argument(&self, stream: &CudaStream, lists: &ListSections<'_>, norms_at: u64) -> PartArgument {
        let all = PartArgument {
            norms: norms_at,
            num_long_blocks: lists.blocks.len() as u32,
            num_docs: lists.num_docs,
            ..PartArgument::default()
        };
        match self {
            Self::LongLists { d_lists, d_last_docs, d_entries, d_payload, num_lists, num_blocks, first_block } => {
                PartArgument {
                    lists: address(stream, d_lists),
                    last_docs: address(stream, d_last_docs),
                    entries: address(stream, d_entries),
                    payload: address(stream, d_payload),
                    num_lists: *num_lists,
                    num_blocks: *num_blocks,
                    first_block: *first_block,
                    ..all
                }
            }
            Self::Terms { d_slots, d_short_lists } => PartArgument {
                slots: address(stream, d_slots),
                short_lists: address(stream, d_short_lists),
                num_terms: lists.slots.len() as u32,
                ..all
            },
        }
    }
}

#[cfg(test)]
mod tests;
