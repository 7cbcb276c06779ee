//! An index that is only partly in device memory.
//!
//! Headers, directories and norms are always device-resident: they determine the blocks that a query needs. Directories
//! have fewer entries per block if they would take more than a part of the budget, since rows are worth more. The rows
//! of blocks (documents, impacts, frequencies) are tiered. Rows that are read often are device-resident. All others are
//! host-resident, in page-locked memory, and kernels read them across the bus, 32 bytes at a time and only as far as
//! they need them. A block's header names its first row, and rows before a border are device-resident. So kernels have
//! one path, and answers are bit-equal under any budget.
//!
//! ```text
//!   device   | headers | directories | norms | device-resident rows ............ |
//!                 │ row                          ▲
//!                 ├── before the border ─────────┘
//!                 └── behind it ────────────────▶ | host-resident rows ........................ |   page-locked host memory
//! ```
//!
//! [`placement`](crate::search::placement) computes the order of rows once, from a log. A budget is a border in that
//! order.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DriverError};
use tandem_base::base::ids::TermId;

use super::arguments::{BlockArgument, DIRECTORY_STRIDE, DirectoryEntry};
use crate::index::{Index, ListSections};
use crate::query::Query;
use crate::search::device::host_memory::HostMemory;
use crate::search::device::{Device, GpuError};
use crate::search::placement::learned_reads::LearnedReads;
use crate::search::placement::list_rows::{ROW_BYTES, list_blocks, list_sizes};
use crate::search::placement::read_counter::log_reads;
use crate::search::placement::row_order::{HotBlocks, RowOrder, place_blocks};

/// The parts of a budget of which directories take at most one.
pub(crate) const DIRECTORY_PARTS: u64 = 6;
/// The least directory entries per block.
pub(crate) const LEAST_DIRECTORY_STRIDE: u64 = 3;

/// A budget of device memory for an index, with the expected reads of its lists.
#[derive(Clone, Debug)]
pub struct GpuMemory {
    bytes: u64,
    /// Directory entries per block.
    pub(crate) directory_stride: u32,
    learned: Arc<LearnedReads>,
}

impl GpuMemory {
    /// A budget of `bytes` for headers, directories, norms and rows. Blocks that queries like `log`'s read most become
    /// device-resident first. Without a log the order is by block number.
    pub fn new(bytes: u64, index: &Arc<Index>, log: &[Query]) -> Self {
        let directory_stride = directory_stride(&index.list_sections(), bytes);
        Self { bytes, directory_stride, learned: Arc::new(log_reads(index, log, directory_stride)) }
    }

    /// Bytes left for rows, with `staying_bytes` always device-resident and `room_bytes` free. Fails with
    /// [`GpuError::BadBudget`] if the budget is smaller than `staying_bytes` or larger than free device memory.
    pub(crate) fn rows_bytes(&self, staying_bytes: u64, room_bytes: u64) -> Result<u64, GpuError> {
        match self.bytes.checked_sub(staying_bytes) {
            Some(rows_bytes) if rows_bytes <= room_bytes => Ok(rows_bytes),
            _ => Err(GpuError::BadBudget {
                budget_bytes: self.bytes,
                least_bytes: staying_bytes,
                free_bytes: staying_bytes + room_bytes,
            }),
        }
    }

    /// The order of the rows of an index, if block b takes `rows[b]` rows.
    pub(crate) fn order(&self, index: &Index, rows: Vec<u32>) -> RowOrder {
        let row_reads = self.learned.row_reads(&list_sizes(index, &rows));
        let hot = (0..).zip(row_reads).filter(|&(_, reads)| reads > 0.0).map(|(term, reads)| {
            let (first_block, num_blocks) = list_blocks(index, TermId(term));
            HotBlocks { first_block, num_blocks, reads }
        });
        place_blocks(rows, &hot.collect::<Vec<HotBlocks>>())
    }
}

/// Memory of rows on the device and on the host.
#[derive(Debug)]
pub(crate) struct Rows {
    d_rows: CudaSlice<u32>,
    host: Option<HostMemory>,
    num_resident: u64,
    num_on_host: u64,
}

