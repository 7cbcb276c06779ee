//! Documents of a collection, and the amount of text parsed at a time.

use std::borrow::Cow;

/// Approximate text in a batch: small enough that all threads have work until the end, large enough that hand-over costs
/// are negligible. An interrupted build can only continue with batches of equal size.
pub(super) const BATCH_BYTES: usize = 2 << 20;

/// One document, borrowed from its batch.
#[derive(Clone, Debug)]
pub struct Document<'a> {
    /// Its name in the collection.
    pub id: Cow<'a, str>,
    /// Its title; empty where it has none.
    pub title: Cow<'a, str>,
    /// Its text.
    pub text: Cow<'a, str>,
    /// Its line, or the offset of its first byte; `None` where a file holds no other document.
    pub line: Option<u64>,
}
