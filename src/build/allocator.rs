//! Memory that is free, and that the allocator keeps.
//!
//! The system's allocator has a heap a thread or so, and gives only what is free at a heap's end back to the system. Threads that
//! merge leave holes: of a build on sixteen threads they were more than what it used.

/// Gives memory that is free back to the system, where the allocator can.
pub(super) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it touches what is free alone, under the allocator's own locks; any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
