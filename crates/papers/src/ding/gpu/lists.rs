//! Lists coded by PForDelta in host memory, in the device's layout.

use std::collections::HashMap;
use std::ops::Range;

use rayon::prelude::*;
use tandem_engine::index::{Bm25, Index};
use tandem_engine::query::Query;
use tandem_model::base::ids::TermId;

use super::arena::{Arena, Tree};
use crate::codec::{Codec, CodecError, Column, PForDelta};
use crate::ding::daat::lists::postings;

/// Lists that are encoded in parallel before they are appended to the arena.
const ENCODED_AT_ONCE: usize = 256;

#[derive(Debug)]
pub(crate) struct List {
    /// Number from 0 in the order of the terms.
    pub(crate) number: u32,
    pub(crate) docs: Tree,
    pub(crate) freqs: Tree,
    /// Words in the arena, in one piece from a multiple of sixteen bytes.
    pub(crate) words: Range<usize>,
    /// Scratch memory for decoded exceptions, in words of the arena's.
    pub(crate) scratch: Range<usize>,
}

impl List {
    /// Returns the bytes of the list, a multiple of sixteen.
    pub(crate) fn bytes(&self) -> u64 {
        4 * self.words.len() as u64
    }
}

/// The lists of some terms, and the parameters of scores.
#[derive(Debug)]
pub(crate) struct HostLists {
    pub(crate) bm25: Bm25,
    pub(crate) num_docs: u32,
    pub(crate) norms: Vec<f32>,
    pub(crate) words: Vec<u32>,
    lists: HashMap<TermId, List>,
}

impl HostLists {
    /// Encodes the lists of `terms`, which are distinct.
    pub(crate) fn encode(index: &Index, terms: &[TermId], bm25: Bm25, codec: PForDelta) -> Result<Self, CodecError> {
        let mut arena = Arena::default();
        let mut lists = HashMap::new();
        for terms in terms.chunks(ENCODED_AT_ONCE) {
            let encoded: Result<Vec<_>, _> = terms.par_iter().map(|&term| encode(index, term, codec)).collect();
            for (&term, [docs, freqs]) in terms.iter().zip(&encoded?) {
                let (words, scratch) = (arena.words.len(), arena.scratch_len);
                let docs = arena.push_list(Column::Docs, docs);
                let freqs = arena.push_list(Column::Freqs, freqs);
                arena.align();
                let (words, scratch) = (words..arena.words.len(), scratch..arena.scratch_len);
                lists.insert(term, List { number: lists.len() as u32, docs, freqs, words, scratch });
            }
        }
        let norms = bm25.norms(index.doc_lengths(), index.average_length());
        Ok(Self { bm25, num_docs: index.num_docs(), norms, words: arena.words, lists })
    }

    pub(crate) fn bytes(&self) -> u64 {
        4 * self.words.len() as u64
    }

    pub(crate) fn bytes_of(&self, query: &Query) -> u64 {
        query.terms.iter().map(|term| self.list(term.term).bytes()).sum()
    }

    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    /// The list of a term. Panics if the term was not encoded.
    pub(crate) fn list(&self, term: TermId) -> &List {
        &self.lists[&term]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &List> {
        self.lists.values()
    }
}

fn encode(index: &Index, term: TermId, codec: PForDelta) -> Result<[Vec<u32>; 2], CodecError> {
    let (docs, freqs) = postings(index, term, &(0..index.num_docs()));
    Ok([codec.encode_list(Column::Docs, &docs)?, codec.encode_list(Column::Freqs, &freqs)?])
}
