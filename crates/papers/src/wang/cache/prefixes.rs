//! Contents of a cache.

#[cfg(test)]
use super::sizes::Sizes;

/// The number of postings of each list that a cache holds, from the first one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    postings: Vec<u32>,
    bytes: u64,
}

impl Prefixes {
    pub(crate) fn none(num_lists: usize) -> Self {
        Self { postings: vec![0; num_lists], bytes: 0 }
    }

    #[cfg(test)]
    pub(crate) fn all(sizes: &dyn Sizes) -> Self {
        Self::of((0..sizes.num_lists() as u32).map(|list| sizes.len(list)).collect(), sizes)
    }

    /// A cache of these numbers of postings. Panics if a number exceeds the length of its list.
    #[cfg(test)]
    pub(crate) fn of(postings: Vec<u32>, sizes: &dyn Sizes) -> Self {
        let bytes = |(list, &postings): (usize, &u32)| {
            assert!(postings <= sizes.len(list as u32), "{postings} postings of list {list}");
            sizes.bytes(list as u32, postings)
        };
        Self { bytes: postings.iter().enumerate().map(bytes).sum(), postings }
    }

    /// Extends a list to `postings` postings, which take `more_bytes` more than before.
    pub(crate) fn extend(&mut self, list: u32, postings: u32, more_bytes: u64) {
        self.postings[list as usize] = postings;
        self.bytes += more_bytes;
    }

    /// Returns the number of cached postings of a list.
    #[inline]
    pub(crate) fn postings(&self, list: u32) -> u32 {
        self.postings[list as usize]
    }

    /// Returns whether the cache holds at least a beginning of the list, so that queries do not copy it.
    #[inline]
    pub(crate) fn is_cached(&self, list: u32) -> bool {
        self.postings[list as usize] > 0
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    #[cfg(test)]
    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.postings
    }
}
