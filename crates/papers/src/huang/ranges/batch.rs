//! Batches: queries that go to the GPU together, and the lists that are copied with them.
//!
//! Lists of more than one block stay in GPU memory if there is room. The others, which are many and short, are
//! copied with the batches that need them, once per batch. A table on the host gives the places of lists. A batch
//! closes at a number of queries, or before a query that would make it too long:
//!
//! ```text
//! one copy   | queries | their terms | lists that travel: blocks, words | blocks, words | ...
//! ```

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use tandem_engine::query::Query;
use tandem_model::base::ids::TermId;

use super::index::RangeIndex;
use super::list::RangeList;
use super::range::{Ranges, equal_work};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) queries: usize,
    /// Maximum number of bytes, unless a single query needs more.
    pub(crate) bytes: u64,
}

impl Default for Limits {
    /// Each multiprocessor of a GPU gets some queries, and a copy of this size takes less than a millisecond.
    fn default() -> Self {
        Self { queries: 1024, bytes: 32 << 20 }
    }
}

/// Words of a thread's cursor: `CURSOR_WORDS` in kernels/huang/huang.cuh. Kernels read a list up to `WORDS_AFTER` words past
/// its end.
pub(crate) const CURSOR_WORDS: usize = 28;
pub(crate) const WORDS_AFTER: usize = 8;

/// A query of a batch: `RangeQuery` in huang.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct QueryEntry {
    pub(crate) first_term: u32,
    pub(crate) num_terms: u32,
    /// Place of its threads' cursors, in words, if they are in device memory.
    pub(crate) state: u64,
    /// Address of the first document of each thread and the end of the last one; 0 for the published ranges.
    pub(crate) cuts: u64,
    pub(crate) reserved: u64,
}

/// A term of a query: `RangeTerm` in huang.cuh.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct TermEntry {
    pub(crate) blocks: u64,
    pub(crate) words: u64,
    pub(crate) num_blocks: u32,
    pub(crate) doc_freq: u32,
    pub(crate) weight: f32,
    pub(crate) max_score: f32,
}

/// Place of a list in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) blocks: u64,
    pub(crate) words: u64,
}

/// The host's table of lists in GPU memory.
pub(crate) type Cached = HashMap<TermId, Address>;

/// Returns whether the paper keeps a list in GPU memory: those of more than one block.
pub(crate) fn is_admitted(list: &RangeList) -> bool {
    list.blocks.len() > 1
}

/// Cuts queries into batches in order. The size of cuts of equal work is not counted.
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

/// Minimum number of queries for which a thread cuts ranges.
const FEW: usize = 16;
/// Alignment of the parts of a batch, in bytes.
const ALIGNMENT: u64 = 16;

/// A batch in the form that is copied to the device.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    /// Place of the terms; queries are at the beginning.
    pub(crate) terms_at: u64,
    /// Words of state of its threads.
    pub(crate) state_words: u64,
}

impl Batch {
    /// Packs queries for `threads` threads each. `address` is the batch's place in device memory.
    pub(crate) fn pack(
        index: &RangeIndex,
        queries: &[&Query],
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
        let cuts_of = |query: &&Query| match ranges {
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

    /// Appends words; returns their device address.
    fn push_words(&mut self, words: &[u32], address: u64) -> u64 {
        let at = address + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytemuck::cast_slice(words));
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
        at
    }

    /// Appends a list; returns its place in device memory.
    fn push_list(&mut self, list: &RangeList, address: u64) -> Address {
        let blocks = address + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytemuck::cast_slice(&list.blocks));
        let words = address + self.bytes.len() as u64;
        self.bytes.extend_from_slice(bytemuck::cast_slice(&list.words));
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT as usize), 0);
        Address { blocks, words }
    }
}
