//! Blocks in pages of one size, so that what goes makes room for what comes.
//!
//! ```text
//!   lists, in an order    | aaaaaaaaaaaaa | bb | c | ddddddd | ...
//!   pages                 | aaaaaaa | aaaaaa bb | c ddddddd | ...      a block lies within one page, a list's blocks in order
//! ```

use std::ops::Range;

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
