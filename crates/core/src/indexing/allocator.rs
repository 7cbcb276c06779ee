//! Free memory that the allocator keeps.
//!
//! The system's allocator has about one heap per thread, and returns only free memory at a heap's end to the system.
//! Threads that invert and merge leave holes. In a build on sixteen threads, holes took more memory than the lists.

/// Blocks of at least this size are mappings of their own where memory is scarce.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 1 << 20;

/// Returns free memory to the system, if the allocator can.
pub(super) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it touches only free memory, under the allocator's own locks; any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes the allocator return large blocks when they are freed, in all of the process and from now on, so that growing
/// and packed lists leave no holes. By default the allocator takes blocks of up to 32 MiB from heaps once such a block
/// has been freed.
pub(super) fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets a parameter of the allocator, under its own lock; any thread may call it at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}
