//! VFB: blocks by their visiting frequency.
//!
//! The end of a long list is seldom reached, since queries end early: its room is better used for the beginnings of
//! others. Blocks go by how many queries visit them; of those visited equally often, the list that more queries name comes
//! first. Counts never rise along a list, so that what is admitted of one is a beginning of it.

use std::cmp::Reverse;

use super::admission::Step;
use super::visits::CACHE_BLOCK_LEN;
use super::{Sizes, Visits};

/// All blocks in that order, but for what exceeds `share` of a list: there the last block is cut.
pub(super) fn by_visits(visits: &Visits, sizes: &dyn Sizes, share: f64) -> Vec<Step> {
    let mut blocks = Vec::new();
    for list in 0..sizes.num_lists() as u32 {
        let most = (f64::from(sizes.len(list)) * share).floor() as u32;
        let named = visits.named(list);
        for (block, count) in (0..).zip(visits.of_blocks(list)) {
            if block * CACHE_BLOCK_LEN >= most {
                break;
            }
            let postings = ((block + 1) * CACHE_BLOCK_LEN).min(most);
            blocks.push((Reverse(count), Reverse(named), Step { list, postings }));
        }
    }
    blocks.sort_unstable_by_key(|&(count, named, step)| (count, named, step.list, step.postings));
    blocks.into_iter().map(|(.., step)| step).collect()
}
