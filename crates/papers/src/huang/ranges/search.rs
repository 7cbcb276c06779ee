//! A query on the CPU: range after range by one thread, then the merge.

use std::ops::Range;

use super::cursor::Cursor;
use super::index::{Norms, RangeIndex};
use super::range::range_of;
use super::strategy::Strategy;
use super::top_k::{RangeTopK, insert_merge};
use super::{and, bmw, or, wand};
use crate::codec::CodecError;
use tandem_core::query::Query;
use tandem_core::search::{Hit, TopK};

/// Bounds are multiplied by this before they are compared with a score: both are sums of rounded numbers, in different
/// orders. `BOUND_SLACK` in kernels/tandem.cuh, which says why it is enough.
pub(crate) const BOUND_SLACK: f32 = 1.0 + 1.0 / 65536.0;

/// What a search did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Postings whose score was computed.
    pub(crate) postings_scored: u64,
    /// Blocks whose documents were decoded; one across a border counts for each owner that did so.
    pub(crate) blocks_decoded: u64,
}

/// A range that is being gone through.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    /// One a term, in the query's order.
    pub(crate) cursors: Vec<Cursor<'a>>,
    pub(crate) best: RangeTopK,
    norms: &'a Norms,
    postings_scored: u64,
}

impl Scan<'_> {
    /// Whether a document may enter that scores `bound` at most but for rounding, and comes after all that were offered.
    #[inline]
    pub(crate) fn would_enter(&self, bound: f32) -> bool {
        bound * BOUND_SLACK > self.best.threshold()
    }

    /// Scores the document `doc` by all cursors that stand on it, offers it, and moves these on.
    #[inline]
    pub(crate) fn take(&mut self, doc: u32) -> Result<(), CodecError> {
        let norm = self.norms.of(doc);
        let mut score = 0.0;
        for cursor in &mut self.cursors {
            if cursor.doc() == doc {
                score += cursor.score(norm)?;
                self.postings_scored += 1;
                cursor.next()?;
            }
        }
        self.best.offer(doc, score);
        Ok(())
    }

    /// The places of the cursors that have not ended, by document and then in the query's order.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.cursors.len()).collect();
        self.restore(&mut order);
        order
    }

    /// Sorts `order` again after some cursors have moved: by insertion, since few have.
    #[inline]
    pub(crate) fn restore(&self, order: &mut [usize]) {
        let key = |place: usize| (self.cursors[place].doc(), place);
        for sorted in 1..order.len() {
            let moving = order[sorted];
            let mut place = sorted;
            while place > 0 && key(order[place - 1]) > key(moving) {
                order[place] = order[place - 1];
                place -= 1;
            }
            order[place] = moving;
        }
    }
}

impl RangeIndex {
    /// The `k` best documents of `query`, best first, found in `owners` ranges one after another; all of its terms are in
    /// this index.
    ///
    /// # Panics
    /// If a term is not in this index.
    pub(crate) fn search(
        &self,
        query: &Query,
        strategy: Strategy,
        owners: u32,
        k: usize,
    ) -> Result<(Vec<Hit>, Work), CodecError> {
        let mut merged = Vec::new();
        let mut work = Work::default();
        for owner in 0..owners {
            let (keys, done) = self.search_range(query, strategy, &range_of(owner, owners, self.num_docs()), k)?;
            insert_merge(&mut merged, &keys, k);
            work.postings_scored += done.postings_scored;
            work.blocks_decoded += done.blocks_decoded;
        }
        Ok((merged.into_iter().map(TopK::hit).collect(), work))
    }

    /// The keys of the `k` best documents within `range`, best first.
    fn search_range(
        &self,
        query: &Query,
        strategy: Strategy,
        range: &Range<u32>,
        k: usize,
    ) -> Result<(Vec<u64>, Work), CodecError> {
        let cursors = query.terms.iter().map(|term| Cursor::new(self.list(term.term), self.weight(term), range));
        let mut scan = Scan {
            cursors: cursors.collect::<Result<_, _>>()?,
            best: RangeTopK::new(k),
            norms: self.norms(),
            postings_scored: 0,
        };
        match strategy {
            Strategy::And => and::scan(&mut scan)?,
            Strategy::Or => or::scan(&mut scan)?,
            Strategy::Wand => wand::scan(&mut scan)?,
            Strategy::Bmw => bmw::scan(&mut scan)?,
        }
        let blocks_decoded = scan.cursors.iter().map(Cursor::blocks_decoded).sum();
        Ok((scan.best.into_sorted(), Work { postings_scored: scan.postings_scored, blocks_decoded }))
    }
}
