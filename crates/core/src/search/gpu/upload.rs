//! Bringing an index to the device: the file's own blocks go up, kernels turn them into the form that searches read.
//!
//! ```text
//! mapped file ─▶ page-locked buffers ─▶ parts of the file on the device
//!                                         ─▶ measure_blocks ─▶ scan_rows, scan_tiles ─▶ write_blocks
//! ```
//!
//! The host decodes nothing: it copies sections of the file as they are, but for probe forms, which no kernel reads.
//! Beyond the mapping it needs two staging buffers and a table of a part's lists. All parts go up to be measured, and
//! stay as far as there is room for them beside the result; the others go up again to be written. So an index needs no
//! more device memory than the result and one part of it, and one that does not fit is refused before anything is lost.
//!
//! Opening an index has decoded every block of it, so kernels that decode these again read no word outside of what is
//! copied here, and nothing is checked twice.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError};
use rayon::prelude::*;

use super::arguments::{BlockArgument, DIRECTORY_STRIDE, PartArgument};
use super::kernels::{Kernels, RowCounts};
use super::tiered::{GpuMemory, Rows};
use crate::index::{BLOCK_LEN, Bm25, Index, ListSections, LongList};
use crate::search::ExecError;
use crate::search::device::{Device, GpuError, STAGING_WORDS, Staging};
use crate::search::placement::list_rows::ROW_BYTES;

/// How an index is uploaded.
#[derive(Clone, Copy, Debug)]
pub(super) struct UploadOptions<'a> {
    /// What must stay free for other buffers.
    pub(super) reserved_bytes: u64,
    /// Bytes that a part holds at least, unless it is the last.
    pub(super) part_bytes: u64,
    /// Device memory that may be used, as far as it is free, with what must stay free.
    pub(super) limit_bytes: u64,
    /// The budget of device memory for the index; `None` for all of it.
    pub(super) memory: Option<&'a GpuMemory>,
}

impl UploadOptions<'_> {
    pub(super) fn reserving(reserved_bytes: u64) -> Self {
        Self { reserved_bytes, part_bytes: 128 << 20, limit_bytes: u64::MAX, memory: None }
    }
}

/// What an upload took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UploadReport {
    /// Device memory of the lists, as searches read them, and of the documents' norms.
    pub device_bytes: u64,
    /// Host memory of host-resident rows, which kernels read across the bus.
    pub host_bytes: u64,
    /// What was copied to the device.
    pub copied_bytes: u64,
    /// From the first copy until the last list was written.
    pub seconds: f64,
}

/// An index on the device, as searches read it.
#[derive(Debug)]
pub(super) struct Uploaded {
    pub(super) d_blocks: CudaSlice<BlockArgument>,
    pub(super) rows: Rows,
    pub(super) d_directory: CudaSlice<u32>,
    pub(super) d_norms: CudaSlice<u32>,
    pub(super) report: UploadReport,
}

/// Copies `index` to the device, transcodes it and waits until that is done. `progress` is called with the bytes that
/// are copied, and with all that are to be copied; these become more if the parts have to go up again.
///
/// # Errors
/// [`GpuError::DoesNotFit`] if device memory is too small.
pub(super) fn upload(
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
    let needed_bytes = needed_bytes(&lists, &parts) + options.reserved_bytes;
    let free_bytes = device.free_bytes()?.min(options.limit_bytes);
    numbered("blocks", num_blocks(&lists))?;
    let Some(room_bytes) = free_bytes.checked_sub(needed_bytes) else {
        return Err(GpuError::DoesNotFit { needed_bytes, free_bytes }.into());
    };
    let all_parts_bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    let once_bytes = 4 * u64::from(lists.num_docs) + terms_bytes(&lists) + all_parts_bytes;
    let way = Way { device, stream, kernels, index, lists, parts, room_bytes, progress };
    let mut staging = Staging::new(stream, STAGING_WORDS).map_err(failed)?;

    let mut measured = way.measure(&mut staging, bm25, once_bytes).map_err(failed)?;
    let placed = way.place(&mut measured.counts, options.memory)?;
    let rows_bytes = ROW_BYTES * placed.num_resident;
    numbered("rows of 16 bytes", placed.num_resident + placed.num_on_host)?;
    let Some(spare_bytes) = room_bytes.checked_sub(rows_bytes) else {
        return Err(GpuError::DoesNotFit { needed_bytes: needed_bytes + rows_bytes, free_bytes }.into());
    };
    measured.make_room(&way.parts, spare_bytes);
    // Memory is given back in the order of the stream.
    stream.synchronize().map_err(failed)?;
    let total_bytes = once_bytes + all_parts_bytes - measured.kept_bytes;
    let Written { d_blocks, rows, d_directory, d_norms } =
        way.write(&mut staging, measured, &placed, total_bytes).map_err(failed)?;
    let report = UploadReport {
        device_bytes: rows_bytes + (d_blocks.num_bytes() + d_directory.num_bytes() + d_norms.num_bytes()) as u64,
        host_bytes: rows.host_bytes(),
        copied_bytes: staging.copied_bytes(),
        seconds: began.elapsed().as_secs_f64(),
    };
    Ok(Uploaded { d_blocks, rows, d_directory, d_norms, report })
}

