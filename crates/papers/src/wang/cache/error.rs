//! What a cache refuses.

/// Why a memory cannot be divided, or used, as asked for.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CacheError {
    /// A share of a list that makes no sense.
    #[error("the admitted share of a list (λ) is {0}, expected above 0 and at most 1")]
    BadShare(f64),
    /// The buffer holds not one query.
    #[error(
        "a buffer of {buffer_bytes} bytes holds none of the {num_queries} queries: the smallest needs {needed_bytes} bytes"
    )]
    BufferTooSmall {
        /// The buffer's size.
        buffer_bytes: u64,
        /// What the query takes that takes least.
        needed_bytes: u64,
        /// How many there are.
        num_queries: usize,
    },
    /// A cache and a buffer that are more than there is.
    #[error(
        "cache and buffer take {wanted_bytes} bytes ({cache_bytes} and {buffer_bytes}), {free_bytes} are free \
         (choose a smaller budget)"
    )]
    MoreThanFree {
        /// Both.
        wanted_bytes: u64,
        /// The cache.
        cache_bytes: u64,
        /// The buffer.
        buffer_bytes: u64,
        /// What there is.
        free_bytes: u64,
    },
    /// Lists that are to be held at once and don't fit.
    #[error(
        "lists of {wanted_bytes} bytes are needed at once, {room_bytes} of the budget's {budget_bytes} can be free"
    )]
    DoesNotFit {
        /// What is to be held.
        wanted_bytes: u64,
        /// What is not pinned.
        room_bytes: u64,
        /// All there is.
        budget_bytes: u64,
    },
}
