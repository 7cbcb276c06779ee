//! Values that many cores change, kept apart from one another.

/// What lies on cache lines of its own, so that changing it disturbs nobody who reads something else.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);
