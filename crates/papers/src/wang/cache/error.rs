//! Errors of a cache.

/// Reason why a memory cannot be divided or used as requested.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CacheError {
    /// The share λ is out of range.
    #[error("the admitted share of a list (λ) is {0}, expected above 0 and at most 1")]
    BadShare(f64),
    /// The buffer is too small for every query.
    #[error(
        "a buffer of {buffer_bytes} bytes holds none of the {num_queries} queries: the smallest needs {needed_bytes} bytes"
    )]
    BufferTooSmall {
        /// Size of the buffer.
        buffer_bytes: u64,
        /// Bytes of the smallest query.
        needed_bytes: u64,
        /// Number of queries.
        num_queries: usize,
    },
    /// Cache and buffer exceed the free memory.
    #[error(
        "cache and buffer take {wanted_bytes} bytes ({cache_bytes} and {buffer_bytes}), {free_bytes} are free \
         (choose a smaller budget)"
    )]
    MoreThanFree {
        /// Bytes of both.
        wanted_bytes: u64,
        /// Bytes of the cache.
        cache_bytes: u64,
        /// Bytes of the buffer.
        buffer_bytes: u64,
        /// Free bytes.
        free_bytes: u64,
    },
    /// Lists that are needed together exceed the budget.
    #[error(
        "lists of {wanted_bytes} bytes are needed at once, {room_bytes} of the budget's {budget_bytes} can be free"
    )]
    DoesNotFit {
        /// Bytes of the lists.
        wanted_bytes: u64,
        /// Bytes of the budget that are not pinned.
        room_bytes: u64,
        /// Bytes of the budget.
        budget_bytes: u64,
    },
}