fn failed(error: DriverError) -> GpuError {
    let doing = "copying the index to the device (kernels `measure_blocks`, `scan_rows`, `scan_tiles`, `write_blocks`)";
    GpuError::of(doing, &error)
}

/// From where to where, with what is known of it.
struct Way<'a> {
    device: &'a Device,
    stream: &'a Arc<CudaStream>,
    kernels: &'a Kernels,
    index: &'a Index,
    lists: ListSections<'a>,
    parts: Vec<Part>,
    /// Device memory for parts, and then for rows.
    room_bytes: u64,
    progress: &'a dyn Fn(u64, u64),
}

/// What has gone up to be measured.
struct Measured {
    d_norms: CudaSlice<u32>,
    /// How many rows each block takes.
    counts: RowCounts,
    terms: PartOnDevice,
    /// Parts that are still there, and what they take.
    kept: Vec<Option<PartOnDevice>>,
    kept_bytes: u64,
}

impl Measured {
    /// Gives up parts, the last ones first, until those that stay take no more.
    fn make_room(&mut self, parts: &[Part], spare_bytes: u64) {
        for (part, on_device) in parts.iter().zip(&mut self.kept).rev() {
            if self.kept_bytes > spare_bytes && on_device.take().is_some() {
                self.kept_bytes -= part.bytes;
            }
        }
    }
}

/// Numbers of device-resident and host-resident rows.
struct Placed {
    num_resident: u64,
    num_on_host: u64,
}

/// The index as searches read it.
struct Written {
    d_blocks: CudaSlice<BlockArgument>,
    rows: Rows,
    d_directory: CudaSlice<u32>,
    d_norms: CudaSlice<u32>,
}

impl Way<'_> {
    /// Brings up norms, terms and one part after another, and has every block's rows counted. Parts stay as long as there is room.
    fn measure(&self, staging: &mut Staging<'_>, bm25: Bm25, total_bytes: u64) -> Result<Measured, DriverError> {
        let Self { stream, kernels, lists, .. } = self;
        let d_norms = upload_norms(staging, self.index, bm25)?;
        let norms_at = address(stream, &d_norms);
        let terms = PartOnDevice::terms(staging, lists)?;
        let mut counts = RowCounts::new(stream, num_blocks(lists) as u32)?;
        // SAFETY: the part is the opened index's, goes away in the order of the stream, and all blocks are counted.
        unsafe { kernels.measure_blocks(stream, &terms.argument(stream, lists, norms_at), &mut counts) }?;
        let mut kept: Vec<Option<PartOnDevice>> = Vec::with_capacity(self.parts.len());
        let mut kept_bytes = 0;
        for part in &self.parts {
            let on_device = PartOnDevice::long_lists(staging, lists, part)?;
            // SAFETY: as above.
            unsafe { kernels.measure_blocks(stream, &on_device.argument(stream, lists, norms_at), &mut counts) }?;
            let is_kept = kept_bytes + part.bytes <= self.room_bytes;
            kept_bytes += if is_kept { part.bytes } else { 0 };
            kept.push(is_kept.then_some(on_device));
            (self.progress)(staging.copied_bytes(), total_bytes);
        }
        Ok(Measured { d_norms, counts, terms, kept, kept_bytes })
    }

    /// Gives every block its rows: device-resident up to the budget, if there is one.
    fn place(&self, counts: &mut RowCounts, memory: Option<&GpuMemory>) -> Result<Placed, ExecError> {
        let Self { stream, kernels, lists, index, room_bytes, .. } = self;
        let Some(memory) = memory else {
            let num_resident = kernels.scan_rows(stream, counts).map_err(failed)?;
            return Ok(Placed { num_resident, num_on_host: 0 });
        };
        let rows_bytes = memory.rows_bytes(staying_bytes(lists), *room_bytes)?;
        let order = memory.order(index, counts.rows(stream).map_err(failed)?);
        counts.place(stream, &order.first_rows).map_err(failed)?;
        let num_resident = order.num_resident(rows_bytes / ROW_BYTES);
        Ok(Placed { num_resident, num_on_host: order.num_rows - num_resident })
    }

    /// Has all blocks written; parts that have not stayed go up again.
    fn write(
        &self,
        staging: &mut Staging<'_>,
        measured: Measured,
        placed: &Placed,
        total_bytes: u64,
    ) -> Result<Written, DriverError> {
        let Self { stream, kernels, lists, .. } = self;
        let Measured { d_norms, counts, terms, kept, .. } = measured;
        let norms_at = address(stream, &d_norms);
        let mut rows = Rows::new(self.device, stream, placed.num_resident, placed.num_on_host)?;
        // SAFETY: kernels write what others read: every block of every list, its rows and its list's directory.
        let mut d_directory = unsafe { stream.alloc::<u32>(directory_words(lists) as usize) }?;
        // SAFETY: as above; places of long lists among the short ones' blocks are never read.
        let mut d_blocks = unsafe { stream.alloc::<BlockArgument>(num_blocks(lists) as usize) }?;
        let mut write = |part: PartOnDevice| {
            let targets = (&mut d_blocks, &mut rows, &mut d_directory);
            // SAFETY: as above; all has been measured, and the targets are as large as that and the directories are.
            unsafe { kernels.write_blocks(stream, &part.argument(stream, lists, norms_at), &counts, targets) }
        };
        write(terms)?;
        for (part, on_device) in self.parts.iter().zip(kept) {
            let on_device = match on_device {
                Some(on_device) => on_device,
                None => PartOnDevice::long_lists(staging, lists, part)?,
            };
            write(on_device)?;
            (self.progress)(staging.copied_bytes(), total_bytes);
        }
        drop(counts);
        stream.synchronize()?;
        Ok(Written { d_blocks, rows, d_directory, d_norms })
    }
}

