//! The lists of some terms, as the published system holds them in the memory of the host.

use std::collections::HashMap;

use rayon::prelude::*;

use super::list::{RANGE_BLOCK_LEN, RangeList};
use tandem_core::base::ids::TermId;
use tandem_core::index::{BLOCK_LEN, Bm25, Idf, Index};
use tandem_core::query::{Query, QueryTerm};

/// BM25 as the paper has it.
pub(crate) const PAPERS_BM25: Bm25 = Bm25 { k1: 1.2, b: 0.75, idf: Idf::Papers };

/// BM25's norms of all documents.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Norms {
    /// One a document.
    Each(Vec<f32>),
    /// All documents are equally long: the norm of all.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "collections have lengths; tests reach the last documents without")
    )]
    All(f32),
}

impl Norms {
    /// The norm of `doc`.
    #[inline]
    pub(crate) fn of(&self, doc: u32) -> f32 {
        match self {
            Self::Each(norms) => norms[doc as usize],
            Self::All(norm) => *norm,
        }
    }
}

/// Lists in NewPFD blocks of 64, and what scoring needs.
#[derive(Clone, Debug)]
pub(crate) struct RangeIndex {
    num_docs: u32,
    norms: Norms,
    lists: HashMap<TermId, RangeList>,
}

impl RangeIndex {
    /// The lists of `terms` of an index, with BM25 as in the paper.
    pub(crate) fn new(index: &Index, terms: &[TermId]) -> Self {
        let norms = PAPERS_BM25.norms(index.doc_lengths(), index.average_length());
        let lists = terms.par_iter().map(|&term| (term, encode(index, term, &norms))).collect();
        Self { num_docs: index.num_docs(), norms: Norms::Each(norms), lists }
    }

    /// These lists, whatever they come from; documents are below `num_docs`.
    #[cfg(test)]
    pub(crate) fn from_lists(num_docs: u32, norms: Norms, lists: HashMap<TermId, RangeList>) -> Self {
        Self { num_docs, norms, lists }
    }

    /// Documents of the collection.
    pub(crate) fn num_docs(&self) -> u32 {
        self.num_docs
    }

    /// BM25's norms.
    pub(crate) fn norms(&self) -> &Norms {
        &self.norms
    }

    /// The list of a term.
    ///
    /// # Panics
    /// If it is not among those that this was made of.
    pub(crate) fn list(&self, term: TermId) -> &RangeList {
        &self.lists[&term]
    }

    /// All lists, by term.
    pub(crate) fn lists(&self) -> Vec<(TermId, &RangeList)> {
        let mut lists: Vec<_> = self.lists.iter().map(|(&term, list)| (term, list)).collect();
        lists.sort_unstable_by_key(|&(term, _)| term);
        lists
    }

    /// The weight of a query's term.
    pub(crate) fn weight(&self, term: &QueryTerm) -> f32 {
        PAPERS_BM25.weight(self.num_docs, term.doc_freq, term.qtf)
    }
}

/// Blocks of 64 in all lists of a query: its length, as the paper measures it.
pub(crate) fn num_blocks(query: &Query) -> u64 {
    query.terms.iter().map(|term| u64::from(term.doc_freq).div_ceil(RANGE_BLOCK_LEN as u64)).sum()
}

fn encode(index: &Index, term: TermId, norms: &[f32]) -> RangeList {
    let list = index.list(term);
    let docs = list.docs();
    let mut freqs = Vec::with_capacity(docs.len());
    let mut block_freqs = [0; BLOCK_LEN];
    for block in 0..list.num_blocks() {
        let len = list.decode_freqs(block, &mut block_freqs);
        freqs.extend_from_slice(&block_freqs[..len]);
    }
    RangeList::encode(&docs, &freqs, |doc| norms[doc as usize])
}
