//! A query's term as AND and pruned OR see it: its list, its weight, and bounds of its scores.

use super::impact_bounds::ImpactBounds;
use crate::index::{PostingList, Probe};

/// One term of the query at hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term<'a> {
    /// Its postings.
    pub(crate) list: PostingList<'a>,
    /// The list's direct form, if it has one.
    pub(crate) probe: Option<Probe<'a>>,
    /// What impacts are multiplied by.
    pub(crate) weight: f32,
    /// Upper bound of its share of any document's score.
    pub(crate) bound: f32,
    bounds: ImpactBounds,
}

impl<'a> Term<'a> {
    /// The term with this list and weight. What searching it reads first is asked for, together with the other terms'.
    pub(crate) fn new(list: PostingList<'a>, weight: f32, bounds: ImpactBounds) -> Self {
        list.prefetch_head();
        Self { list, probe: list.probe(), weight, bound: weight * bounds.upper(list.max_impact()), bounds }
    }

    /// Upper bound of its share of the score of any document in block `block`.
    #[inline]
    pub(crate) fn block_bound(&self, block: usize) -> f32 {
        self.weight * self.bounds.upper(self.list.block_max_impact(block))
    }

    /// A score that at least `k` documents reach by this term alone, as far as the index knows; else 0.
    #[inline]
    pub(crate) fn kth_score(&self, k: usize) -> f32 {
        // Below the product's rounding: a score takes three roundings, its bound two.
        self.weight * self.bounds.lower(self.list.kth_impact(k)) * (1.0 - 8.0 * f32::EPSILON)
    }
}
