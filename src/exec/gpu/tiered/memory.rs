//! How much of an index may lie in device memory, and what goes there first.

use std::sync::Arc;

use crate::cache::{BlockReads, FarCurve, Placement, WarmBlocks, expected_reads, place_blocks};
use crate::gpu::GpuError;
use crate::ids::TermId;
use crate::index::{BLOCK_LEN, Index};
use crate::query::Query;

/// A budget of device memory for an index, with what a log says of its lists.
#[derive(Clone, Debug)]
pub struct GpuMemory {
    bytes: u64,
    reads: Arc<BlockReads>,
}

impl GpuMemory {
    /// `bytes` for headers, directories, norms and rows. Blocks that queries like `log`'s read most lie there first; without a
    /// log it is the first blocks.
    #[must_use]
    pub fn new(bytes: u64, log: &[Query]) -> Self {
        let mut reads = BlockReads::default();
        for query in log {
            reads.record(&lists(query), BLOCK_LEN as u32);
        }
        Self { bytes, reads: Arc::new(reads) }
    }

    /// Another budget, with what the same log says.
    #[must_use]
    pub fn with_bytes(&self, bytes: u64) -> Self {
        Self { bytes, reads: Arc::clone(&self.reads) }
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

    /// Places the blocks of an index, which take so many `rows` each.
    pub(in crate::exec::gpu) fn place(&self, index: &Index, rows: Vec<u32>) -> Placement {
        let warm = |(term, reads): (u32, f32)| {
            let (first_block, num_blocks) = blocks(index, TermId(term));
            WarmBlocks { first_block, num_blocks, reads }
        };
        let warm: Vec<WarmBlocks> = self.reads.iter().map(warm).collect();
        place_blocks(rows, &warm)
    }
}

/// What share of a query's reads is far, under any budget, where blocks are placed so.
pub(in crate::exec::gpu) fn far_curve(index: &Index, placement: &Placement, query: &Query) -> FarCurve {
    let all = placement.num_rows.max(1) as f64;
    let part = |(term, (_, reads)): (TermId, (u32, f64))| {
        let (first_block, num_blocks) = blocks(index, term);
        let (from, to) = placement.span(first_block, num_blocks);
        (reads, (from as f64 / all, to as f64 / all))
    };
    let terms = query.terms.iter().map(|term| term.term);
    let parts: Vec<_> = terms.zip(expected_reads(&lists(query), BLOCK_LEN as u32)).map(part).collect();
    FarCurve::of(&parts)
}

/// A query's lists: their numbers and lengths.
fn lists(query: &Query) -> Vec<(u32, u32)> {
    query.terms.iter().map(|term| (term.term.0, term.doc_freq)).collect()
}

/// The blocks of a term's list: the first, and how many.
fn blocks(index: &Index, term: TermId) -> (u32, u32) {
    match index.long_list(term) {
        Some(list) => (list.first_block, list.doc_freq.div_ceil(BLOCK_LEN as u32)),
        // A short list has a block of its own behind those of the long ones.
        None => (index.list_sections().blocks.len() as u32 + term.0, 1),
    }
}
