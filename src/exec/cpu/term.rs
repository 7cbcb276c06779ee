//! A query's term as pruned algorithms see it: its list, its weight, and bounds of its scores.

use super::bounds::ImpactBounds;
use crate::index::PostingList;

/// One term of the query at hand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term<'a> {
    /// Its postings.
    pub(super) list: PostingList<'a>,
    /// What impacts are multiplied by.
    pub(super) weight: f32,
    /// Upper bound of its share of any document's score.
    pub(super) bound: f32,
    bounds: ImpactBounds,
}

impl<'a> Term<'a> {
    /// The term with this list and weight.
    pub(super) fn new(list: PostingList<'a>, weight: f32, bounds: ImpactBounds) -> Self {
        Self { list, weight, bound: weight * bounds.upper(list.max_impact()), bounds }
    }

    /// Upper bound of its share of the score of any document in block `block`.
    #[inline]
    pub(super) fn block_bound(&self, block: usize) -> f32 {
        self.weight * self.bounds.upper(self.list.block_max_impact(block))
    }

    /// A score that at least `k` documents reach by this term alone, as far as the index knows; else 0.
    #[inline]
    pub(super) fn kth_score(&self, k: usize) -> f32 {
        // Below the product's rounding: a score takes three roundings, its bound two.
        self.weight * self.bounds.lower(self.list.kth_impact(k)) * (1.0 - 8.0 * f32::EPSILON)
    }
}

/// The first position in `last_docs`, from `from` on, whose document is at least `target`; the length if there is none.
///
/// Strides double until they pass it (targets tend to be near), then the last stride is halved.
#[inline]
pub(super) fn find_block(last_docs: &[u32], from: usize, target: u32) -> usize {
    let rest = &last_docs[from.min(last_docs.len())..];
    let mut stride = 1;
    while stride < rest.len() && rest[stride - 1] < target {
        stride *= 2;
    }
    let (low, high) = (stride / 2, stride.min(rest.len()));
    from + low + rest[low..high].partition_point(|&last_doc| last_doc < target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn find_block_equals_a_linear_walk() {
        let last_docs: Vec<u32> = (0..50).map(|i| i * 7 + 3).collect();
        for from in 0..last_docs.len() {
            for target in 0..360 {
                let expected = (from..).find(|&i| last_docs.get(i).is_none_or(|&last| last >= target)).unwrap();
                assert_eq!(find_block(&last_docs, from, target), expected, "{from} {target}");
            }
        }
        assert_eq!(find_block(&[], 0, 5), 0);
    }
}
