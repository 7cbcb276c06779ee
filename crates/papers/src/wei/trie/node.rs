//! A node of a B-tree: 512 bytes, the same for CPU and GPU.
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
//! A cache is a number whose highest byte is the first one, so that caches compare as strings do; no term has a byte 0, so
//! that nothing else looks like a shorter one. Places behind the keys hold the largest number, which is no term's.
//!
//! Source: Wei and JaJa 2011, table II.

use bytemuck::{Pod, Zeroable};

/// The tree's degree: a node but the root has at least one key fewer.
pub(crate) const DEGREE: usize = 16;
/// Keys of a node at most: as many as a warp has lanes, but one.
pub(crate) const MAX_KEYS: usize = 2 * DEGREE - 1;
/// Bytes of a term that are kept in the node.
pub(crate) const CACHE_BYTES: usize = 4;
/// The cache of no term.
pub(crate) const NO_KEY: u32 = u32::MAX;

/// A node.
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

/// A key: the cache, where the rest is, the term's number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub(crate) cache: u32,
    pub(crate) rest: u32,
    pub(crate) term: u32,
}

impl Node {
    /// A leaf or an inner node without keys.
    pub(crate) fn new(is_leaf: bool) -> Self {
        Self { caches: [NO_KEY; MAX_KEYS], is_leaf: u32::from(is_leaf), ..Self::zeroed() }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len as usize == MAX_KEYS
    }

    /// How many keys have a smaller cache.
    #[inline]
    pub(crate) fn below(&self, cache: u32) -> usize {
        // All of them, also those behind the keys: this becomes vector code.
        self.caches.iter().map(|&other| u32::from(other < cache)).sum::<u32>() as usize
    }

    /// Puts a key at `place`, and those from there on one further.
    pub(crate) fn insert(&mut self, place: usize, key: Key) {
        let len = self.len as usize;
        for column in [&mut self.caches, &mut self.rests, &mut self.terms] {
            column.copy_within(place..len, place + 1);
        }
        (self.caches[place], self.rests[place], self.terms[place]) = (key.cache, key.rest, key.term);
        self.len += 1;
    }

    /// Puts a child at `place`, and those from there on one further; a key has been put in before.
    pub(crate) fn insert_child(&mut self, place: usize, child: u32) {
        self.children.copy_within(place..self.len as usize, place + 1);
        self.children[place] = child;
    }

    /// Takes the upper half out of a full node: the key in the middle, and a node of those above.
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

/// The cache of a term's bytes, and what does not fit into it.
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
