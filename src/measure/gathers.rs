//! What batches share of what they read: whether blocks, gathered once for all queries of a batch, would be fewer bytes than
//! the reads of single queries.
//!
//! The reads are those of `kernels/drive.cuh` where the threshold is the final one: a bound from below, and near what kernels do,
//! whose thresholds begin at scores that are known. A list drives block by block; of a block that may reach the threshold the
//! impacts are read, and of a posting that may, its document; this one is looked up in the lists behind, four documents at a time,
//! and where it is found its frequency is read.

use std::collections::HashMap;
use std::sync::Arc;

use crate::cache::BlockReads;
use crate::exec::cpu::CpuExecutor;
use crate::exec::{DeviceRows, ExecError, Executor, Hit, byte_rows, value_rows};
use crate::index::{BLOCK_LEN, Bm25, Index, PostingList};
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
/// share of all pages is near, those first that `learned` has most reads of.
///
/// # Errors
/// If a query cannot be searched.
pub fn count_gathers(
    index: &Arc<Index>,
    rows: &DeviceRows,
    (learned, near_share): (&BlockReads, f64),
    queries: &[Query],
    mode: Mode,
    k: usize,
    sizes: &[usize],
) -> Result<Vec<Gathers>, ExecError> {
    let norms = index.built_with().norms(index.doc_lengths(), index.average_length());
    let pages = rows.pages(index, learned, PAGE_ROWS);
    let border = PAGE_ROWS * (f64::from(pages.num_pages()) * near_share) as u32;
    let counter = Counter { index, rows, first_rows: pages.first_rows(), border, norms };
    let mut cpu = CpuExecutor::new(Arc::clone(index), index.built_with());
    let mut touched = Vec::with_capacity(queries.len());
    let mut hits: Vec<Hit> = Vec::new();
    for query in queries {
        cpu.search(query, mode, k, &mut hits)?;
        let floor = if hits.len() == k { hits[k - 1].score } else { 0.0 };
        touched.push(counter.count(query, mode, floor));
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

struct Counter<'a> {
    index: &'a Index,
    rows: &'a DeviceRows,
    first_rows: &'a [u32],
    /// Blocks whose first row is below it are near.
    border: u32,
    norms: Vec<f32>,
}

/// A list of a query, as the kernels have it.
struct Term<'a> {
    list: PostingList<'a>,
    first_block: u32,
    weight: f32,
    /// What it and those behind it add at most.
    rest: f32,
    /// The block that was decoded last.
    decoded: usize,
    docs: [u32; BLOCK_LEN],
}

