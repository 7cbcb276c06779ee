//! How large lists are.

/// The lists that a cache may hold, numbered from 0.
pub(crate) trait Sizes {
    /// How many lists there are.
    fn num_lists(&self) -> usize;

    /// Postings of a list.
    fn len(&self, list: u32) -> u32;

    /// Bytes that its first `postings` postings take where they are cached; none for no posting, and never fewer for more
    /// of them.
    fn bytes(&self, list: u32, postings: u32) -> u64;

    /// Bytes of the whole list.
    fn whole_bytes(&self, list: u32) -> u64 {
        self.bytes(list, self.len(list))
    }

    /// Bytes of all lists.
    fn all_bytes(&self) -> u64 {
        (0..self.num_lists() as u32).map(|list| self.whole_bytes(list)).sum()
    }
}
