//! How much of an index may lie in device memory, and what goes there first.

use std::sync::Arc;

use crate::cache::{
    BlockReads, FarCurve, LearnedReads, OnlineOptions, OnlineTier, Pages, Placement, ReadRates, WarmBlocks,
    place_blocks,
};
use crate::exec::{block_reads, learned_reads, list_blocks, list_sizes, read_rates};
use crate::gpu::GpuError;
use crate::ids::TermId;
use crate::index::Index;
use crate::query::Query;

/// A budget of device memory for an index, with what a log says of its lists.
#[derive(Clone, Debug)]
pub struct GpuMemory {
    bytes: u64,
    log: Arc<Log>,
    online: Option<OnlineOptions>,
}

/// What a log says of lists.
#[derive(Debug)]
struct Log {
    rates: Arc<ReadRates>,
    /// What its queries read, for lists that are asked for rarely, too,
    learned: LearnedReads,
    /// and of those that they name, to go on from.
    reads: BlockReads,
}

impl GpuMemory {
    /// `bytes` for headers, directories, norms and rows. Blocks that queries like `log`'s read most lie there first; without a
    /// log it is the first blocks.
    #[must_use]
    pub fn new(bytes: u64, index: &Arc<Index>, log: &[Query]) -> Self {
        let rates = Arc::new(read_rates(index, log));
        let (learned, reads) = (learned_reads(log, &rates), block_reads(log, &rates));
        Self { bytes, log: Arc::new(Log { rates, learned, reads }), online: None }
    }

    /// Another budget, with what the same log says.
    #[must_use]
    pub fn with_bytes(&self, bytes: u64) -> Self {
        Self { bytes, log: Arc::clone(&self.log), online: self.online }
    }

    /// The same budget, with what lies there following the queries that come: the host's memory then holds all rows, and device
    /// memory headers twice.
    ///
    /// # Panics
    /// If pages are smaller than [`Pages::LEAST_ROWS`], or an epoch has no queries.
    #[must_use]
    pub fn online(&self, options: OnlineOptions) -> Self {
        assert!(options.page_rows >= Pages::LEAST_ROWS && options.epoch_queries > 0, "{options:?}");
        Self { online: Some(options), ..self.clone() }
    }

    /// What is read of lists, by their length.
    pub(in crate::exec::gpu) fn rates(&self) -> &Arc<ReadRates> {
        &self.log.rates
    }

    /// How residency follows the queries, if it does.
    pub(in crate::exec::gpu) fn online_options(&self) -> Option<OnlineOptions> {
        self.online
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
        let row_reads = self.log.learned.row_reads(&list_sizes(index, &rows));
        let warm = (0..).zip(row_reads).filter(|&(_, reads)| reads > 0.0).map(|(term, reads)| {
            let (first_block, num_blocks) = list_blocks(index, TermId(term));
            WarmBlocks { first_block, num_blocks, reads }
        });
        let warm: Vec<WarmBlocks> = warm.collect();
        place_blocks(rows, &warm)
    }
}

impl GpuMemory {
    /// The blocks of an index, which take so many `rows` each, in pages: what the log's queries read most comes first.
    pub(in crate::exec::gpu) fn pages(&self, index: &Index, rows: &[u32], page_rows: u32) -> Pages {
        let order = self.log.learned.order(&list_sizes(index, rows));
        let lists = order.into_iter().map(|term| {
            let (first_block, num_blocks) = list_blocks(index, TermId(term));
            (term, first_block..first_block + num_blocks)
        });
        Pages::new(rows, lists, page_rows)
    }

    /// What is near at first, which the log says, and changes from there.
    pub(in crate::exec::gpu) fn tier(
        &self,
        index: &Index,
        pages: &Arc<Pages>,
        num_frames: u32,
        options: OnlineOptions,
    ) -> OnlineTier {
        let mut tier = OnlineTier::new(Arc::clone(pages), index.num_terms() as usize, num_frames, options);
        self.log.reads.iter().for_each(|(list, reads)| tier.record(list, reads));
        tier
    }
}

/// What share of so many reads of lists is far, under any budget, where blocks are placed so.
pub(in crate::exec::gpu) fn far_curve(index: &Index, placement: &Placement, reads: &[(TermId, f64)]) -> FarCurve {
    let all = placement.num_rows.max(1) as f64;
    let part = |&(term, reads): &(TermId, f64)| {
        let (first_block, num_blocks) = list_blocks(index, term);
        let (from, to) = placement.span(first_block, num_blocks);
        (reads, (from as f64 / all, to as f64 / all))
    };
    FarCurve::of(&reads.iter().map(part).collect::<Vec<_>>())
}
