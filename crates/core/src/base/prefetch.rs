//! Asking for memory before it is read.
//!
//! An index is larger than a processor's caches, and a query reads a few lines here and a few there: each takes a
//! hundred nanoseconds to come, as long as decoding three blocks, or simulating a query. What will surely be read soon is
//! asked for first, so that such lines come together.

/// Bytes of a cache line.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

/// Asks for the cache lines of the first `num_bytes` of `items`, as far as there are so many.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], num_bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        let (end, mut at) = (num_bytes.min(size_of_val(items)), 0);
        while at < end {
            // SAFETY: asking for a line reads nothing, and this one holds a byte of `items`.
            unsafe {
                use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
                _mm_prefetch::<_MM_HINT_T0>(items.as_ptr().cast::<i8>().add(at));
            }
            at += LINE_BYTES;
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (items, num_bytes);
}
