//! Which pages of blocks lie near while queries change: counted online, decided in epochs.
//!
//! ```text
//!   queries ──▶ record: reads of each list's blocks, halved every so many queries ──▶ heat of a page: reads of its blocks
//!   epoch   ──▶ the hottest far pages take free frames, then those of the coldest near ones, while a swap pays its copy
//! ```
//!
//! A page held near saves the bytes of each read of its blocks, and all pages are of one size: so the hottest save most a byte
//! held. The far side keeps a copy of every page, so that going costs nothing and coming costs a copy. A swap is made if the page
//! that comes is hotter by as many reads as a copy costs; so pages that are about as hot never change places, and nothing comes
//! back before the queries have changed by that much.
//!
//! The machine is pure: the same records and epochs give the same moves, for an executor that copies pages and for a simulation
//! that only counts.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{NearBlocks, Pages};

/// How residency follows the queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnlineOptions {
    /// Rows of 16 bytes in a page.
    pub page_rows: u32,
    /// Queries of an epoch: what lies near changes at most once in it.
    pub epoch_queries: u32,
    /// Queries after which a read counts half.
    pub half_life_queries: u32,
    /// Pages that come in an epoch, at most.
    pub most_pages: u32,
    /// Reads that the copy of a page costs as much as.
    pub copy_reads: f32,
}

impl OnlineOptions {
    /// Queries of an epoch where nobody says otherwise.
    pub const EPOCH_QUERIES: u32 = 16_384;
    /// Rows of a page, likewise.
    pub const PAGE_ROWS: u32 = 1024;

    /// Epochs of so many queries, of which a read counts half after eight; pages of 16 KiB, 256 MiB of them an epoch: 5 ms of a
    /// bus. Reads are of sectors of 32 bytes, so that a copy costs as much as 512.
    #[must_use]
    pub fn of_epochs(epoch_queries: u32) -> Self {
        Self::of_pages(Self::PAGE_ROWS, epoch_queries)
    }

    /// The same, of pages of another size.
    #[must_use]
    pub fn of_pages(page_rows: u32, epoch_queries: u32) -> Self {
        Self {
            page_rows,
            epoch_queries,
            half_life_queries: epoch_queries.saturating_mul(8),
            most_pages: 16_384,
            copy_reads: page_rows as f32 * 16.0 / 32.0,
        }
    }
}

/// What an epoch moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moves {
    /// Pages that go, each from the frame that it leaves,
    pub gone: Vec<(u32, u32)>,
    /// and those that come, each to its frame, which is free by then.
    pub come: Vec<(u32, u32)>,
}

impl Moves {
    /// Whether nothing moves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.come.is_empty()
    }
}

/// A page that is far.
const FAR: u32 = u32::MAX;

/// Pages in a memory of so many frames, one page each.
#[derive(Clone, Debug, PartialEq)]
pub struct OnlineTier {
    pages: Arc<Pages>,
    options: OnlineOptions,
    /// By list: reads of one of its blocks, old ones for less.
    reads: Vec<f32>,
    /// By page: its frame, or [`FAR`].
    frames: Vec<u32>,
    free: Vec<u32>,
    near: NearBlocks,
}

impl OnlineTier {
    /// The first pages are near, each in the frame of its number, as far as there are frames.
    #[must_use]
    pub fn new(pages: Arc<Pages>, num_lists: usize, num_frames: u32, options: OnlineOptions) -> Self {
        let num_pages = pages.num_pages();
        let frames: Vec<u32> = (0..num_pages).map(|page| if page < num_frames { page } else { FAR }).collect();
        let near = NearBlocks::new(&pages, num_lists, |page| frames[page as usize] != FAR);
        let free = (num_pages..num_frames).rev().collect();
        Self { pages, options, reads: vec![0.0; num_lists], frames, free, near }
    }

    /// Counts so many reads of each block of a list.
    pub fn record(&mut self, list: u32, reads: f32) {
        self.reads[list as usize] += reads;
    }

    /// The frame of a page; `None` if it is far.
    #[must_use]
    pub fn frame_of(&self, page: u32) -> Option<u32> {
        Some(self.frames[page as usize]).filter(|&frame| frame != FAR)
    }

    /// Which blocks are near once all that was decided has been done.
    #[must_use]
    pub fn near(&self) -> &NearBlocks {
        &self.near
    }

    /// The pages.
    #[must_use]
    pub fn pages(&self) -> &Arc<Pages> {
        &self.pages
    }

    /// How residency follows the queries.
    #[must_use]
    pub fn options(&self) -> &OnlineOptions {
        &self.options
    }

    /// Ends an epoch: what moves. Takes time in proportion to pages and lists.
    pub fn end_epoch(&mut self) -> Moves {
        let heats: Vec<f32> = (0..self.pages.num_pages()).map(|page| self.heat(page)).collect();
        let num_pages = 0..heats.len() as u32;
        let is_near = |&page: &u32| self.frames[page as usize] != FAR;
        let copy_reads = self.options.copy_reads;
        // Equally hot pages in their order.
        let hotter = |a: &u32, b: &u32| heats[*b as usize].total_cmp(&heats[*a as usize]).then(a.cmp(b));
        let pays = |page: &u32| !is_near(page) && heats[*page as usize] > copy_reads;
        let coming = foremost(num_pages.clone().filter(pays).collect(), self.options.most_pages as usize, hotter);
        let most_going = coming.len().saturating_sub(self.free.len());
        let going = foremost(num_pages.filter(is_near).collect(), most_going, |a, b| hotter(b, a));

        let mut moves = Moves::default();
        let mut going = going.into_iter();
        for page in coming {
            let frame = match self.free.pop() {
                Some(frame) => frame,
                None => match going.next() {
                    Some(victim) if heats[page as usize] - heats[victim as usize] > copy_reads => {
                        let frame = self.put(victim, FAR);
                        moves.gone.push((victim, frame));
                        frame
                    }
                    _ => break,
                },
            };
            self.put(page, frame);
            moves.come.push((page, frame));
        }
        let kept = 0.5_f64.powf(f64::from(self.options.epoch_queries) / f64::from(self.options.half_life_queries));
        self.reads.iter_mut().for_each(|reads| *reads *= kept as f32);
        moves
    }

    /// Expected reads of a page's blocks.
    fn heat(&self, page: u32) -> f32 {
        self.pages.runs(page).iter().map(|run| self.reads[run.list as usize] * run.num_blocks as f32).sum()
    }

    /// Puts a page into a frame, or far; returns where it was.
    fn put(&mut self, page: u32, frame: u32) -> u32 {
        self.near.put(&self.pages, page, frame != FAR);
        std::mem::replace(&mut self.frames[page as usize], frame)
    }
}

/// The `most` that come first, in order.
fn foremost(mut pages: Vec<u32>, most: usize, order: impl Fn(&u32, &u32) -> Ordering) -> Vec<u32> {
    if most < pages.len() {
        pages.select_nth_unstable_by(most, &order);
        pages.truncate(most);
    }
    pages.sort_unstable_by(order);
    pages
}
