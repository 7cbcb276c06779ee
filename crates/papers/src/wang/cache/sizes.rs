//! Sizes of lists.

/// Lists that a cache may hold, numbered from 0.
pub(crate) trait Sizes {
    fn num_lists(&self) -> usize;

    /// Returns the number of postings of a list.
    fn len(&self, list: u32) -> u32;

    /// Returns the bytes of the first `postings` postings in a cache; they never decrease with `postings`, and are 0
    /// for 0.
    fn bytes(&self, list: u32, postings: u32) -> u64;

    fn whole_bytes(&self, list: u32) -> u64 {
        self.bytes(list, self.len(list))
    }

    fn all_bytes(&self) -> u64 {
        (0..self.num_lists() as u32).map(|list| self.whole_bytes(list)).sum()
    }
}
