//! Prefetching of memory.
//!
//! An index is larger than a processor's caches, and a query reads a few lines in many places. Each line takes a
//! hundred nanoseconds to arrive, as long as decoding three blocks or simulating a query. Lines that will certainly be
//! read soon are prefetched, so that they arrive together.

const LINE_BYTES: usize = 64;

/// Prefetches the cache lines of the first `num_bytes` of `items`, as far as they exist.
#[inline(always)]
pub(crate) fn prefetch<T>(items: &[T], num_bytes: usize) {
    let (end, mut at) = (num_bytes.min(size_of_val(items)), 0);
    while at < end {
        prefetch_line(items.as_ptr().cast::<u8>().wrapping_add(at));
        at += LINE_BYTES;
    }
}

/// Prefetches the cache line of an address, if there is memory.
#[inline(always)]
pub(crate) fn prefetch_line<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads nothing, and ignores addresses without memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
