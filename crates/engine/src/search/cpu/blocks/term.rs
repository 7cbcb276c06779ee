//! A query's term in an executor's form: its list, its weight, and bounds of its scores at the query's BM25 parameters.
//!
//! An index stores bounds of `tf / (tf + norm)` at the `k1` and `b` that it was built with. Other parameters give other
//! norms, `norm'`. If `norm' / norm` lies in `[c, C]` for every document, then
//!
//! ```text
//! tf / (tf + norm)  <=  m    means    tf / (tf + norm')  <=  m / (m + c (1 - m))
//! tf / (tf + norm)  >=  m    means    tf / (tf + norm')  >=  m / (m + C (1 - m))
//! ```
//!
//! A stored bound thus stays valid, if less tight, and every algorithm works with it. The ratio of two linear functions
//! of the document length is monotone, so its extremes are at the shortest and the longest document. The form of the
//! idf changes weights only, not impacts.

use crate::index::{Bm25, Index, PostingList, Probe};

/// Slack for the roundings of a conversion, far above their size.
const SLACK: f64 = 1e-6;

/// Converts stored bounds of impacts to the query's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImpactBounds {
    /// Least and greatest ratio of the query's norms to the index's, or `None` if equal.
    ratios: Option<(f64, f64)>,
}

impl ImpactBounds {
    pub(crate) fn new(index: &Index, bm25: Bm25) -> Self {
        let built_with = index.built_with();
        if built_with.k1 == bm25.k1 && built_with.b == bm25.b {
            return Self { ratios: None };
        }
        let lengths = index.doc_lengths();
        let shortest = lengths.iter().min().copied().unwrap_or(0);
        let longest = lengths.iter().max().copied().unwrap_or(0);
        let ratio = |length| {
            let average = index.average_length();
            f64::from(bm25.norm(length, average)) / f64::from(built_with.norm(length, average))
        };
        let (at_shortest, at_longest) = (ratio(shortest), ratio(longest));
        // A norm of 0 (k1 of 0, or b of 1 and an empty document) has no ratio. Impacts are then up to 1.
        let ratios = if at_shortest.is_finite() && at_longest.is_finite() {
            (at_shortest.min(at_longest) * (1.0 - SLACK), at_shortest.max(at_longest) * (1.0 + SLACK))
        } else {
            (0.0, f64::INFINITY)
        };
        Self { ratios: Some(ratios) }
    }

    #[inline]
    pub(crate) fn upper(self, stored: f32) -> f32 {
        match self.ratios {
            None => stored,
            Some((least, _)) if stored > 0.0 => {
                let stored = f64::from(stored);
                let converted = stored / (stored + least * (1.0 - stored).max(0.0));
                (converted * (1.0 + SLACK)) as f32
            }
            Some(_) => stored,
        }
    }

    #[inline]
    pub(crate) fn lower(self, stored: f32) -> f32 {
        match self.ratios {
            None => stored,
            Some((_, greatest)) if stored > 0.0 && greatest.is_finite() => {
                let stored = f64::from(stored);
                let converted = stored / (stored + greatest * (1.0 - stored).max(0.0));
                (converted * (1.0 - SLACK)) as f32
            }
            Some(_) => 0.0,
        }
    }
}

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

/// The terms of a query in its order, the documents to search, and the norms of all documents.
#[derive(Clone, Copy)]
pub(crate) struct SearchScope<'a> {
    pub(crate) terms: &'a [Term<'a>],
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) norms: &'a [f32],
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn converted_bounds_hold_for_every_posting(
            postings in prop::collection::vec((1..40_u32, 1..500_u32), 1..50),
            k1 in prop_oneof![Just(0.0_f32), 0.0..3.0_f32],
            b in prop_oneof![Just(0.0_f32), Just(1.0), 0.0..=1.0_f32],
        ) {
            // A document's length is its frequency in the first list plus that in the second one.
            let first: Vec<(u32, u32)> = (0..).zip(&postings).map(|(doc, p)| (doc, p.0)).collect();
            let second: Vec<(u32, u32)> = (0..).zip(&postings).map(|(doc, p)| (doc, p.1)).collect();
            let index = Index::from_lists(&[("a", first.clone()), ("b", second)]).unwrap();
            let bm25 = Bm25 { k1, b, ..index.built_with() };
            let bounds = ImpactBounds::new(&index, bm25);
            let impacts = |bm25: Bm25| -> Vec<f32> {
                let norms = bm25.norms(index.doc_lengths(), index.average_length());
                first.iter().map(|&(doc, tf)| Bm25::score(1.0, tf, norms[doc as usize])).collect()
            };
            for (stored, wanted) in impacts(index.built_with()).into_iter().zip(impacts(bm25)) {
                let upper = bounds.upper(stored * (1.0 + 1e-6));
                prop_assert!(wanted <= upper, "{wanted} above {upper}");
                let lower = bounds.lower(stored * (1.0 - 1e-6));
                prop_assert!(wanted >= lower, "{wanted} below {lower}");
            }
        }
    }
}
