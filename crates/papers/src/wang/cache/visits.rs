//! How often a log's queries come to each part of a list.

use super::Sizes;

/// Postings of a cached block; a list's last may have fewer.
pub(crate) const CACHE_BLOCK_LEN: u32 = 256;

/// What a training log did with each list.
///
/// A query that goes `n` postings into a list visits the blocks of its first `n` postings: all from the list's beginning.
/// So counts never rise along a list, and one number a query and list says all.
///
/// ```text
///   list   |  256  |  256  |  256  | 91 |
///   query 0 ███████████████████              visits of block 0: 3
///   query 1 █████                            visits of block 1: 2
///   query 2 █████████████████████████████    visits of blocks 2 and 3: 2 and 1
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visits {
    /// By list: queries that name it.
    named: Vec<u32>,
    /// Where each list's blocks begin in `ends`, and one more.
    first_blocks: Vec<usize>,
    /// By block: queries whose last visited block of the list it is.
    ends: Vec<u32>,
}

impl Visits {
    /// No query yet.
    #[must_use]
    pub(crate) fn new(sizes: &dyn Sizes) -> Self {
        let mut first_blocks = Vec::with_capacity(sizes.num_lists() + 1);
        let mut blocks = 0;
        for list in 0..sizes.num_lists() as u32 {
            first_blocks.push(blocks);
            blocks += sizes.len(list).div_ceil(CACHE_BLOCK_LEN) as usize;
        }
        first_blocks.push(blocks);
        Self { named: vec![0; sizes.num_lists()], first_blocks, ends: vec![0; blocks] }
    }

    /// Counts a query that names `list` and goes `postings` into it, which may be none.
    ///
    /// # Panics
    /// If the list is not so long.
    pub(crate) fn record(&mut self, list: u32, postings: u32) {
        self.named[list as usize] += 1;
        if postings > 0 {
            let block = self.first_blocks[list as usize] + ((postings - 1) / CACHE_BLOCK_LEN) as usize;
            assert!(block < self.first_blocks[list as usize + 1], "{postings} postings into list {list}");
            self.ends[block] += 1;
        }
    }

    /// Queries that name the list.
    #[must_use]
    pub(crate) fn named(&self, list: u32) -> u32 {
        self.named[list as usize]
    }

    /// Queries that visit each block of the list, from its first block on: none is more than the one before.
    #[must_use]
    pub(crate) fn of_blocks(&self, list: u32) -> Vec<u32> {
        let ends = &self.ends[self.first_blocks[list as usize]..self.first_blocks[list as usize + 1]];
        let mut counts = ends.to_vec();
        for block in (1..counts.len()).rev() {
            counts[block - 1] += counts[block];
        }
        counts
    }

    /// The list that most queries name; the first of several.
    #[must_use]
    pub(crate) fn most_named(&self) -> Option<u32> {
        let best = self.named.iter().enumerate().max_by_key(|&(list, &named)| (named, std::cmp::Reverse(list)));
        best.filter(|&(_, &named)| named > 0).map(|(list, _)| list as u32)
    }
}