impl Counter<'_> {
    /// A read of rows of a block, from one on, if it is far.
    fn read(&self, touched: &mut Touched, block: u32, row: u32, num_rows: u32) {
        if self.first_rows[block as usize] < self.border {
            return;
        }
        let first = ROW_BYTES * u64::from(self.first_rows[block as usize]);
        let from = first + ROW_BYTES * u64::from(row);
        let to = from + ROW_BYTES * u64::from(num_rows.max(1));
        touched.reads += 1;
        touched.sectors += (to - 1) / SECTOR_BYTES - from / SECTOR_BYTES + 1;
        let pieces = touched.pieces.entry(block).or_insert(0);
        for piece in from / PIECE_BYTES..=(to - 1) / PIECE_BYTES {
            *pieces |= 1 << (piece - first / PIECE_BYTES);
        }
    }

    /// A read of documents, or of four of them: the one or two rows of their bits.
    fn read_doc(&self, touched: &mut Touched, block: u32, position: usize) {
        let width = self.rows.doc_width(block);
        if width > 0 {
            let bit = position as u32 / 4 * width;
            let (low, high) = (bit / 32, (bit + width - 1) / 32);
            self.read(touched, block, low, high - low + 1);
        }
    }

    /// What a query reads of whose results none scores less than `floor`.
    fn count(&self, query: &Query, mode: Mode, floor: f32) -> Touched {
        let bm25: Bm25 = self.index.built_with();
        let mut touched = Touched::default();
        let mut terms: Vec<Term<'_>> = Vec::new();
        for term in &query.terms {
            let list = self.index.list(term.term);
            let weight = bm25.weight(self.index.num_docs(), term.doc_freq, term.qtf);
            let (first_block, _) = self.rows.blocks(self.index, term.term);
            let rest = weight * list.max_impact();
            terms.push(Term { list, first_block, weight, rest, decoded: usize::MAX, docs: [0; BLOCK_LEN] });
        }
        let mut total = 0.0;
        for term in terms.iter_mut().rev() {
            total += term.rest;
            term.rest = total;
        }
        let needs_all = mode == Mode::And && terms.len() > 1;
        let drivers = if needs_all { 1 } else { terms.iter().take_while(|term| term.rest >= floor).count() };
        let (mut docs, mut freqs) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
        for driver in 0..drivers {
            let (list, first_block, weight) = (terms[driver].list, terms[driver].first_block, terms[driver].weight);
            let rest = terms.get(driver + 1).map_or(0.0, |next| next.rest);
            for block in 0..list.num_blocks() {
                if weight * list.block_max_impact(block) + rest < floor {
                    continue;
                }
                let number = first_block + block as u32;
                let len = list.decode_docs(block, &mut docs);
                list.decode_freqs(block, &mut freqs);
                let doc_rows = value_rows(len, self.rows.doc_width(number));
                self.read(&mut touched, number, doc_rows, byte_rows(len));
                for position in 0..len {
                    let own = Bm25::score(weight, freqs[position], self.norms[docs[position] as usize]);
                    if own + rest >= floor {
                        self.read_doc(&mut touched, number, position);
                        self.follow(&mut touched, &mut terms, driver, docs[position], own, floor, needs_all);
                    }
                }
            }
        }
        touched
    }

    /// Looks a document up in the lists behind the one that drives, as long as it may reach the floor.
    #[expect(clippy::too_many_arguments, reason = "one step of one loop, which has all of these")]
    fn follow(
        &self,
        touched: &mut Touched,
        terms: &mut [Term<'_>],
        driver: usize,
        doc: u32,
        own: f32,
        floor: f32,
        needs_all: bool,
    ) {
        let mut score = own;
        let (before, behind) = terms.split_at_mut(driver + 1);
        for term in behind {
            if score + term.rest < floor {
                return;
            }
            match self.look_up(touched, term, doc) {
                Some(found) => score += found,
                None if needs_all => return,
                None => {}
            }
        }
        if score < floor {
            return;
        }
        for term in &mut before[..driver] {
            if self.look_up(touched, term, doc).is_some() {
                return;
            }
        }
    }

    /// What a list adds to a document, if it has it.
    fn look_up(&self, touched: &mut Touched, term: &mut Term<'_>, doc: u32) -> Option<f32> {
        let block = term.list.last_docs().partition_point(|&last| last < doc);
        if block >= term.list.num_blocks() {
            return None;
        }
        let len = term.list.block_len(block);
        if term.decoded != block {
            term.list.decode_docs(block, &mut term.docs);
            term.decoded = block;
        }
        let position = term.docs[..len].partition_point(|&other| other < doc);
        let number = term.first_block + block as u32;
        self.read_doc(touched, number, position.min(len - 1));
        if position == len || term.docs[position] != doc {
            return None;
        }
        let rows = self.rows.rows(number);
        let freq_row = value_rows(len, self.rows.doc_width(number)) + byte_rows(len);
        if rows > freq_row {
            let per_row = (rows - freq_row) as usize;
            self.read(touched, number, freq_row + (position * per_row / len) as u32, 1);
        }
        let freq = term.list.freq_at(block, position);
        Some(Bm25::score(term.weight, freq, self.norms[doc as usize]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::expected_reads;
    use crate::ids::QueryId;

    #[test]
    fn queries_that_are_alike_share_all_that_they_read_and_near_pages_are_not_counted() {
        let list = |step: usize| (0..60_000).step_by(step).map(|doc| (doc, 1 + doc % 5)).collect();
        let lists: [(&str, Vec<(u32, u32)>); 3] = [("rare", list(301)), ("some", list(17)), ("many", list(3))];
        let index = Arc::new(Index::from_lists(&lists).unwrap());
        let rows = DeviceRows::new(&index);
        let query = Query::prepare(QueryId(0), "q", &["rare", "some", "many"], &index).unwrap();
        let queries = vec![query; 4];
        let mut learned = BlockReads::default();
        learned.record(expected_reads([(index.term("rare").unwrap().0, 200)].into_iter(), 128));
        for mode in [Mode::Or, Mode::And] {
            let count = |near_share: f64, sizes: &[usize]| {
                count_gathers(&index, &rows, (&learned, near_share), &queries, mode, 10, sizes).unwrap()
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
