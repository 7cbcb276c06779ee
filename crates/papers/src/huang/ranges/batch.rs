//! Batches: which queries go to the GPU together, and what travels with them.
//!
//! Lists of more than one block lie in the GPU's memory, as many as there is room for; the others, nearly all there are and
//! short, travel with the batches that ask for them, each once a batch. A table on the host knows which lie where. A batch
//! closes when it has so many queries, or when the next one would make it too long:
//!
//! ```text
//! one copy   | queries | their terms | lists that travel: blocks, words | blocks, words | ...
//! ```

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;

use super::index::RangeIndex;
use super::list::RangeList;
use super::range::{Ranges, equal_work};
use tandem_core::base::ids::TermId;
use tandem_core::query::Query;

/// When a batch closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Queries that it has at most.
    pub(crate) queries: usize,
    /// Bytes that it has at most, unless a single query needs more.
    pub(crate) bytes: u64,
}

impl Default for Limits {
    /// All of a GPU's multiprocessors hold some queries each, and a copy of this size takes less than a millisecond.
    fn default() -> Self {
        Self { queries: 1024, bytes: 32 << 20 }
    }
}

/// Words of one thread's cursor: `CURSOR_WORDS` in kernels/huang/ranges.cuh.
pub(crate) const CURSOR_WORDS: usize = 25;

/// A query of a batch: `RangeQuery` there.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct QueryEntry {
    pub(crate) first_term: u32,
    pub(crate) num_terms: u32,
    /// Where its threads' cursors are, in words.
    pub(crate) state: u64,
    /// Address of where each thread's documents begin and the last one's end; 0 as published.
    pub(crate) cuts: u64,
    pub(crate) reserved: u64,
}

/// A term of a query: `RangeTerm` there.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TermEntry {
    /// Addresses in device memory.
    pub(crate) blocks: u64,
    pub(crate) words: u64,
    pub(crate) num_blocks: u32,
    pub(crate) doc_freq: u32,
    pub(crate) weight: f32,
    pub(crate) max_score: f32,
}

/// Where a list lies in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) blocks: u64,
    pub(crate) words: u64,
}

/// What knows which lists are in the GPU's memory: the host's table.
pub(crate) type Cached = HashMap<TermId, Address>;

/// Lists that the paper keeps in the GPU's memory: those of more than one block.
pub(crate) fn is_admitted(list: &RangeList) -> bool {
    list.blocks.len() > 1
}

/// Cuts queries into batches, in order. What cuts of equal work take is not counted.
pub(crate) fn cut(index: &RangeIndex, queries: &[Query], cached: &Cached, limits: Limits) -> Vec<Range<usize>> {
    let mut batches = Vec::new();
    let (mut start, mut bytes, mut travelling) = (0, 0, HashSet::new());
    let query_bytes = |query: &Query, travelling: &HashSet<TermId>| -> u64 {
        let entries = size_of::<QueryEntry>() + query.terms.len() * size_of::<TermEntry>();
        let lists = query.terms.iter().map(|term| term.term);
        let lists = lists.filter(|term| !cached.contains_key(term) && !travelling.contains(term));
        entries as u64 + lists.map(|term| index.list(term).bytes().next_multiple_of(ALIGNMENT)).sum::<u64>()
    };
    for (number, query) in queries.iter().enumerate() {
        let mut more = query_bytes(query, &travelling);
        if number > start && (number - start == limits.queries || bytes + more > limits.bytes) {
            batches.push(start..number);
            (start, bytes) = (number, 0);
            travelling.clear();
            more = query_bytes(query, &travelling);
        }
        bytes += more;
        travelling.extend(query.terms.iter().map(|term| term.term).filter(|term| !cached.contains_key(term)));
    }
    if start < queries.len() {
        batches.push(start..queries.len());
    }
    batches
}

/// Queries whose ranges one thread cuts at least: fewer are not worth another's.
const FEW: usize = 16;
/// Every part of a batch begins at a multiple of so many bytes.
const ALIGNMENT: u64 = 16;

/// A batch, as it is copied to the device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    /// All that is copied.
    pub(crate) bytes: Vec<u8>,
    /// Where the terms begin in it; queries are at its start.
    pub(crate) terms_at: u64,
    /// Words of state that its threads need.
    pub(crate) state_words: u64,
}

impl Batch {
    /// Packs queries, each for `threads` threads; the batch will lie at `address` of the device's memory.
    pub(crate) fn pack(
        index: &RangeIndex,
        queries: &[Query],
        threads: u32,
        ranges: Ranges,
        cached: &Cached,
        address: u64,
    ) -> Self {
        let num_terms: usize = queries.iter().map(|query| query.terms.len()).sum();
        let terms_at = queries.len() * size_of::<QueryEntry>();
        let lists_at = terms_at + num_terms * size_of::<TermEntry>();
        let mut batch = Self { bytes: vec![0; lists_at], terms_at: terms_at as u64, state_words: 0 };
        let mut travelling = Cached::new();
        let mut terms = Vec::with_capacity(num_terms);
        let cuts_of = |query: &Query| match ranges {
            Ranges::AsPublished => Vec::new(),
            Ranges::EqualWork => {
                equal_work(query.terms.iter().map(|term| index.list(term.term)), threads, index.num_docs())
            }
        };
        let all_cuts: Vec<Vec<u32>> = queries.par_iter().with_min_len(FEW).map(cuts_of).collect();
        for (number, (query, cuts)) in queries.iter().zip(&all_cuts).enumerate() {
            let cuts = if cuts.is_empty() { 0 } else { batch.push_words(cuts, address) };
            let entry = QueryEntry {
                first_term: terms.len() as u32,
                num_terms: query.terms.len() as u32,
                state: batch.state_words,
                cuts,
                reserved: 0,
            };
            batch.bytes[number * size_of::<QueryEntry>()..][..size_of::<QueryEntry>()]
                .copy_from_slice(bytemuck::bytes_of(&entry));
            batch.state_words += (query.terms.len() * CURSOR_WORDS) as u64 * u64::from(threads);
            for term in &query.terms {
                let list = index.list(term.term);
                let place = match cached.get(&term.term) {
                    Some(&place) => place,
                    None => *travelling.entry(term.term).or_insert_with(|| batch.push_list(list, address)),
                };
                let weight = index.weight(term);
                terms.push(TermEntry {
                    blocks: place.blocks,
                    words: place.words,
                    num_blocks: list.blocks.len() as u32,
                    doc_freq: list.doc_freq,
                    weight,
                    max_score: weight * list.max_impact,
                });
            }
        }
        batch.bytes[terms_at..lists_at].copy_from_slice(bytemuck::cast_slice(&terms));
        batch
    }

    /// Appends words; returns where they will lie.
    fn push_words(&mut self, words: &[u32], address: u64) -> u64 {
        let at = address + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytemuck::cast_slice(words));
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
        at
    }

    /// Appends a list; returns where it will lie.
    fn push_list(&mut self, list: &RangeList, address: u64) -> Address {
        let blocks = address + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytemuck::cast_slice(&list.blocks));
        let words = address + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytemuck::cast_slice(&list.words));
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
        Address { blocks, words }
    }
}
