//! Lists of some terms in the published form, in host memory.

use std::collections::HashMap;

use rayon::prelude::*;
use tandem_engine::index::{Bm25, Idf, Index};
use tandem_engine::query::{Query, QueryTerm};
use tandem_model::base::ids::TermId;

use super::list::{RANGE_BLOCK_LEN, RangeList};
use crate::ding::daat::lists::postings;

pub(crate) const PAPERS_BM25: Bm25 = Bm25 { k1: 1.2, b: 0.75, idf: Idf::Papers };

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Norms {
    Each(Vec<f32>),
    /// One norm for all documents, which have equal lengths.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "collections have lengths; tests reach the last documents without")
    )]
    All(f32),
}

impl Norms {
    #[inline]
    pub(crate) fn of(&self, doc: u32) -> f32 {
        match self {
            Self::Each(norms) => norms[doc as usize],
            Self::All(norm) => *norm,
        }
    }
}

/// Lists in NewPFD blocks of 64, and the parameters of scores.
#[derive(Clone, Debug)]
pub(crate) struct RangeIndex {
    num_docs: u32,
    norms: Norms,
    lists: HashMap<TermId, RangeList>,
}

impl RangeIndex {
    /// Encodes the lists of `terms` with the paper's BM25.
    pub(crate) fn new(index: &Index, terms: &[TermId]) -> Self {
        let norms = PAPERS_BM25.norms(index.doc_lengths(), index.average_length());
        let encode = |&term: &TermId| {
            let (docs, freqs) = postings(index, term, &(0..index.num_docs()));
            (term, RangeList::encode(&docs, &freqs, |doc| norms[doc as usize]))
        };
        let lists = terms.par_iter().map(encode).collect();
        Self { num_docs: index.num_docs(), norms: Norms::Each(norms), lists }
    }

    /// Makes an index of these lists; documents are below `num_docs`.
    #[cfg(test)]
    pub(crate) fn from_lists(num_docs: u32, norms: Norms, lists: HashMap<TermId, RangeList>) -> Self {
        Self { num_docs, norms, lists }
    }

    /// Returns the number of documents of the collection.
    pub(crate) fn num_docs(&self) -> u32 {
        self.num_docs
    }

    pub(crate) fn norms(&self) -> &Norms {
        &self.norms
    }

    /// Returns the list of a term. Panics if the term was not encoded.
    pub(crate) fn list(&self, term: TermId) -> &RangeList {
        &self.lists[&term]
    }

    pub(crate) fn lists(&self) -> Vec<(TermId, &RangeList)> {
        let mut lists: Vec<_> = self.lists.iter().map(|(&term, list)| (term, list)).collect();
        lists.sort_unstable_by_key(|&(term, _)| term);
        lists
    }

    pub(crate) fn weight(&self, term: &QueryTerm) -> f32 {
        PAPERS_BM25.weight(self.num_docs, term.doc_freq, term.qtf)
    }
}

/// Returns the number of blocks of 64 in all lists of a query, the paper's length of a query.
pub(crate) fn num_blocks(query: &Query) -> u64 {
    query.terms.iter().map(|term| u64::from(term.doc_freq).div_ceil(RANGE_BLOCK_LEN as u64)).sum()
}
