//! A query's term as operators see it: its list, its weight, and what bounds its scores.

use crate::index::{Bm25, Index, PostingList, Probe};
use crate::query::QueryTerm;

/// Covers the rounding of bounds and scores, both sums of up to 64 terms: a document can reach a threshold only if the sum
/// of its terms' bounds, times this, does.
pub(super) const SLACK: f32 = 1.0 + 1.0 / 65536.0;

/// One term of a running query.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term<'a> {
    pub(super) list: PostingList<'a>,
    /// The list's direct form, if it has one.
    pub(super) probe: Option<Probe<'a>>,
    pub(super) weight: f32,
    /// Whether the index's impact bounds hold: they were computed for one `k1` and `b`.
    has_bounds: bool,
}

impl<'a> Term<'a> {
    /// Stands where a query has no term.
    pub(super) const NONE: Self = Self { list: PostingList::EMPTY, probe: None, weight: 0.0, has_bounds: false };

    /// Looks up `term` for searches with `bm25`.
    pub(super) fn new(index: &'a Index, bm25: Bm25, term: &QueryTerm) -> Self {
        let list = index.list(term.term);
        let weight = bm25.weight(index.num_docs(), term.doc_freq, term.qtf);
        let built_with = index.built_with();
        let has_bounds = (bm25.k1, bm25.b) == (built_with.k1, built_with.b);
        Self { list, probe: list.probe(), weight, has_bounds }
    }

    /// An upper bound, but for [`SLACK`], of the term's shares.
    #[inline]
    pub(super) fn max_score(&self) -> f32 {
        // No impact is above one.
        if self.has_bounds { self.weight * self.list.max_impact() } else { self.weight }
    }

    /// An upper bound, but for [`SLACK`], of the term's shares in a block.
    #[inline]
    pub(super) fn block_max_score(&self, block: usize) -> f32 {
        if self.has_bounds { self.weight * self.list.block_max_impact(block) } else { self.weight }
    }
}
