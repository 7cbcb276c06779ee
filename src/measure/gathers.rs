//! What batches share of what they read: whether blocks, gathered once for all queries of a batch, would be fewer bytes than
//! the reads of single queries.
//!
//! Each read of a thread counts by itself: less crosses the bus, since a warp's requests and its caches share sectors.

use std::collections::HashMap;
use std::sync::Arc;

use crate::exec::cpu::CpuExecutor;
use crate::exec::{DeviceRows, ExecError, ReadCounter, RowsRead, list_blocks};
use crate::index::Index;
use crate::query::{Mode, Query};

/// Bytes of a sector, which a read across the bus is made of, and of the pieces that are counted beside whole blocks.
const SECTOR_BYTES: u64 = 32;
const PIECE_BYTES: u64 = 128;
const ROW_BYTES: u64 = 16;
const PAGE_ROWS: u32 = 1024;

/// What batches of one size read of the rows of far blocks, in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gathers {
    /// Queries of a batch.
    pub batch: usize,
    /// Reads, each by one warp or thread at once,
    pub reads: f64,
    /// and the sectors of them.
    pub read_bytes: f64,
    /// The blocks that any query reads in, each counted once,
    pub blocks: f64,
    /// and all of their rows.
    pub block_bytes: f64,
    /// The aligned pieces of 128 bytes that any query reads in, each counted once.
    pub piece_bytes: f64,
}

/// Counts what batches of such sizes read far, one batch after another, as many as there are whole ones, but one at least. Such a
/// share of all pages is near, of lists in this order.
///
/// # Errors
/// If a query cannot be searched.
pub fn count_gathers(
    index: &Arc<Index>,
    rows: &DeviceRows,
    (order, near_share): (&[u32], f64),
    queries: &[Query],
    mode: Mode,
    k: usize,
    sizes: &[usize],
) -> Result<Vec<Gathers>, ExecError> {
    let pages = rows.pages(index, order, PAGE_ROWS);
    let border = PAGE_ROWS * (f64::from(pages.num_pages()) * near_share) as u32;
    let far = Far { index, first_rows: pages.first_rows(), border };
    let mut counter = ReadCounter::new(index, CpuExecutor::new(Arc::clone(index), index.built_with()), k);
    let mut touched = Vec::with_capacity(queries.len());
    for query in queries {
        let mut of_query = Touched::default();
        counter.count(query, mode, &mut |read| far.note(&mut of_query, read))?;
        touched.push(of_query);
    }
    let gathers = |&size: &usize| {
        let batches: Vec<&[Touched]> =
            touched.chunks(size).filter(|batch| batch.len() == size.min(touched.len())).collect();
        let mut sum = Gathers { batch: size, ..Gathers::default() };
        for batch in &batches {
            let mut pieces: HashMap<u32, u128> = HashMap::new();
            for touched in *batch {
                sum.reads += touched.reads as f64;
                sum.read_bytes += (SECTOR_BYTES * touched.sectors) as f64;
                for (&block, &bits) in &touched.pieces {
                    *pieces.entry(block).or_insert(0) |= bits;
                }
            }
            sum.blocks += pieces.len() as f64;
            sum.block_bytes +=
                pieces.keys().map(|&block| (ROW_BYTES * u64::from(rows.rows(block))) as f64).sum::<f64>();
            sum.piece_bytes +=
                pieces.values().map(|bits| (PIECE_BYTES * u64::from(bits.count_ones())) as f64).sum::<f64>();
        }
        let batches = batches.len().max(1) as f64;
        Gathers {
            batch: size,
            reads: sum.reads / batches,
            read_bytes: sum.read_bytes / batches,
            blocks: sum.blocks / batches,
            block_bytes: sum.block_bytes / batches,
            piece_bytes: sum.piece_bytes / batches,
        }
    };
    Ok(sizes.iter().map(gathers).collect())
}

/// What a query reads.
#[derive(Clone, Debug, Default)]
struct Touched {
    reads: u64,
    sectors: u64,
    /// By block: its pieces.
    pieces: HashMap<u32, u128>,
}

/// What is far.
struct Far<'a> {
    index: &'a Index,
    first_rows: &'a [u32],
    /// Blocks whose first row is below it are near.
    border: u32,
}

impl Far<'_> {
    /// Notes a read, if it is far.
    fn note(&self, touched: &mut Touched, read: RowsRead) {
        let block = list_blocks(self.index, read.term).0 + read.block;
        if self.first_rows[block as usize] < self.border {
            return;
        }
        let first = ROW_BYTES * u64::from(self.first_rows[block as usize]);
        let from = first + ROW_BYTES * u64::from(read.first_row);
        let to = from + ROW_BYTES * u64::from(read.num_rows);
        touched.reads += 1;
        touched.sectors += (to - 1) / SECTOR_BYTES - from / SECTOR_BYTES + 1;
        let pieces = touched.pieces.entry(block).or_insert(0);
        for piece in from / PIECE_BYTES..=(to - 1) / PIECE_BYTES {
            *pieces |= 1 << (piece - first / PIECE_BYTES);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::QueryId;

    #[test]
    fn queries_that_are_alike_share_all_that_they_read_and_near_pages_are_not_counted() {
        let list = |step: usize| (0..60_000).step_by(step).map(|doc| (doc, 1 + doc % 5)).collect();
        let lists: [(&str, Vec<(u32, u32)>); 3] = [("rare", list(301)), ("some", list(17)), ("many", list(3))];
        let index = Arc::new(Index::from_lists(&lists).unwrap());
        let rows = DeviceRows::new(&index);
        let query = Query::prepare(QueryId(0), "q", &["rare", "some", "many"], &index).unwrap();
        let queries = vec![query; 4];
        let order = ["rare", "some", "many"].map(|name| index.term(name).unwrap().0);
        for mode in [Mode::Or, Mode::And] {
            let count = |near_share: f64, sizes: &[usize]| {
                count_gathers(&index, &rows, (&order, near_share), &queries, mode, 10, sizes).unwrap()
            };
            let [one, two, four] = count(0.0, &[1, 2, 4])[..] else { panic!("three sizes were asked for") };
            assert!(one.reads > 0.0 && one.read_bytes >= 32.0 * one.reads, "{one:?}");
            assert_eq!((four.reads, four.read_bytes), (4.0 * one.reads, 4.0 * one.read_bytes));
            let shared = |one: Gathers| (one.blocks, one.block_bytes, one.piece_bytes);
            assert_eq!((shared(two), shared(four)), (shared(one), shared(one)));
            // No piece is read in part of a block alone that is not within it, but for its ends.
            assert!(one.piece_bytes <= one.block_bytes + 2.0 * 128.0 * one.blocks, "{one:?}");
            let part = count(0.3, &[1])[0];
            assert!(part.reads < one.reads && part.blocks < one.blocks, "{part:?} of {one:?}");
            assert_eq!(count(1.0, &[1]), [Gathers { batch: 1, ..Gathers::default() }]);
        }
    }
}
