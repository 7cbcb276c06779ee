//! How much of an index may lie in device memory, and what goes there first.

use crate::cache::{BlockReads, Placement, WarmBlocks, place_blocks};
use crate::gpu::GpuError;
use crate::ids::TermId;
use crate::index::{BLOCK_LEN, Index};
use crate::query::Query;

/// A budget of device memory for an index, with what a log says of its lists.
#[derive(Clone, Debug)]
pub struct GpuMemory {
    bytes: u64,
    reads: BlockReads,
}

impl GpuMemory {
    /// `bytes` for headers, directories, norms and rows. Blocks that queries like `log`'s read most lie there first; without a
    /// log it is the first blocks.
    #[must_use]
    pub fn new(bytes: u64, log: &[Query]) -> Self {
        let mut reads = BlockReads::default();
        let mut lists = Vec::new();
        for query in log {
            lists.clear();
            lists.extend(query.terms.iter().map(|term| (term.term.0, term.doc_freq)));
            reads.record(&lists, BLOCK_LEN as u32);
        }
        Self { bytes, reads }
    }

    /// What is left for rows where `staying_bytes` are taken by what stays, of `room_bytes` that are free beside these.
    ///
    /// # Errors
    /// [`GpuError::BadBudget`] if the budget is smaller than what stays, or larger than what is free.
    pub(in crate::exec::gpu) fn rows_bytes(&self, staying_bytes: u64, room_bytes: u64) -> Result<u64, GpuError> {
        match self.bytes.checked_sub(staying_bytes) {
            Some(rows_bytes) if rows_bytes <= room_bytes => Ok(rows_bytes),
            _ => Err(GpuError::BadBudget {
                budget_bytes: self.bytes,
                least_bytes: staying_bytes,
                free_bytes: staying_bytes + room_bytes,
            }),
        }
    }

    /// Places the blocks of an index, which take so many `rows` each, `room_rows` of them near.
    pub(in crate::exec::gpu) fn place(&self, index: &Index, rows: &[u32], room_rows: u64) -> Placement {
        let num_long_blocks = index.list_sections().blocks.len() as u32;
        let warm = |(term, reads): (u32, f32)| match index.long_list(TermId(term)) {
            Some(list) => {
                let num_blocks = list.doc_freq.div_ceil(BLOCK_LEN as u32);
                WarmBlocks { first_block: list.first_block, num_blocks, reads }
            }
            // A short list has a block of its own behind those of the long ones.
            None => WarmBlocks { first_block: num_long_blocks + term, num_blocks: 1, reads },
        };
        let warm: Vec<WarmBlocks> = self.reads.iter().map(warm).collect();
        place_blocks(rows, &warm, room_rows)
    }
}
