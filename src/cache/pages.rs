//! Blocks in pages of one size, so that what goes makes room for what comes.
//!
//! ```text
//!   lists, in an order    | aaaaaaaaaaaaa | bb | c | ddddddd | ...
//!   pages                 | aaaaaaa | aaaaaa bb | c ddddddd | ...      a block lies within one page, a list's blocks in order
//! ```

use std::ops::Range;

/// Which pages a list lies in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPages {
    /// The first of them,
    pub first_page: u32,
    /// and how many of the list's blocks lie in it, and in each one behind it.
    pub blocks: Vec<u32>,
}

/// Consecutive blocks of a list, within one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The list.
    pub list: u32,
    /// The first of its blocks here,
    pub first_block: u32,
    /// and how many there are.
    pub num_blocks: u32,
}

/// Where blocks lie in a row of pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    page_rows: u32,
    /// By block.
    first_rows: Vec<u32>,
    runs: Vec<Run>,
    /// By page, and one more: its first run.
    begins: Vec<u32>,
}

impl Pages {
    /// Rows that any block fits into, if it has 128 postings at most.
    pub const LEAST_ROWS: u32 = 128;

    /// Packs the blocks of lists, which take so many `rows` each, into pages of `page_rows`. Blocks without rows have no place
    /// of their own. Places wrap where there are more rows than 32 bits count: who uses them checks [`Pages::num_rows`].
    ///
    /// # Panics
    /// If a block has more rows than a page.
    #[must_use]
    pub fn new(rows: &[u32], lists: impl Iterator<Item = (u32, Range<u32>)>, page_rows: u32) -> Self {
        let mut pages = Self { page_rows, first_rows: vec![0; rows.len()], runs: Vec::new(), begins: vec![0] };
        let (mut page, mut used) = (0_u32, 0);
        for (list, blocks) in lists {
            // A run ends with its list, with its page, and where a block has no rows.
            let mut last: Option<u32> = None;
            for block in blocks {
                let len = rows[block as usize];
                if len == 0 {
                    last = None;
                    continue;
                }
                assert!(len <= page_rows, "a block of {len} rows, in pages of {page_rows}");
                if used + len > page_rows {
                    (page, used, last) = (page + 1, 0, None);
                    pages.begins.push(pages.runs.len() as u32);
                }
                pages.first_rows[block as usize] = page.wrapping_mul(page_rows).wrapping_add(used);
                used += len;
                match (last, pages.runs.last_mut()) {
                    (Some(_), Some(run)) => run.num_blocks += 1,
                    _ => pages.runs.push(Run { list, first_block: block, num_blocks: 1 }),
                }
                last = Some(block);
            }
        }
        pages.begins.push(pages.runs.len() as u32);
        pages
    }

    /// So many pages of which no more is known than how many blocks of some lists lie in each: what tells how hot they are. Lists are
    /// numbered in the order given, in which they lie; where a block begins is not known.
    ///
    /// # Panics
    /// If a list lies in pages that there are not.
    #[must_use]
    pub fn of_lists<'a>(num_pages: u32, page_rows: u32, lists: impl Iterator<Item = &'a ListPages>) -> Self {
        let mut by_page: Vec<Vec<Run>> = vec![Vec::new(); num_pages as usize];
        for (list, ListPages { first_page, blocks }) in (0..).zip(lists) {
            let mut first_block = 0;
            for (page, &num_blocks) in (*first_page as usize..).zip(blocks).filter(|&(_, &blocks)| blocks > 0) {
                by_page[page].push(Run { list, first_block, num_blocks });
                first_block += num_blocks;
            }
        }
        let mut pages = Self { page_rows, first_rows: Vec::new(), runs: Vec::new(), begins: vec![0] };
        for runs in by_page {
            pages.runs.extend(runs);
            pages.begins.push(pages.runs.len() as u32);
        }
        pages
    }

    /// Which pages each of so many lists lies in.
    #[must_use]
    pub fn of_each_list(&self, num_lists: usize) -> Vec<ListPages> {
        let mut lists = vec![ListPages::default(); num_lists];
        for page in 0..self.num_pages() {
            for run in self.runs(page) {
                let ListPages { first_page, blocks } = &mut lists[run.list as usize];
                if blocks.is_empty() {
                    *first_page = page;
                }
                blocks.resize((page - *first_page + 1) as usize, 0);
                blocks[(page - *first_page) as usize] += run.num_blocks;
            }
        }
        lists
    }

    /// How many of so many pages, each of so many rows of `row_bytes`, a memory holds that has room for one and for `more_bytes`.
    #[must_use]
    pub fn frames_within(num_pages: u32, page_rows: u32, more_bytes: u64, row_bytes: u64) -> u32 {
        (1 + more_bytes / (row_bytes * u64::from(page_rows))).min(u64::from(num_pages)) as u32
    }

    /// How many there are; at least one.
    #[must_use]
    pub fn num_pages(&self) -> u32 {
        self.begins.len() as u32 - 1
    }

    /// Rows of a page.
    #[must_use]
    pub fn page_rows(&self) -> u32 {
        self.page_rows
    }

    /// Rows of all pages.
    #[must_use]
    pub fn num_rows(&self) -> u64 {
        u64::from(self.num_pages()) * u64::from(self.page_rows)
    }

    /// By block: its first row, the pages lying one behind the other.
    #[must_use]
    pub fn first_rows(&self) -> &[u32] {
        &self.first_rows
    }

    /// What lies in a page.
    ///
    /// # Panics
    /// If there is no such page.
    #[must_use]
    pub fn runs(&self, page: u32) -> &[Run] {
        let page = page as usize;
        &self.runs[self.begins[page] as usize..self.begins[page + 1] as usize]
    }
}
