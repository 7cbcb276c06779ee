//! Visits of a log's queries to each part of a list.

use super::sizes::Sizes;

/// Postings of a cached block; the last block of a list may have fewer.
pub(crate) const CACHE_BLOCK_LEN: u32 = 256;

/// Visits of a training log to each list.
///
/// A query that reads `n` postings of a list visits the blocks of its first `n` postings. Counts therefore never rise
/// along a list, and one number per query and list is enough.
///
/// ```text
///   list   |  256  |  256  |  256  | 91 |
///   query 0 ███████████████████              visits of block 0: 3
///   query 1 █████                            visits of block 1: 2
///   query 2 █████████████████████████████    visits of blocks 2 and 3: 2 and 1
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visits {
    named: Vec<u32>,
    /// First block of each list in `ends`, and the end.
    first_blocks: Vec<usize>,
    /// Number of queries whose last visited block of the list is this block.
    ends: Vec<u32>,
}

impl Visits {
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

    /// Counts a query that names `list` and reads `postings` of it, possibly 0. Panics if the list is shorter.
    pub(crate) fn record(&mut self, list: u32, postings: u32) {
        self.named[list as usize] += 1;
        if postings > 0 {
            let block = self.first_blocks[list as usize] + ((postings - 1) / CACHE_BLOCK_LEN) as usize;
            assert!(block < self.first_blocks[list as usize + 1], "{postings} postings into list {list}");
            self.ends[block] += 1;
        }
    }

    /// Returns the number of queries that name the list.
    pub(crate) fn named(&self, list: u32) -> u32 {
        self.named[list as usize]
    }

    /// Returns the number of queries that visit each block of the list; it never rises.
    pub(crate) fn of_blocks(&self, list: u32) -> Vec<u32> {
        let ends = &self.ends[self.first_blocks[list as usize]..self.first_blocks[list as usize + 1]];
        let mut counts = ends.to_vec();
        for block in (1..counts.len()).rev() {
            counts[block - 1] += counts[block];
        }
        counts
    }

    /// Returns the first of the lists that most queries name.
    pub(crate) fn most_named(&self) -> Option<u32> {
        let best = self.named.iter().enumerate().max_by_key(|&(list, &named)| (named, std::cmp::Reverse(list)));
        best.filter(|&(_, &named)| named > 0).map(|(list, _)| list as u32)
    }
}
