//! Queries on the CPU: one thread processes range after range and merges.

use tandem_engine::query::Query;
use tandem_engine::search::{Hit, TopK};

use super::cursor::Cursor;
use super::index::RangeIndex;
use super::range::range_of;
use super::scan::Scan;
use super::strategy::Strategy;
use super::top_k::{RangeTopK, insert_merge};
use crate::codec::CodecError;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    pub(crate) postings_scored: u64,
    /// Blocks whose documents were decoded. A block across a border counts for each owner that decoded it.
    pub(crate) blocks_decoded: u64,
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
