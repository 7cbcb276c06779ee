//! Lists coded by PForDelta in the host's memory, as the device takes them.

use std::collections::HashMap;
use std::ops::Range;

use rayon::prelude::*;

use super::arena::{Arena, Tree};
use crate::codec::{Codec, CodecError, Column, PForDelta};
use tandem_core::base::ids::TermId;
use tandem_core::index::{BLOCK_LEN, Bm25, Index};

/// Lists that are encoded at once, in parallel, before they are appended to the arena.
const ENCODED_AT_ONCE: usize = 256;

/// A term's list.
#[derive(Debug)]
pub(crate) struct List {
    /// Counted from 0, in the order of the terms.
    pub(crate) number: u32,
    pub(crate) docs: Tree,
    pub(crate) freqs: Tree,
    /// Its words in the arena: in one piece, from a multiple of sixteen bytes on.
    pub(crate) words: Range<usize>,
    /// Its part of the scratch memory that the arena counts: where its exceptions are decoded to.
    pub(crate) scratch: Range<usize>,
}

impl List {
    /// Bytes that it takes in a memory of many lists: a multiple of sixteen.
    pub(crate) fn bytes(&self) -> u64 {
        4 * self.words.len() as u64
    }
}

/// The lists of some terms, and what scores need.
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

    /// Bytes of all lists.
    pub(crate) fn bytes(&self) -> u64 {
        4 * self.words.len() as u64
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lists.len()
    }

    /// The list of a term.
    ///
    /// # Panics
    /// If it is none of those that were encoded.
    pub(crate) fn list(&self, term: TermId) -> &List {
        &self.lists[&term]
    }

    /// All of them, in no order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &List> {
        self.lists.values()
    }
}

/// A term's documents and frequencies, encoded.
fn encode(index: &Index, term: TermId, codec: PForDelta) -> Result<[Vec<u32>; 2], CodecError> {
    let list = index.list(term);
    let len = list.doc_freq() as usize;
    let (mut docs, mut freqs) = (Vec::with_capacity(len), Vec::with_capacity(len));
    let (mut block_docs, mut block_freqs) = ([0; BLOCK_LEN], [0; BLOCK_LEN]);
    for block in 0..list.num_blocks() {
        let block_len = list.decode_docs(block, &mut block_docs);
        list.decode_freqs(block, &mut block_freqs);
        docs.extend_from_slice(&block_docs[..block_len]);
        freqs.extend_from_slice(&block_freqs[..block_len]);
    }
    let (mut doc_words, mut freq_words) = (Vec::new(), Vec::new());
    codec.encode(Column::Docs, &docs, &mut doc_words)?;
    codec.encode(Column::Freqs, &freqs, &mut freq_words)?;
    Ok([doc_words, freq_words])
}
