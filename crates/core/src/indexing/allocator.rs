//! Memory that is free, and that the allocator keeps.
//!
//! The system's allocator has a heap a thread or so, and gives only what is free at a heap's end back to the system. Threads that
//! invert and merge leave holes: of a build on sixteen threads they were more than what it used.

/// From so many bytes on a block is a mapping of its own where memory is scarce.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 1 << 20;

/// Gives memory that is free back to the system, where the allocator can.
pub(super) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it touches what is free alone, under the allocator's own locks; any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Has large blocks given back as soon as they are free, in all of the process and from now on: growing lists and what is packed
/// of them leave no holes. Left to itself the allocator takes blocks of up to 32 MiB from heaps once it has seen such a block freed.
pub(super) fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets a number of the allocator's, under its own lock; any thread may call it at any time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}