impl Rows {
    /// Uninitialised memory for rows. Fails if the device or the host lacks memory.
    pub(crate) fn new(
        device: &Device,
        stream: &Arc<CudaStream>,
        num_resident: u64,
        num_on_host: u64,
    ) -> Result<Self, DriverError> {
        // SAFETY: kernels write all rows before others read them.
        let d_rows = unsafe { stream.alloc::<u32>(4 * num_resident.max(1) as usize) }?;
        let host = (num_on_host > 0).then(|| HostMemory::new(device, 4 * num_on_host as usize)).transpose()?;
        Ok(Self { d_rows, host, num_resident, num_on_host })
    }

    pub(crate) fn device_address(&self, stream: &CudaStream) -> u64 {
        self.d_rows.device_ptr(stream).0
    }

    /// The address that row 0 would have in host memory if all rows were there. It is meaningless without host-resident
    /// rows.
    pub(crate) fn host_address(&self) -> u64 {
        self.host.as_ref().map_or(0, |host| host.address().wrapping_sub(ROW_BYTES * self.num_resident))
    }

    /// The border. Rows before it are device-resident.
    pub(crate) fn num_resident(&self) -> u32 {
        // Row numbers have 32 bits. Without host-resident rows the border is past all of them.
        if self.host.is_some() { self.num_resident as u32 } else { u32::MAX }
    }

    pub(crate) fn host_bytes(&self) -> u64 {
        ROW_BYTES * self.num_on_host
    }

    #[cfg(test)]
    pub(crate) fn to_host(&self, stream: &Arc<CudaStream>) -> Vec<u32> {
        let mut rows = stream.clone_dtoh(&self.d_rows).unwrap();
        stream.synchronize().unwrap();
        rows.truncate(4 * self.num_resident as usize);
        if let Some(host) = &self.host {
            let mut host_rows = vec![0; 4 * self.num_on_host as usize];
            // SAFETY: the memory has this many words, written by kernels that have ended.
            unsafe { cudarc::driver::result::memcpy_dtoh_sync(&mut host_rows, host.address()) }.unwrap();
            rows.extend(host_rows);
        }
        rows
    }

    /// Device-resident rows only.
    #[cfg(test)]
    pub(crate) fn all_resident(d_rows: CudaSlice<u32>) -> Self {
        Self { num_resident: d_rows.len() as u64 / 4, d_rows, host: None, num_on_host: 0 }
    }
}

/// Bytes that are device-resident under any budget: headers, directories, norms.
pub(crate) fn staying_bytes(lists: &ListSections<'_>, directory_stride: u32) -> u64 {
    let directories = size_of::<DirectoryEntry>() as u64 * directory_len(lists, directory_stride);
    size_of::<BlockArgument>() as u64 * num_blocks(lists) + directories + 4 * u64::from(lists.num_docs)
}

/// Blocks in the searched form: those of long lists, and one per term for short lists.
pub(crate) fn num_blocks(lists: &ListSections<'_>) -> u64 {
    lists.blocks.len() as u64 + lists.slots.len() as u64
}

/// Directory entries per block under a budget of device memory. Directories take at most a part of it, since rows are
/// worth more, unless they have the least entries.
pub(crate) fn directory_stride(lists: &ListSections<'_>, budget_bytes: u64) -> u32 {
    let of_one = size_of::<DirectoryEntry>() as u64 * directory_len(lists, 1);
    let room_bytes = budget_bytes.saturating_sub(staying_bytes(lists, 0)).min(budget_bytes / DIRECTORY_PARTS);
    (room_bytes / of_one).clamp(LEAST_DIRECTORY_STRIDE, u64::from(DIRECTORY_STRIDE)) as u32
}

pub(crate) fn directory_len(lists: &ListSections<'_>, directory_stride: u32) -> u64 {
    (lists.blocks.len() as u64 * u64::from(directory_stride)).max(1)
}
