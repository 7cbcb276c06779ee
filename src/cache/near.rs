//! Which blocks of each list are near: a map as whoever reads it has it.

use super::{ListRead, Pages};

/// By list: its blocks that are near, and all of them that have rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearBlocks(Vec<(u32, u32)>);

/// What is expected to be read, and what of it is far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reads {
    /// Far ones,
    pub far: f64,
    /// and all.
    pub all: f64,
}

impl Reads {
    /// What share of them is far; none of none.
    #[must_use]
    pub fn far_share(self) -> f64 {
        if self.all > 0.0 { self.far / self.all } else { 0.0 }
    }
}

impl std::ops::AddAssign for Reads {
    fn add_assign(&mut self, more: Self) {
        self.far += more.far;
        self.all += more.all;
    }
}

impl NearBlocks {
    /// Of so many lists in these pages, of which some are near.
    #[must_use]
    pub fn new(pages: &Pages, num_lists: usize, is_near: impl Fn(u32) -> bool) -> Self {
        let mut lists = vec![(0, 0); num_lists];
        for page in 0..pages.num_pages() {
            let is_near = is_near(page);
            for run in pages.runs(page) {
                let (near, all) = &mut lists[run.list as usize];
                *near += if is_near { run.num_blocks } else { 0 };
                *all += run.num_blocks;
            }
        }
        Self(lists)
    }

    /// A page that was far is near now, or the other way round.
    pub(super) fn put(&mut self, pages: &Pages, page: u32, is_near: bool) {
        for run in pages.runs(page) {
            let near = &mut self.0[run.list as usize].0;
            *near = if is_near { *near + run.num_blocks } else { *near - run.num_blocks };
        }
    }

    /// The share of a list's blocks that is far.
    #[must_use]
    pub fn far_share(&self, list: u32) -> f64 {
        let (near, all) = self.0[list as usize];
        if all == 0 { 0.0 } else { f64::from(all - near) / f64::from(all) }
    }

    /// Of what a query is expected to read, what is far.
    #[must_use]
    pub fn reads(&self, query: impl IntoIterator<Item = ListRead>) -> Reads {
        let mut sum = Reads::default();
        for ListRead { list, reads, .. } in query {
            sum += Reads { far: reads * self.far_share(list), all: reads };
        }
        sum
    }
}
