//! Two tiers: which blocks lie near, where reading is quick, and which far.
//!
//! A block held near saves its bytes each time that it is read, so a byte held saves as often as its block is read: blocks go
//! by how often they are expected to be read, the warmest first. How often that is follows from a log: documents that go on from
//! a query's shortest list are looked up in the others, so that each of its lists is read about as often, in proportion to the
//! shortest, and a list's blocks share that: a list that is long beside others is seldom read in any one place.
//!
//! ```text
//!   order    | warmest list, all its blocks | next | ... | lists that no query names, in the order of their blocks |
//!   a budget | near ............................ ▲ far ........................................................... |
//!                                              border
//! ```
//!
//! There is one order, worked out before a query runs, and a budget is a border in it: every query sees one map, and what a
//! query reads far under *any* budget follows from where its lists lie in the order ([`FarCurve`]). So whoever simulates a
//! budget reckons with the very map that an executor has.

use super::ReadRates;

/// Consecutive blocks that are as warm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmBlocks {
    /// The first of them,
    pub first_block: u32,
    /// how many there are,
    pub num_blocks: u32,
    /// and how often each, or each of its rows, is expected to be read, as for all others; not negative.
    pub reads: f32,
}

/// The order of all blocks' rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// By block: its first row in the order.
    pub first_rows: Vec<u32>,
    /// By block: its rows.
    rows: Vec<u32>,
    /// All rows.
    pub num_rows: u64,
}

impl Placement {
    /// The border under a budget of so many rows: the rows of the blocks that fit, from the order's beginning.
    #[must_use]
    pub fn num_near(&self, room_rows: u64) -> u64 {
        let ends = self.first_rows.iter().zip(&self.rows).map(|(&first, &rows)| u64::from(first) + u64::from(rows));
        ends.filter(|&end| end <= room_rows).max().unwrap_or(0)
    }

    /// Where consecutive blocks that were placed together lie, from and to, in rows.
    ///
    /// # Panics
    /// If there are no such blocks.
    #[must_use]
    pub fn span(&self, first_block: u32, num_blocks: u32) -> (u64, u64) {
        let last = (first_block + num_blocks.max(1) - 1) as usize;
        (
            u64::from(self.first_rows[first_block as usize]),
            u64::from(self.first_rows[last]) + u64::from(self.rows[last]),
        )
    }
}

/// Places blocks of so many `rows` each: the warmest first, then the others in their order. Blocks that are warm by several
/// claims count by the first.
///
/// Numbers wrap where there are more rows than 32 bits count: who uses them checks [`Placement::num_rows`].
#[must_use]
pub fn place_blocks(rows: Vec<u32>, warm: &[WarmBlocks]) -> Placement {
    const NOWHERE: u32 = u32::MAX;
    let mut first_rows = vec![NOWHERE; rows.len()];
    let mut order: Vec<&WarmBlocks> = warm.iter().collect();
    order.sort_by(|a, b| b.reads.total_cmp(&a.reads).then(a.first_block.cmp(&b.first_block)));
    let warm_blocks = order.into_iter().flat_map(|warm| warm.first_block..warm.first_block + warm.num_blocks);
    let mut num_rows: u64 = 0;
    for block in warm_blocks.chain(0..rows.len() as u32).map(|block| block as usize) {
        if first_rows[block] == NOWHERE {
            first_rows[block] = num_rows as u32;
            num_rows += u64::from(rows[block]);
        }
    }
    Placement { first_rows, rows, num_rows }
}

/// How often a log's queries are expected to read a block of each list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockReads {
    /// By list, sparse: lists that no query names are not there.
    reads: std::collections::BTreeMap<u32, f32>,
}

impl BlockReads {
    /// Counts what a query is expected to read.
    pub fn record(&mut self, query: impl IntoIterator<Item = ListRead>) {
        for read in query {
            *self.reads.entry(read.list).or_insert(0.0) += read.of_a_block();
        }
    }

    /// The lists that queries name, each with the reads of one of its blocks.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> {
        self.reads.iter().map(|(&list, &reads)| (list, reads))
    }
}

/// How often a query is expected to read one of its lists, in proportion to other queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ListRead {
    /// The list,
    pub list: u32,
    /// its blocks,
    pub num_blocks: u32,
    /// and the reads of all of these together.
    pub reads: f64,
}

impl ListRead {
    /// How often each of its blocks is read.
    #[must_use]
    pub fn of_a_block(&self) -> f32 {
        (self.reads / f64::from(self.num_blocks)) as f32
    }
}

/// What a query is expected to read of its lists, each with its number and postings; `block_len` postings are a block.
///
/// Documents of the shortest list are looked up in the others, as many as `rates` have it. A list by itself is read by blocks: nothing
/// is looked up in it.
pub fn expected_reads<'a, I: Iterator<Item = (u32, u32)> + Clone>(
    lists: I,
    block_len: u32,
    rates: &'a ReadRates,
) -> impl Iterator<Item = ListRead> + use<'a, I> {
    let (num_lists, shortest) =
        lists.clone().fold((0_u32, u32::MAX), |(count, least), (_, len)| (count + 1, least.min(len)));
    let reads = f64::from(if num_lists > 1 { shortest } else { shortest.div_ceil(block_len) });
    lists.map(move |(list, len)| ListRead {
        list,
        num_blocks: len.div_ceil(block_len).max(1),
        reads: reads * rates.of(len),
    })
}