/// The number of blocks or rows, which kernels count in 32 bits.
fn numbered(what: &'static str, count: u64) -> Result<u32, ExecError> {
    u32::try_from(count).map_err(|_| ExecError::TooLarge { what, count })
}

/// Device memory for the upload, but for the rows that blocks will take: what stays, and what is needed beside it.
fn needed_bytes(lists: &ListSections<'_>, parts: &[Part]) -> u64 {
    let largest_part = parts.iter().map(|part| part.bytes).max().unwrap_or(0);
    staying_bytes(lists) + RowCounts::bytes(num_blocks(lists)) + terms_bytes(lists) + largest_part
}

/// Bytes that are device-resident under any budget: headers, directories, norms.
fn staying_bytes(lists: &ListSections<'_>) -> u64 {
    headers_bytes(lists) + 4 * (directory_words(lists) + u64::from(lists.num_docs))
}

/// The headers of all blocks.
fn headers_bytes(lists: &ListSections<'_>) -> u64 {
    size_of::<BlockArgument>() as u64 * num_blocks(lists)
}

/// Blocks as searches read them: those of long lists, and one for each term, used if its list is short.
fn num_blocks(lists: &ListSections<'_>) -> u64 {
    lists.blocks.len() as u64 + lists.slots.len() as u64
}

fn directory_words(lists: &ListSections<'_>) -> u64 {
    (lists.blocks.len() as u64 * DIRECTORY_STRIDE).max(1)
}

fn terms_bytes(lists: &ListSections<'_>) -> u64 {
    4 * (lists.slots.len() + lists.short_lists.len()) as u64
}

/// Copies the norms of all documents, computed on the way.
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

/// Consecutive long lists that go up together.
#[derive(Debug)]
struct Part {
    lists: Range<usize>,
    /// What they take on the device, as the file holds them.
    bytes: u64,
}

/// Shares the long lists out to parts.
fn parts(lists: &ListSections<'_>, part_bytes: u64) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut part = Part { lists: 0..0, bytes: 0 };
    for (number, list) in lists.long_lists.iter().enumerate() {
        let items = size_of::<LongList>() + 12 * list.doc_freq.div_ceil(BLOCK_LEN as u32) as usize;
        part.bytes += (items + 4 * list.block_words()) as u64;
        part.lists.end = number + 1;
        if part.bytes >= part_bytes || part.lists.end == lists.long_lists.len() {
            let next = Part { lists: part.lists.end..part.lists.end, bytes: 0 };
            parts.push(std::mem::replace(&mut part, next));
        }
    }
    parts
}

/// A part of the file on the device: what one launch transcodes.
enum PartOnDevice {
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

impl PartOnDevice {
    fn long_lists(staging: &mut Staging<'_>, lists: &ListSections<'_>, part: &Part) -> Result<Self, DriverError> {
        let long_lists = &lists.long_lists[part.lists.clone()];
        // Without what lies between them, lists begin elsewhere.
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

    /// The part as kernels take it, the norm of document 0 being at `norms_at`.
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
