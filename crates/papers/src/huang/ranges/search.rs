//! Queries on the CPU: one thread processes range after range and merges.

use super::cursor::Cursor;
use super::index::{Norms, RangeIndex};
use super::range::range_of;
use super::strategy::Strategy;
use super::top_k::{RangeTopK, insert_merge};
use crate::codec::CodecError;
use tandem_core::query::Query;
use tandem_core::search::{Hit, TopK};

/// Factor of bounds before they are compared with a score, because both are sums of rounded numbers in different
/// orders. `BOUND_SLACK` in kernels/tandem.cuh explains why it is enough.
pub(crate) const BOUND_SLACK: f32 = 1.0 + 1.0 / 65536.0;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) postings_scored: u64,
    /// Blocks whose documents were decoded. A block across a border counts for each owner that decoded it.
    pub(crate) blocks_decoded: u64,
}

#[derive(Debug)]
pub(crate) struct Scan<'a> {
    /// One cursor per term, in the query's order.
    pub(crate) cursors: Vec<Cursor<'a>>,
    pub(crate) best: RangeTopK,
    norms: &'a Norms,
    postings_scored: u64,
}

impl Scan<'_> {
    /// Returns whether a later document with the bound `bound` may enter the top-k.
    #[inline]
    pub(crate) fn would_enter(&self, bound: f32) -> bool {
        bound * BOUND_SLACK > self.best.threshold()
    }

    /// Scores the document `doc` by all cursors at it, offers it, and moves these cursors.
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

    /// Returns the cursors' places by document and then in the query's order.
    pub(crate) fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.cursors.len()).collect();
        self.restore(&mut order);
        order
    }

    /// Sorts `order` again after few cursors have moved, by insertion.
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
    /// Returns the `k` best documents of `query`, best first, found in `owners` ranges one after another. Panics if a
    /// term is not in this index.
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
            let range = range_of(owner, owners, self.num_docs());
            let cursors = query.terms.iter().map(|term| Cursor::new(self.list(term.term), self.weight(term), &range));
            let mut scan = Scan {
                cursors: cursors.collect::<Result<_, _>>()?,
                best: RangeTopK::new(k),
                norms: self.norms(),
                postings_scored: 0,
            };
            strategy.run(&mut scan)?;
            work.postings_scored += scan.postings_scored;
            work.blocks_decoded += scan.cursors.iter().map(Cursor::blocks_decoded).sum::<u64>();
            insert_merge(&mut merged, &scan.best.into_sorted(), k);
        }
        Ok((merged.into_iter().map(TopK::hit).collect(), work))
    }
}
