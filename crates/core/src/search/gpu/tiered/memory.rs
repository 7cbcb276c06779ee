//! A budget of device memory for an index.

use std::sync::Arc;

use crate::base::ids::TermId;
use crate::index::Index;
use crate::query::Query;
use crate::search::device::GpuError;
use crate::search::placement::expected_reads::log_reads;
use crate::search::placement::learned_reads::LearnedReads;
use crate::search::placement::list_rows::{list_blocks, list_sizes};
use crate::search::placement::read_counter::read_rates;
use crate::search::placement::row_order::{HotBlocks, RowOrder, place_blocks};

/// A budget of device memory for an index, with the expected reads of its lists.
#[derive(Clone, Debug)]
pub struct GpuMemory {
    bytes: u64,
    learned: Arc<LearnedReads>,
}

impl GpuMemory {
    /// A budget of `bytes` for headers, directories, norms and rows. Blocks that queries like `log`'s read most become
    /// device-resident first. Without a log the order is by block number.
    #[must_use]
    pub fn new(bytes: u64, index: &Arc<Index>, log: &[Query]) -> Self {
        Self { bytes, learned: Arc::new(log_reads(log, &read_rates(index, log))) }
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
