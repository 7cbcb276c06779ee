//! Qtf: whole lists by how many queries name them.

use std::cmp::Reverse;

use super::admission::Step;
use super::{Sizes, Visits};

/// All lists in that order, smaller numbers first among equals.
pub(super) fn by_frequency(visits: &Visits, sizes: &dyn Sizes) -> Vec<Step> {
    let mut lists: Vec<u32> = (0..sizes.num_lists() as u32).collect();
    lists.sort_by_key(|&list| Reverse(visits.named(list)));
    whole(lists, sizes)
}

/// Steps that take whole lists; those without a posting take none.
pub(super) fn whole(lists: Vec<u32>, sizes: &dyn Sizes) -> Vec<Step> {
    let steps = lists.into_iter().map(|list| Step { list, postings: sizes.len(list) });
    steps.filter(|step| step.postings > 0).collect()
}
