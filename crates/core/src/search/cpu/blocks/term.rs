//! A query's term in an executor's form: its list, its weight, and bounds of its scores.

use super::impact_bounds::ImpactBounds;
use crate::index::{PostingList, Probe};

/// One term of the current query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Term<'a> {
    pub(crate) list: PostingList<'a>,
    /// The bitmap of a dense list.
    pub(crate) probe: Option<Probe<'a>>,
    /// The factor of impacts.
    pub(crate) weight: f32,
    /// Upper bound of its share of any document's score.
    pub(crate) bound: f32,
    bounds: ImpactBounds,
}

impl<'a> Term<'a> {
    /// Prefetches the first memory that a search reads, so that reads of all terms overlap.
    pub(crate) fn new(list: PostingList<'a>, weight: f32, bounds: ImpactBounds) -> Self {
        list.prefetch_head();
        Self { list, probe: list.probe(), weight, bound: weight * bounds.upper(list.max_impact()), bounds }
    }

    /// Upper bound of its share in block `block`.
    #[inline]
    pub(crate) fn block_bound(&self, block: usize) -> f32 {
        self.weight * self.bounds.upper(self.list.block_max_impact(block))
    }

    /// A score that at least `k` documents reach by this term alone, or 0 if the index knows none.
    #[inline]
    pub(crate) fn kth_score(&self, k: usize) -> f32 {
        // The margin covers the roundings: a score has three, its bound two.
        self.weight * self.bounds.lower(self.list.kth_impact(k)) * (1.0 - 8.0 * f32::EPSILON)
    }
}
