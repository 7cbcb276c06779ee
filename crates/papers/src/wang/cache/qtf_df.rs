//! QtfDf: whole lists by how many queries name them over their length, so that many short lists are held.

use super::admission::Step;
use super::qtf::whole;
use super::{Sizes, Visits};

/// All lists in that order, smaller numbers first among equals.
pub(super) fn by_frequency_over_length(visits: &Visits, sizes: &dyn Sizes) -> Vec<Step> {
    let mut lists: Vec<u32> = (0..sizes.num_lists() as u32).collect();
    // a/b > c/d as ad > cb: exact.
    let parts = |list: u32| (u64::from(visits.named(list)), u64::from(sizes.len(list)));
    lists.sort_by(|&a, &b| {
        let ((named_a, len_a), (named_b, len_b)) = (parts(a), parts(b));
        (named_b * len_a).cmp(&(named_a * len_b))
    });
    whole(lists, sizes)
}
