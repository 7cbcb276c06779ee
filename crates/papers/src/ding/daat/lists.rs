//! Coded lists of some terms.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use tandem_engine::index::{BLOCK_LEN, Bm25, Index};
use tandem_engine::query::QueryTerm;
use tandem_model::base::ids::TermId;

use super::cursor::{CodedList, Cursor};
use crate::codec::{Codec, CodecError, Column};

/// Lists coded by one codec, with the parameters of scores.
#[derive(Debug)]
pub(crate) struct CodedLists {
    codec: Box<dyn Codec>,
    lists: HashMap<TermId, CodedList>,
    bm25: Bm25,
    num_docs: u32,
    norms: Arc<[f32]>,
}

impl CodedLists {
    /// Codes the documents of `terms` inside `range` on all cores.
    pub(crate) fn encode(
        index: &Index,
        terms: &[TermId],
        codec: Box<dyn Codec>,
        range: Range<u32>,
    ) -> Result<Self, CodecError> {
        Self::encode_values(index, terms, codec, range, |_, freqs| freqs.to_vec())
    }

    /// Codes documents as [`encode`](Self::encode) does, with `values(documents, frequencies)` in place of frequencies.
    pub(crate) fn encode_values(
        index: &Index,
        terms: &[TermId],
        codec: Box<dyn Codec>,
        range: Range<u32>,
        values: impl Fn(&[u32], &[u32]) -> Vec<u32> + Sync,
    ) -> Result<Self, CodecError> {
        let bm25 = index.built_with();
        let norms = bm25.norms(index.doc_lengths(), index.average_length()).into();
        let lists: Result<HashMap<_, _>, CodecError> = terms
            .par_iter()
            .map(|&term| {
                let (docs, freqs) = postings(index, term, &range);
                let last_doc = docs.last().copied().unwrap_or(0);
                let freqs = values(&docs, &freqs);
                let [docs, freqs] = [(Column::Docs, docs), (Column::Freqs, freqs)]
                    .map(|(column, values)| codec.encode_list(column, &values));
                Ok((term, CodedList { docs: docs?, freqs: freqs?, last_doc }))
            })
            .collect();
        Ok(Self { lists: lists?, codec, bm25, num_docs: index.num_docs(), norms })
    }

    pub(crate) fn codec(&self) -> &'static str {
        self.codec.name()
    }

    /// Returns the words of all lists in the column of frequencies.
    pub(crate) fn freq_words(&self) -> usize {
        self.lists.values().map(|list| list.freqs.len()).sum()
    }

    /// Returns the number of documents of the collection.
    pub(crate) fn num_docs(&self) -> u32 {
        self.num_docs
    }

    /// Returns a cursor before the first posting of a term's list. Panics if the term was not coded.
    pub(crate) fn cursor(&self, term: TermId) -> Cursor<'_> {
        Cursor::open(&*self.codec, &self.lists[&term])
    }

    /// Returns a term's weight, as in all executors.
    pub(crate) fn weight(&self, term: &QueryTerm) -> f32 {
        self.bm25.weight(self.num_docs, term.doc_freq, term.qtf)
    }

    pub(crate) fn norm(&self, doc: u32) -> f32 {
        self.norms[doc as usize]
    }
}

/// Decodes a term's documents and frequencies inside `range`.
pub(crate) fn postings(index: &Index, term: TermId, range: &Range<u32>) -> (Vec<u32>, Vec<u32>) {
    let list = index.list(term);
    let (mut docs, mut freqs) = (Vec::new(), Vec::new());
    let (mut block_docs, mut block_freqs) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
    let first = list.last_docs().partition_point(|&last| last < range.start);
    for block in first..list.num_blocks() {
        let len = list.decode_docs(block, &mut block_docs);
        if block_docs[0] >= range.end {
            break;
        }
        list.decode_freqs(block, &mut block_freqs);
        let inside = block_docs[..len].partition_point(|&doc| doc < range.start)
            ..block_docs[..len].partition_point(|&doc| doc < range.end);
        docs.extend_from_slice(&block_docs[inside.clone()]);
        freqs.extend_from_slice(&block_freqs[inside]);
    }
    (docs, freqs)
}
