//! Prefetching of memory.
//!
//! An index is larger than a processor's caches, and a query reads a few lines in many places. Each line takes a
//! hundred nanoseconds to arrive, as long as decoding three blocks or simulating a query. Lines that will certainly be
//! read soon are prefetched, so that they arrive together.

const LINE_BYTES: usize = 64;

/// Prefetches the cache lines of the first `num_bytes` of `items`, as far as they exist.
#[inline(always)]
pub fn prefetch<T>(items: &[T], num_bytes: usize) {
    let (end, mut at) = (num_bytes.min(size_of_val(items)), 0);
    while at < end {
        prefetch_line(items.as_ptr().cast::<u8>().wrapping_add(at));
        at += LINE_BYTES;
    }
}

/// Prefetches the cache line of an address, if there is memory.
#[inline(always)]
pub fn prefetch_line<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: prefetching reads nothing, and ignores addresses without memory.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for large pages for memory that was not accessed yet. A processor keeps the addresses of a few thousand pages:
/// reads in random places of a larger table first wait for those.
pub fn use_large_pages<T>(memory: &mut [std::mem::MaybeUninit<T>]) {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const PAGE_BYTES: usize = 1 << 21;
        let bytes = memory.as_ptr().cast::<u8>();
        let skipped = bytes.align_offset(PAGE_BYTES);
        let len = size_of_val(memory).saturating_sub(skipped) / PAGE_BYTES * PAGE_BYTES;
        // SAFETY: the pages lie inside `memory`, and the advice leaves their content. It may be refused.
        unsafe { libc::madvise(bytes.wrapping_add(skipped).cast_mut().cast(), len, libc::MADV_HUGEPAGE) };
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = memory;
}
