//! Nodes of B-trees: 512 bytes, the same for CPU and GPU.
//!
//! | offset | size | meaning |
//! | ---: | ---: | --- |
//! | 0 | 4 | keys held, at most 31 |
//! | 4 | 124 | of each, where what is left of the term behind the cache stands among the strings; 0: nothing is |
//! | 128 | 4 | 1 in a leaf |
//! | 132 | 124 | of each, the term's number: the pointer to its postings |
//! | 256 | 128 | children, one more than keys |
//! | 384 | 124 | of each, a cache of the first four bytes, zeros behind shorter ones |
//! | 508 | 4 | padding |
//!
//! A cache is a number whose highest byte is the first one, so that caches compare as strings do. No term has a byte 0,
//! so that shorter terms are unambiguous. Places behind the keys hold the largest number, which no term has.
//!
//! Source: Wei and JaJa 2011, table II.

use bytemuck::{Pod, Zeroable};

/// Degree of the tree: nodes other than the root have at least one key less.
pub(crate) const DEGREE: usize = 16;
/// Maximum number of keys of a node, one less than the lanes of a warp.
pub(crate) const MAX_KEYS: usize = 2 * DEGREE - 1;
pub(crate) const CACHE_BYTES: usize = 4;
/// Cache of places without a key.
pub(crate) const NO_KEY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Node {
    pub(crate) len: u32,
    pub(crate) rests: [u32; MAX_KEYS],
    pub(crate) is_leaf: u32,
    pub(crate) terms: [u32; MAX_KEYS],
    pub(crate) children: [u32; MAX_KEYS + 1],
    pub(crate) caches: [u32; MAX_KEYS],
    pub(crate) padding: u32,
}

const _: () = assert!(size_of::<Node>() == 512);

/// A key: the cache, the place of the rest, and the term's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) cache: u32,
    pub(crate) rest: u32,
    pub(crate) term: u32,
}

impl Node {
    /// Makes a leaf or an inner node without keys.
    pub(crate) fn new(is_leaf: bool) -> Self {
        Self { caches: [NO_KEY; MAX_KEYS], is_leaf: u32::from(is_leaf), ..Self::zeroed() }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len as usize == MAX_KEYS
    }

    /// Returns the number of keys with a smaller cache.
    #[inline]
    pub(crate) fn below(&self, cache: u32) -> usize {
        // Comparing all places, even those behind the keys, becomes vector code.
        self.caches.iter().map(|&other| u32::from(other < cache)).sum::<u32>() as usize
    }

    pub(crate) fn insert(&mut self, place: usize, key: Key) {
        let len = self.len as usize;
        for column in [&mut self.caches, &mut self.rests, &mut self.terms] {
            column.copy_within(place..len, place + 1);
        }
        (self.caches[place], self.rests[place], self.terms[place]) = (key.cache, key.rest, key.term);
        self.len += 1;
    }

    /// Inserts a child at `place` after its key was inserted.
    pub(crate) fn insert_child(&mut self, place: usize, child: u32) {
        self.children.copy_within(place..self.len as usize, place + 1);
        self.children[place] = child;
    }

    /// Splits a full node: returns the middle key, and a node of the upper keys.
    pub(crate) fn split(&mut self) -> (Key, Self) {
        let middle = Key { cache: self.caches[DEGREE - 1], rest: self.rests[DEGREE - 1], term: self.terms[DEGREE - 1] };
        let mut upper = Self::new(self.is_leaf != 0);
        upper.len = (DEGREE - 1) as u32;
        upper.caches[..DEGREE - 1].copy_from_slice(&self.caches[DEGREE..]);
        upper.rests[..DEGREE - 1].copy_from_slice(&self.rests[DEGREE..]);
        upper.terms[..DEGREE - 1].copy_from_slice(&self.terms[DEGREE..]);
        upper.children[..DEGREE].copy_from_slice(&self.children[DEGREE..]);
        self.caches[DEGREE - 1..].fill(NO_KEY);
        self.len = (DEGREE - 1) as u32;
        (middle, upper)
    }
}

/// Returns the cache of a term's bytes, and the remaining bytes.
#[inline]
pub(crate) fn cache_of(bytes: &[u8]) -> (u32, &[u8]) {
    match bytes.split_first_chunk::<CACHE_BYTES>() {
        Some((first, rest)) => (u32::from_be_bytes(*first), rest),
        None => {
            let mut first = [0; CACHE_BYTES];
            first[..bytes.len()].copy_from_slice(bytes);
            (u32::from_be_bytes(first), &[])
        }
    }
}
