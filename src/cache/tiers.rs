//! Two tiers: which blocks lie near, where reading is quick, and which far.
//!
//! A block held near saves its bytes each time that it is read, so a byte held saves as often as its block is read: blocks go
//! by how often they are expected to be read, the warmest first, until the near memory is full. How often that is follows
//! from a log: a query goes through the shortest of its lists, and looks up about as many documents in each other one, which
//! touches a block of it at most for each.
//!
//! ```text
//!   near   | warm list, all its blocks | another | blocks of the first that did not fit whole |
//!   far    | what is left of it | lists that no query names, in the order of their blocks |
//! ```
//!
//! All is decided before a query runs: every query of an epoch sees one map.

/// Consecutive blocks that are as warm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmBlocks {
    /// The first of them,
    pub first_block: u32,
    /// how many there are,
    pub num_blocks: u32,
    /// and how often each is expected to be read; not negative.
    pub reads: f32,
}

/// Where each block lies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// By block: its first row. Near ones are below [`num_near`](Self::num_near).
    pub first_rows: Vec<u32>,
    /// Rows that lie near.
    pub num_near: u64,
    /// All rows.
    pub num_rows: u64,
}

/// Places blocks of so many `rows` each: the warmest near, as long as `room_rows` holds them; then others in their order,
/// while there is room. What does not fit is passed over. Blocks that are warm by several claims count by the first.
///
/// Numbers wrap where there are more rows than 32 bits count: who uses them checks [`Placement::num_rows`].
#[must_use]
pub fn place_blocks(rows: &[u32], warm: &[WarmBlocks], room_rows: u64) -> Placement {
    const NOWHERE: u32 = u32::MAX;
    let mut first_rows = vec![NOWHERE; rows.len()];
    let mut order: Vec<&WarmBlocks> = warm.iter().collect();
    order.sort_by(|a, b| b.reads.total_cmp(&a.reads).then(a.first_block.cmp(&b.first_block)));
    let warm_blocks = order.into_iter().flat_map(|warm| warm.first_block..warm.first_block + warm.num_blocks);
    let mut num_near = 0;
    for block in warm_blocks.chain(0..rows.len() as u32).map(|block| block as usize) {
        let end = num_near + u64::from(rows[block]);
        if first_rows[block] == NOWHERE && end <= room_rows {
            first_rows[block] = num_near as u32;
            num_near = end;
        }
    }
    let mut num_rows = num_near;
    for (first_row, &rows) in first_rows.iter_mut().zip(rows).filter(|(first_row, _)| **first_row == NOWHERE) {
        *first_row = num_rows as u32;
        num_rows += u64::from(rows);
    }
    Placement { first_rows, num_near, num_rows }
}

/// How often a log's queries are expected to read a block of each list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockReads {
    /// By list, sparse: lists that no query names are not there.
    reads: std::collections::BTreeMap<u32, f32>,
}

impl BlockReads {
    /// Counts a query of these lists, each with its number and postings; `block_len` postings are a block.
    pub fn record(&mut self, lists: &[(u32, u32)], block_len: u32) {
        let Some(shortest) = lists.iter().map(|&(_, len)| len).min() else { return };
        for &(list, len) in lists {
            let blocks = len.div_ceil(block_len).max(1);
            let share = (f64::from(shortest) / f64::from(blocks)).min(1.0);
            *self.reads.entry(list).or_insert(0.0) += share as f32;
        }
    }

    /// The lists that queries name, each with the reads of one of its blocks.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> {
        self.reads.iter().map(|(&list, &reads)| (list, reads))
    }
}
