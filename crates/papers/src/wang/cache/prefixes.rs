//! What a cache holds.

#[cfg(test)]
use super::Sizes;

/// How many postings of each list are held, from its first on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefixes {
    postings: Vec<u32>,
    bytes: u64,
}

impl Prefixes {
    /// Nothing is held.
    #[must_use]
    pub(crate) fn none(num_lists: usize) -> Self {
        Self { postings: vec![0; num_lists], bytes: 0 }
    }

    /// Every list is held, whole.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn all(sizes: &dyn Sizes) -> Self {
        Self::of((0..sizes.num_lists() as u32).map(|list| sizes.len(list)).collect(), sizes)
    }

    /// So many postings of each list are held.
    ///
    /// # Panics
    /// If they are more than a list has.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn of(postings: Vec<u32>, sizes: &dyn Sizes) -> Self {
        let bytes = |(list, &postings): (usize, &u32)| {
            assert!(postings <= sizes.len(list as u32), "{postings} postings of list {list}");
            sizes.bytes(list as u32, postings)
        };
        Self { bytes: postings.iter().enumerate().map(bytes).sum(), postings }
    }

    /// Makes `list` hold `postings`, whose bytes exceed those of what was held by `more_bytes`.
    pub(super) fn extend(&mut self, list: u32, postings: u32, more_bytes: u64) {
        self.postings[list as usize] = postings;
        self.bytes += more_bytes;
    }

    /// Postings of the list that are held.
    #[must_use]
    #[inline]
    pub(crate) fn postings(&self, list: u32) -> u32 {
        self.postings[list as usize]
    }

    /// Whether some of the list is held: then no query brings it along.
    #[must_use]
    #[inline]
    pub(crate) fn is_cached(&self, list: u32) -> bool {
        self.postings[list as usize] > 0
    }

    /// Bytes that are held.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// By list.
    #[cfg(test)]
    #[must_use]
    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.postings
    }
}
